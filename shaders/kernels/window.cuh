// A streaming block's window: its place, the ways of planes into it and out of it, and the values that the
// boundary gives to it.

constexpr int THREADS = 32 * WARPS;
constexpr int TILE_Y = WARPS * OWN_Y, TILE_X = 32 * OWN_X;
// The first window starts where nothing outside is needed, else so far outside that nothing wrong reaches the
// domain.
constexpr int SHIFT_Y = LOW_Y == FIXED ? 0 : MARGIN_Y;
constexpr int SHIFT_X = LOW_X == FIXED ? 0 : MARGIN_X;
constexpr int USE_Y = TILE_Y - 2 * MARGIN_Y, USE_X = TILE_X - 2 * MARGIN_X;
constexpr int LANES = 16 / sizeof(real);                 // cells of a 16-byte access
constexpr bool VECTORS = OWN_X % LANES == 0;
constexpr bool ALIGNED = VECTORS && PITCH % LANES == 0;
// Cells of a row's last word that are none of the domain's.
constexpr int BEHIND_ROW = ALIGNED ? int((LANES - EXTENT_X % LANES) % LANES) : 0;
constexpr Offset END_X = EXTENT_X + BEHIND_ROW;
constexpr bool WRAPS_Y = LOW_Y == PERIODIC, WRAPS_X = LOW_X == PERIODIC;
constexpr bool SHOWS_Y = shows_this_side(LOW_Y) || shows_this_side(HIGH_Y), SHOWS_X = shows_this_side(LOW_X) || shows_this_side(HIGH_X);
constexpr bool SYNCED = EDGE_Y > 0 && LAG == 0;            // strips wait for each other level by level
// Whether windows begin and end where the domain does, so that at a side held cells lie in the outermost
// warp, and in the outermost lane; in the two outermost lanes for several warps, whose lanes have few
// columns.
constexpr bool SNUG_Y = EXTENT_Y == 1 || (LOW_Y == FIXED && HIGH_Y == FIXED && TILES_Y > 1 && FIX_Y <= OWN_Y);
constexpr int HELD_LANES = WARPS == 1 || FIX_X + BEHIND_ROW <= OWN_X ? 1 : 2;
constexpr bool SNUG_X = LOW_X == FIXED && HIGH_X == FIXED && TILES_X > 1 && FIX_X + BEHIND_ROW <= HELD_LANES * OWN_X;
// With stages of unequal radius, windows other than the outermost must not reach held cells at all.
constexpr bool CLEAR_X = TILES_X < 2 || (USE_X >= FIX_X && EXTENT_X - TILE_X - (TILES_X - 2) * USE_X >= FIX_X);
constexpr bool CLEAR_Y = TILES_Y < 2 || (USE_Y >= FIX_Y && EXTENT_Y - TILE_Y - (TILES_Y - 2) * USE_Y >= FIX_Y);
constexpr bool SNUG = SNUG_Y && SNUG_X && (STAGES == 1 || (CLEAR_X && CLEAR_Y));
// A lane's, and behind it its neighbour's.
enum Side { SIDE_X = 1, LANE_LOW = 2, LANE_HIGH = 8, WARP_LOW = 32, WARP_HIGH = 64 };
// Of the ring: rows beyond the window's sides are there, but never filled.
constexpr int PLANE = (TILE_Y + 2 * EDGE_Y) * TILE_X;
// Cells of an access by one thread: to shared memory, and to device memory.
constexpr int VECTOR = VECTORS ? LANES : 1;
constexpr int WORD = ALIGNED ? LANES : 1;
// Whether a lane's row is two words. Side by side they would lie in the banks of a lane four away, so words
// change places within their pair in every other four lanes.
constexpr bool PAIRED = VECTORS && OWN_X == 2 * LANES;

struct alignas(VECTOR * sizeof(real)) Word { real lane[VECTOR]; };

typedef real Cells[OWN_Y][OWN_X];                        // a thread's own cells of a plane

__device__ __forceinline__ void barrier()
{
    if constexpr (WARPS > 1) __syncthreads();
    else __syncwarp();
}

// Returns the place of a row's cell in shared memory. Copies call it only where places differ from cells:
// even a call that returns its argument costs registers.
__device__ __forceinline__ int place(int cell) { return PAIRED ? cell ^ (cell / (8 * LANES) & 1) * LANES : cell; }

struct Window {
    const Buffers& buffers;
    // [RING][FIELDS][EDGE_Y + TILE_Y + EDGE_Y][TILE_X]: planes of the input, from the warp's first row.
    real* ring;
    real* row;                           // [TILE_X] per warp: a row on its way out
    int tid, lane, warp;
    Offset y0, x0;                       // the window's first cell
    unsigned stored;                     // words of own rows that this block stores, a bit each
    // Own cells across that lie in the domain, and those that keep their value: a bit each.
    unsigned inside, held;
    // Within a plane, the first word that this lane copies, and the first that it stores.
    Offset corner, leaving;
    // Whether the window lies in the domain, so that no cell of it needs the boundary.
    bool whole;
    bool bound_across;                   // whether the boundary gives values to cells of the window
    unsigned side;                       // where the window is SNUG: the sides (Side) at which it lies

    __device__ __forceinline__ Offset y(int own) const { return y0 + warp * OWN_Y + own; }
    __device__ __forceinline__ Offset x(int own) const { return x0 + lane * OWN_X + own; }

    // The columns of the words that a lane stores of a row. Where a lane has two words, neighbours' words go
    // side by side: a whole sector.
    static constexpr int LEAVING_STEP = PAIRED && ALIGNED ? OWN_X : 32 * WORD;
    __device__ __forceinline__ int leaving_x() const { return PAIRED && ALIGNED ? (lane & ~1) * OWN_X + (lane & 1) * WORD : lane * WORD; }

    __device__ __forceinline__ void enter(int tile_y, int tile_x)
    {
        y0 = Offset(tile_y) * USE_Y - SHIFT_Y;
        x0 = Offset(tile_x) * USE_X - SHIFT_X;
        // The cells that this block stores.
        const Offset low_y = tile_y == 0 ? 0 : y0 + MARGIN_Y, high_y = tile_y == TILES_Y - 1 ? EXTENT_Y : y0 + TILE_Y - MARGIN_Y;
        const Offset low_x = tile_x == 0 ? 0 : x0 + MARGIN_X, high_x = tile_x == TILES_X - 1 ? EXTENT_X : x0 + TILE_X - MARGIN_X;
        const bool low_side = tile_x == 0, high_side = tile_x == TILES_X - 1;
        if (SNUG && high_side) x0 = END_X - TILE_X;
        if (SNUG && TILES_Y > 1 && tile_y == TILES_Y - 1) y0 = EXTENT_Y - TILE_Y;
        side = (low_side || high_side ? SIDE_X : 0) | (low_side && lane == 0 ? LANE_LOW : 0) | (high_side && lane == 31 ? LANE_HIGH : 0) |
               (TILES_Y > 1 && tile_y == 0 && warp == 0 ? WARP_LOW : 0) | (TILES_Y > 1 && tile_y == TILES_Y - 1 && warp == WARPS - 1 ? WARP_HIGH : 0);
        if (HELD_LANES > 1) side |= (low_side && lane == 1 ? LANE_LOW << 1 : 0) | (high_side && lane == 30 ? LANE_HIGH << 1 : 0);
        const Offset y1 = y0 + TILE_Y, x1 = x0 + TILE_X;
        corner = y(0) * STRIDE_Y + x0 + lane * WORD;
        leaving = y(0) * STRIDE_Y + x0 + leaving_x();
        whole = x0 >= 0 && x1 <= (HIGH_X == FIXED ? END_X : EXTENT_X) && (EXTENT_Y == 1 || (y0 >= 0 && y1 <= EXTENT_Y));
        bound_across = (LOW_Y != PERIODIC && y0 < FIX_Y) || (HIGH_Y != PERIODIC && y1 > EXTENT_Y - FIX_Y) ||
                       (LOW_X != PERIODIC && x0 < FIX_X) || (HIGH_X != PERIODIC && x1 > EXTENT_X - FIX_X);
        stored = inside = held = 0;
        each<OWN_Y>([&](auto r) {
            each<OWN_X / WORD>([&](auto v) {
                const Offset at_y = y(r.value), at_x = x0 + leaving_x() + v.value * LEAVING_STEP;
                const bool ours = at_y >= low_y && at_y < high_y && at_x >= low_x && at_x < high_x;
                stored |= unsigned(ours) << (r.value * (OWN_X / WORD) + v.value);
            });
        });
        each<OWN_Y>([&](auto r) {
            each<OWN_X>([&](auto c) {
                const Offset at_y = y(r.value), at_x = x(c.value);
                const bool in = (WRAPS_Y || (at_y >= 0 && at_y < EXTENT_Y)) && (WRAPS_X || (at_x >= 0 && at_x < EXTENT_X));
                inside |= unsigned(in) << (r.value * OWN_X + c.value);
                held |= unsigned(in && (held_y(at_y) || held_x(at_x))) << (r.value * OWN_X + c.value);
            });
        });
    }

    __device__ __forceinline__ static void load_row(const real* from, real (&cells)[OWN_X], int lane)
    {
        each<OWN_X / VECTOR>([&](auto v) {
            const Word word = *reinterpret_cast<const Word*>(from + place(lane * OWN_X + v.value * VECTOR));
            each<VECTOR>([&](auto l) { cells[v.value * VECTOR + l.value] = word.lane[l.value]; });
        });
    }

    __device__ __forceinline__ static void store_row(real* to, const real (&cells)[OWN_X], int lane)
    {
        each<OWN_X / VECTOR>([&](auto v) {
            Word word;
            each<VECTOR>([&](auto l) { word.lane[l.value] = cells[v.value * VECTOR + l.value]; });
            *reinterpret_cast<Word*>(to + place(lane * OWN_X + v.value * VECTOR)) = word;
        });
    }

    // Starts the copy of plane `p` into a slot of the ring.
    __device__ __forceinline__ void fetch(Offset p, int slot) const
    {
        const Source plane = source_s(p);
        each<FIELDS>([&](auto f) {
            const real* const field = buffers.current[f.value] + plane.index * STRIDE_S;
            real* const to = ring + (slot * FIELDS + f.value) * PLANE;
            if (whole && !plane.constant) {
                const real* const from = field + corner;
                each<OWN_Y>([&](auto r) {
                    each<OWN_X / WORD>([&](auto q) {
                        constexpr int ACROSS = q.value * 32 * WORD;
                        copy_async<WORD * sizeof(real)>(to + r.value * TILE_X + (PAIRED ? place(lane * WORD + ACROSS) : lane * WORD + ACROSS), from + r.value * STRIDE_Y + ACROSS);
                    });
                });
            } else {
                // A rolled loop, because its body must not be mixed with the one above.
                #pragma unroll 1
                for (int cell = lane; cell < OWN_Y * TILE_X; cell += 32) {
                    const Source line = source_y(y(cell / TILE_X)), column = source_x(x0 + cell % TILE_X);
                    if (plane.constant || line.constant || column.constant)
                        to[PAIRED ? place(cell) : cell] = plane.constant ? plane.value : line.constant ? line.value : column.value;
                    else copy_async<sizeof(real)>(to + (PAIRED ? place(cell) : cell), field + line.index * STRIDE_Y + column.index);
                }
            }
        });
    }

    // Puts the values that the boundary gives into own cells of plane `q` of field F, which a slot of the
    // ring has as the plane was in the beginning.
    template <int F>
    __device__ __forceinline__ void bound(Cells& cells, Offset q, int slot) const
    {
        const Source a = source_s(q);
        if constexpr (HAS_CONSTANT) {
            each<OWN_Y>([&](auto r) {
                const Source b = source_y(y(r.value));
                each<OWN_X>([&](auto c) {
                    const Source d = source_x(x(c.value));
                    const real given = a.constant ? a.value : b.constant ? b.value : d.value;
                    cells[r.value][c.value] = a.constant || b.constant || d.constant ? given : cells[r.value][c.value];
                });
            });
        }
        if constexpr (HAS_FIXED) {
            // A held cell has the value that it had in the beginning. Few warps have such cells.
            const bool plane_there = LOW_S == PERIODIC || (q >= 0 && q < EXTENT_S), plane_held = held_s(q);
            const real* const first = ring + (slot * FIELDS + F) * PLANE + lane * OWN_X;
            // `place` by numbers that do not change, because every level needs it and registers are short.
            const int turned = PAIRED ? lane / 4 % 2 * LANES : 0;
            auto own = [&](int r, int c) { return first[r * TILE_X + (PAIRED ? c ^ turned : c)]; };
            if (SNUG && !plane_held) {
                if (side & SIDE_X && plane_there) {
                    each<OWN_Y>([&](auto r) {
                        each<FIX_X>([&](auto k) {
                            // Cells between it and the side.
                            constexpr int BEFORE = k.value, BEHIND = BEHIND_ROW + k.value;
                            constexpr int LOW = BEFORE % OWN_X, HIGH = OWN_X - 1 - BEHIND % OWN_X;
                            if (side & LANE_LOW << BEFORE / OWN_X) cells[r.value][LOW] = own(r.value, LOW);
                            if (side & LANE_HIGH << BEHIND / OWN_X) cells[r.value][HIGH] = own(r.value, HIGH);
                        });
                    });
                }
                if (side & (WARP_LOW | WARP_HIGH) && plane_there) {
                    each<FIX_Y>([&](auto k) {
                        constexpr int LOW = k.value, HIGH = OWN_Y - 1 - k.value;
                        each<OWN_X>([&](auto c) {
                            if (side & WARP_LOW) cells[LOW][c.value] = own(LOW, c.value);
                            if (side & WARP_HIGH) cells[HIGH][c.value] = own(HIGH, c.value);
                        });
                    });
                }
            } else {
                const unsigned hold = plane_there ? plane_held ? inside : held : 0u;
                if (__any_sync(~0u, hold != 0u)) {
                    each<OWN_Y>([&](auto r) {
                        each<OWN_X>([&](auto c) {
                            if (hold & 1u << (r.value * OWN_X + c.value)) cells[r.value][c.value] = own(r.value, c.value);
                        });
                    });
                }
            }
        }
    }

    // Stores own cells of plane `q` in whole sectors. Where a lane has two words, neighbours exchange one;
    // single cells go by way of shared memory. The cells that a window stores begin and end with whole words.
    __device__ __forceinline__ void store(const Cells (&cells)[FIELDS], Offset q) const
    {
        each<FIELDS>([&](auto f) {
            if constexpr (written<f.value>()) {
                real* const plane = buffers.next[f.value] + q * STRIDE_S + leaving;
                each<OWN_Y>([&](auto r) {
                    real out[OWN_X];
                    leave(cells[f.value][r.value], out);
                    each<OWN_X / WORD>([&](auto v) {
                        if (stored & 1u << (r.value * (OWN_X / WORD) + v.value)) {
                            real* const to = plane + (r.value * STRIDE_Y + v.value * LEAVING_STEP);
                            if constexpr (ALIGNED) {
                                DeviceVector word;
                                memcpy(&word, out + v.value * WORD, 16);
                                *reinterpret_cast<DeviceVector*>(to) = word;
                            } else *to = out[v.value];
                        }
                    });
                });
            }
        });
    }

    // Turns a row of own cells into the words that this lane stores.
    __device__ __forceinline__ void leave(const real (&cells)[OWN_X], real (&out)[OWN_X]) const
    {
        if constexpr (PAIRED && ALIGNED) {
            const bool odd = lane & 1;
            each<WORD>([&](auto l) {
                const real low = cells[l.value], high = cells[WORD + l.value];
                const real other = __shfl_xor_sync(~0u, odd ? low : high, 1);
                out[l.value] = odd ? other : low;
                out[WORD + l.value] = odd ? high : other;
            });
        } else if constexpr (OWN_X > WORD) {
            __syncwarp();
            store_row(row, cells, lane);
            __syncwarp();
            each<OWN_X>([&](auto i) { out[i.value] = row[place((i.value / WORD * 32 + lane) * WORD + i.value % WORD)]; });
        } else each<OWN_X>([&](auto i) { out[i.value] = cells[i.value]; });
    }
};

// A streaming block's window: its place, the ways of planes into it and out of it, and the values that the
// boundary gives to it.

constexpr int THREADS = 32 * WARPS;
constexpr int TILE_Y = WARPS * OWN_Y, TILE_X = 32 * OWN_X;
constexpr bool WRAPS_Y = LOW_Y == PERIODIC, WRAPS_X = LOW_X == PERIODIC;
// Windows begin and end where the domain does; where it goes on at its other side, the first window starts so
// far outside that nothing wrong reaches the domain.
constexpr int SHIFT_Y = WRAPS_Y ? MARGIN_Y : 0, SHIFT_X = WRAPS_X ? MARGIN_X : 0;
constexpr int USE_Y = TILE_Y - 2 * MARGIN_Y, USE_X = TILE_X - 2 * MARGIN_X;
constexpr int LANES = 16 / sizeof(real);                 // cells of a 16-byte access
constexpr bool VECTORS = OWN_X % LANES == 0;
constexpr bool ALIGNED = VECTORS && PITCH % LANES == 0;
// Cells of a row's last word that are none of the domain's.
constexpr int BEHIND_ROW = ALIGNED ? int((LANES - EXTENT_X % LANES) % LANES) : 0;
constexpr Offset END_X = EXTENT_X + BEHIND_ROW;
constexpr bool SYNCED = EDGE_Y > 0 && LAG == 0;            // strips wait for each other level by level
// Whether windows meet a boundary along S, and across.
constexpr bool MEETS_S = FIX_S > 0 && LOW_S != PERIODIC;
constexpr bool MEETS_ACROSS = (FIX_Y > 0 && !WRAPS_Y) || (FIX_X > 0 && !WRAPS_X);
// The first cell of the last window, the last of its strips and lanes that have cells of the domain, and how
// many rows and columns of the domain those have.
constexpr Offset LAST_Y0 = WRAPS_Y || TILES_Y == 1 ? Offset(TILES_Y - 1) * USE_Y - SHIFT_Y : EXTENT_Y - TILE_Y;
constexpr Offset LAST_X0 = WRAPS_X || TILES_X == 1 ? Offset(TILES_X - 1) * USE_X - SHIFT_X : END_X - TILE_X;
constexpr int LAST_STRIP = int(EXTENT_Y - LAST_Y0 - 1) / OWN_Y, LAST_ROWS = int(EXTENT_Y - LAST_Y0) - LAST_STRIP * OWN_Y;
constexpr int LAST_LANE = int(EXTENT_X - LAST_X0 - 1) / OWN_X, LAST_COLUMNS = int(EXTENT_X - LAST_X0) - LAST_LANE * OWN_X;
// Planes of one row, whose kernels are the shortest of registers: they have one body for windows and for planes
// that meet a boundary.
constexpr bool FLAT = EXTENT_Y == 1;
// Whether all words that are copied are whole words of one row, and a strip's rows follow each other in memory.
constexpr bool STRAIGHT_X = !WRAPS_X || (EXTENT_X % LANES == 0 && SHIFT_X <= EXTENT_X && LAST_X0 + TILE_X <= 2 * EXTENT_X);
constexpr bool STRAIGHT_Y = FLAT ? MARGIN_Y == 0 : !WRAPS_Y && (TILES_Y > 1 || LAST_ROWS == OWN_Y);
constexpr bool STRAIGHT = ALIGNED && STRAIGHT_X && STRAIGHT_Y;
// Flat kernels ask all the same when they run: where copies stand under a condition, the compiler keeps no addresses.
constexpr bool ASKS_STRAIGHT = FLAT || !STRAIGHT;
// Held cells lie at places of the outermost windows that are known here. With stages of unequal radius, other
// windows must not reach them at all.
constexpr bool CLEAR_X = TILES_X < 2 || (USE_X >= FIX_X && EXTENT_X - TILE_X - (TILES_X - 2) * USE_X >= FIX_X);
constexpr bool CLEAR_Y = TILES_Y < 2 || (USE_Y >= FIX_Y && EXTENT_Y - TILE_Y - (TILES_Y - 2) * USE_Y >= FIX_Y);
constexpr bool SNUG = STAGES == 1 || (CLEAR_X && CLEAR_Y);
// Of the ring: rows beyond the window's sides are there, but never filled.
constexpr int PLANE = (TILE_Y + 2 * EDGE_Y) * TILE_X;
// Cells of an access by one thread: to shared memory, and to device memory.
constexpr int VECTOR = VECTORS ? LANES : 1;
constexpr int WORD = ALIGNED ? LANES : 1;
// Whether a lane's row is two words. Side by side they would lie in the banks of a lane four away, so words
// change places within their pair in every other four lanes.
constexpr bool PAIRED = VECTORS && OWN_X == 2 * LANES;

// Returns where a window begins along an axis.
__device__ __forceinline__ Offset begin_y(int tile) { return tile == TILES_Y - 1 ? LAST_Y0 : Offset(tile) * USE_Y - SHIFT_Y; }
__device__ __forceinline__ Offset begin_x(int tile) { return tile == TILES_X - 1 ? LAST_X0 : Offset(tile) * USE_X - SHIFT_X; }

// Where planes of a slab go that are given to the slabs below and above, one by one where each lies in their memory; 0 where
// there is none.
template <bool> struct Given {};
template <> struct Given<true> { real* low[ARRAYS]; real* high[ARRAYS]; };

// The buffers of a launch's first pass, and those of the next: passes take them by turns.
struct Turns : Given<GIVES> { Buffers buffers[2]; };

struct alignas(VECTOR * sizeof(real)) Word { real lane[VECTOR]; };

typedef real Cells[OWN_Y][OWN_X];                        // a thread's own cells of a plane

__device__ __forceinline__ void barrier()
{
    if constexpr (WARPS > 1) __syncthreads();
    else __syncwarp();
}

// Returns how many cells at a side the `reach` ghost cells beyond it show.
__device__ constexpr int shown(int kind, int reach) { return shows_this_side(kind) && reach > 0 ? int(below(kind, -reach, 0)) + 1 : 0; }

// Returns the place of a row's cell in shared memory. Copies call it only where places differ from cells:
// even a call that returns its argument costs registers.
__device__ __forceinline__ int place(int cell) { return PAIRED ? cell ^ (cell / (8 * LANES) & 1) * LANES : cell; }

// The sides of the domain across: where the bits begin that tell how many lanes or strips lie between a
// thread's and the outermost that has cells of the domain. Bit AT_SIDE: the window is at a side along X.
enum Side { X_LOW = 0, X_HIGH = 8, Y_LOW = 16, Y_HIGH = 24 };
constexpr int AT_SIDE = 7;

struct Window {
    const Buffers& buffers;
    // [RING][FIELDS][EDGE_Y + TILE_Y + EDGE_Y][TILE_X]: planes of the input, from the warp's first row.
    real* ring;
    real* row;                           // [TILE_X] per warp: a row on its way out
    int tid, lane, warp;
    Offset y0, x0;                       // the window's first cell
    unsigned stored;                     // words of own rows that this block stores, a bit each
    unsigned held;                       // own cells that keep their value, a bit each; unless SNUG
    // Where this lane's words of the first own row are in a plane, and the first word that it stores.
    Offset corner[OWN_X / WORD], leaving;
    bool straight;                       // whether the warp's words and rows are STRAIGHT in this window
    bool bound_across;                   // whether the boundary gives values to cells of the window
    unsigned side;                       // where the window is at a side: the bits of all `Side`s (`beside`)

    __device__ __forceinline__ Offset y(int own) const { return y0 + warp * OWN_Y + own; }
    __device__ __forceinline__ Offset x(int own) const { return x0 + lane * OWN_X + own; }

    // The columns of the words that a lane stores of a row. Where a lane has two words, neighbours' words go
    // side by side: a whole sector.
    static constexpr int LEAVING_STEP = PAIRED && ALIGNED ? OWN_X : 32 * WORD;
    __device__ __forceinline__ int leaving_x() const { return PAIRED && ALIGNED ? (lane & ~1) * OWN_X + (lane & 1) * WORD : lane * WORD; }

    __device__ __forceinline__ void enter(int tile_y, int tile_x)
    {
        const bool low_side_y = tile_y == 0, high_side_y = tile_y == TILES_Y - 1;
        const bool low_side_x = tile_x == 0, high_side_x = tile_x == TILES_X - 1;
        y0 = Offset(tile_y) * USE_Y - SHIFT_Y;
        x0 = Offset(tile_x) * USE_X - SHIFT_X;
        // The cells that this block stores.
        const Offset low_y = low_side_y ? 0 : y0 + MARGIN_Y, high_y = high_side_y ? EXTENT_Y : y0 + TILE_Y - MARGIN_Y;
        const Offset low_x = low_side_x ? 0 : x0 + MARGIN_X, high_x = high_side_x ? EXTENT_X : x0 + TILE_X - MARGIN_X;
        if (high_side_y) y0 = LAST_Y0;
        if (high_side_x) x0 = LAST_X0;
        auto near = [](Side at, bool is_there, int apart) { return is_there && apart >= 0 && apart < AT_SIDE ? 1u << (at + apart) : 0u; };
        side = near(X_LOW, low_side_x, lane) | near(X_HIGH, high_side_x, LAST_LANE - lane) |
               near(Y_LOW, low_side_y, warp) | near(Y_HIGH, high_side_y, LAST_STRIP - warp);
        if (low_side_x || high_side_x) side |= 1u << AT_SIDE;
        // Where held cells are not where they are expected, windows next to the outermost may have some.
        bound_across = (!WRAPS_Y && (low_side_y || high_side_y) && FIX_Y > 0) || (!WRAPS_X && (low_side_x || high_side_x)) ||
                       (!SNUG && (y0 < FIX_Y || y0 + TILE_Y > EXTENT_Y - FIX_Y || x0 < FIX_X || x0 + TILE_X > EXTENT_X - FIX_X));
        const Offset line = first_line();
        bool in_line = line >= 0 && line + OWN_Y <= EXTENT_Y;
        each<OWN_X / WORD>([&](auto q) {
            const Offset at = column(q.value);
            in_line = in_line && is_word(at);
            corner[q.value] = line * STRIDE_Y + at;
        });
        straight = !ASKS_STRAIGHT || (ALIGNED && __all_sync(~0u, in_line));
        leaving = y(0) * STRIDE_Y + x0 + leaving_x();
        stored = held = 0;
        each<OWN_Y>([&](auto r) {
            each<OWN_X / WORD>([&](auto v) {
                const Offset at_y = y(r.value), at_x = x0 + leaving_x() + v.value * LEAVING_STEP;
                const bool ours = at_y >= low_y && at_y < high_y && at_x >= low_x && at_x < high_x;
                stored |= unsigned(ours) << (r.value * (OWN_X / WORD) + v.value);
            });
        });
        each<OWN_Y>([&](auto r) {
            each<OWN_X>([&](auto c) {
                held |= unsigned(held_y(y(r.value)) || held_x(x(c.value))) << (r.value * OWN_X + c.value);
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

    // Returns whether `apart` lanes or strips lie between the own one and a side's outermost.
    __device__ __forceinline__ bool beside(Side at, int apart) const { return side & 1u << (at + apart); }

    // Returns whether own cell `I` of the `OWN` that a thread has along an axis is one of the first COUNT of the domain, or of
    // the last, of which the last thread has `LAST`.
    template <Side AT, int OWN, int I, int COUNT>
    __device__ __forceinline__ bool first() const
    {
        constexpr unsigned MASK = outermost(AT, I, OWN, COUNT);
        return MASK != 0 && (side & MASK) != 0;
    }
    template <Side AT, int OWN, int I, int COUNT, int LAST>
    __device__ __forceinline__ bool last() const
    {
        constexpr unsigned MASK = outermost(AT, LAST - 1 - I, OWN, COUNT);
        return MASK != 0 && (side & MASK) != 0;
    }
    // The bits of the threads whose cell is one of COUNT, where that of the outermost thread lies `first` from the side.
    __device__ static constexpr unsigned outermost(Side at, int first, int own, int count)
    {
        unsigned mask = 0;
        for (int apart = 0; apart < AT_SIDE; ++apart) if (first + apart * own >= 0 && first + apart * own < count) mask |= 1u << (at + apart);
        return mask;
    }

    // Calls show(ghost, cell) for the ghost cells beyond the low side that are at most `REACH` cells away from one
    // of a thread's `OWN` cells along an axis. Places count from the thread's first cell.
    template <Side AT, int KIND, int OWN, int REACH, class Show>
    __device__ __forceinline__ void beyond_low(const Show& show) const
    {
        each<(REACH + OWN - 1) / OWN>([&](auto n) {
            constexpr int SIDE = -n.value * OWN;
            if (beside(AT, n.value)) each<REACH + SIDE>([&](auto g) { show(Index<SIDE - 1 - g.value>{}, Index<SIDE + int(below(KIND, -1 - g.value, 0))>{}); });
        });
    }

    // The same beyond the high side, of which the last thread has `LAST` cells.
    template <Side AT, int KIND, int OWN, int REACH, int LAST, class Show>
    __device__ __forceinline__ void beyond_high(const Show& show) const
    {
        each<REACH == 0 ? 0 : 1 + (REACH > LAST ? (REACH - LAST + OWN - 1) / OWN : 0)>([&](auto n) {
            constexpr int SIDE = LAST + n.value * OWN, MOST = OWN + REACH - SIDE;
            if (beside(AT, n.value)) each<MOST < REACH ? MOST : REACH>([&](auto g) { show(Index<SIDE + g.value>{}, Index<SIDE + int(above(KIND, g.value, 0))>{}); });
        });
    }

    // Returns the row from which the first own row is copied: any, if all are beyond the domain.
    __device__ __forceinline__ Offset first_line() const
    {
        const Offset first = y(0);
        if (WRAPS_Y) return first < 0 ? first + EXTENT_Y : first >= EXTENT_Y ? first - EXTENT_Y : first;
        return TILES_Y == 1 && first >= EXTENT_Y ? 0 : first;
    }

    // Returns the column of a row in memory at which word `q` of those that the lane copies begins: any, if the
    // word is beyond the domain.
    __device__ __forceinline__ Offset column(int q) const
    {
        const Offset first = x0 + (lane + q * 32) * WORD;
        if (WRAPS_X) return first < 0 ? first + EXTENT_X : first >= EXTENT_X ? first - EXTENT_X : first;
        return TILES_X == 1 && first >= EXTENT_X ? 0 : first;
    }

    // Returns whether a word begins at a column that holds cells of the domain in one row alone.
    __device__ __forceinline__ static bool is_word(Offset column)
    {
        return column >= 0 && column % WORD == 0 && column + WORD <= (WRAPS_X ? EXTENT_X : END_X);
    }

    // Starts the copy of plane `p`, or of the plane that it shows, into a slot of the ring.
    __device__ __forceinline__ void fetch(Offset p, int slot) const
    {
        const Offset plane = source_s(p).index;
        each<FIELDS>([&](auto f) {
            // An address has twice the registers of a number of cells, but the compiler moves their sums differently.
            const real* const field = buffers.current[f.value] + (SUMS_CELLS ? 0 : plane * STRIDE_S);
            const Offset begin = SUMS_CELLS ? plane * STRIDE_S : 0;
            real* const to = ring + (slot * FIELDS + f.value) * PLANE;
            if (!ASKS_STRAIGHT || straight) {
                each<OWN_Y>([&](auto r) {
                    each<OWN_X / WORD>([&](auto q) {
                        // Words of a row follow each other but for the domain's ends.
                        constexpr bool BESIDE = !WRAPS_X && TILES_X > 1;
                        constexpr int ACROSS = q.value * 32 * WORD;
                        const Offset from = begin + (BESIDE ? corner[0] + ACROSS : corner[q.value]);
                        copy_async<WORD * sizeof(real)>(to + r.value * TILE_X + (PAIRED ? place(lane * WORD + ACROSS) : lane * WORD + ACROSS), field + from + r.value * STRIDE_Y);
                    });
                });
            } else if constexpr (!STRAIGHT) {
                // A rolled loop, because its body must not be mixed with the one above.
                #pragma unroll 1
                for (int r = 0; r < OWN_Y; ++r) {
                    const real* const line = field + (begin + source_y(y(r)).index * STRIDE_Y);
                    each<OWN_X / WORD>([&](auto q) {
                        const int first = (lane + q.value * 32) * WORD;
                        real* const word = to + r * TILE_X + (PAIRED ? place(first) : first);
                        const Offset at = column(q.value);
                        if (is_word(at)) copy_async<WORD * sizeof(real)>(word, line + at);
                        else each<WORD>([&](auto c) { copy_async<sizeof(real)>(word + c.value, line + source_x(x0 + first + c.value).index); });
                    });
                }
            }
        });
    }

    // Lets held own cells of plane `q` of field F keep the values that they had in the beginning, which a slot
    // of the ring has.
    template <int F, bool ALONG>
    __device__ __forceinline__ void hold(Cells& cells, Offset q, int slot) const
    {
        const real* const plane = ring + (slot * FIELDS + F) * PLANE;
        const real* const first = PAIRED ? plane : plane + lane * OWN_X;
        auto keep = [&](int r, int c) { cells[r][c] = first[r * TILE_X + (PAIRED ? place(lane * OWN_X + c) : c)]; };
        if (ALONG && held_s(q)) {
            each<OWN_Y>([&](auto r) { each<OWN_X>([&](auto c) { keep(r.value, c.value); }); });
        } else if constexpr (SNUG) {
            // All lanes ask the first, so that the compiler sees a branch that they take together. Flat kernels, which have
            // a body for windows at a side, need not.
            if (FLAT || uniform(side) & 1u << AT_SIDE) {
                // `k` cells lie between a held cell and the side.
                each<FIX_X>([&](auto k) {
                    constexpr int LANES_LOW = k.value / OWN_X, LANES_HIGH = (k.value + OWN_X - LAST_COLUMNS) / OWN_X;
                    constexpr int LOW = k.value - LANES_LOW * OWN_X, HIGH = LAST_COLUMNS - 1 - k.value + LANES_HIGH * OWN_X;
                    each<OWN_Y>([&](auto r) {
                        if (LOW_X == FIXED && beside(X_LOW, LANES_LOW)) keep(r.value, LOW);
                        if (HIGH_X == FIXED && beside(X_HIGH, LANES_HIGH)) keep(r.value, HIGH);
                    });
                });
            }
            each<FIX_Y>([&](auto k) {
                constexpr int STRIPS_LOW = k.value / OWN_Y, STRIPS_HIGH = (k.value + OWN_Y - LAST_ROWS) / OWN_Y;
                constexpr int LOW = k.value - STRIPS_LOW * OWN_Y, HIGH = LAST_ROWS - 1 - k.value + STRIPS_HIGH * OWN_Y;
                each<OWN_X>([&](auto c) {
                    if (LOW_Y == FIXED && beside(Y_LOW, STRIPS_LOW)) keep(LOW, c.value);
                    if (HIGH_Y == FIXED && beside(Y_HIGH, STRIPS_HIGH)) keep(HIGH, c.value);
                });
            });
        } else if (__any_sync(~0u, held != 0u)) {
            // Few warps have such cells.
            each<OWN_Y>([&](auto r) {
                each<OWN_X>([&](auto c) {
                    if (held & 1u << (r.value * OWN_X + c.value)) keep(r.value, c.value);
                });
            });
        }
    }

    // Writes own cells of plane `q` of buffers in whole sectors. Where a lane has two words, neighbours exchange one;
    // single cells go by way of shared memory. The cells that a window stores begin and end with whole words.
    __device__ __forceinline__ void store(const Cells (&cells)[FIELDS], Offset q, real* const (&into)[ARRAYS]) const
    {
        each<FIELDS>([&](auto f) {
            if constexpr (written<f.value>()) {
                real* const plane = into[f.value] + (q * STRIDE_S + leaving);
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

    // Writes own cells of plane `q` into the memory of the slabs below and above, too, if it is one of those that they read.
    __device__ __forceinline__ void give(const Given<false>&, const Cells (&)[FIELDS], Offset) const {}
    __device__ __forceinline__ void give(const Given<true>& given, const Cells (&cells)[FIELDS], Offset q) const
    {
        if (GIVEN_LOW > 0 && q < OWN_FIRST + GIVEN_LOW && given.low[0] != nullptr) store(cells, q, given.low);
        if (GIVEN_HIGH > 0 && q >= OWN_LAST - GIVEN_HIGH && given.high[0] != nullptr) store(cells, q, given.high);
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

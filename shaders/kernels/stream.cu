// Streaming temporal blocking: a launch advances DEPTH steps, and each plane of the domain passes through the chip once.
//
// A block owns a window of TILE_Y × TILE_X cells across and streams along S. Plane by plane the input arrives in a ring
// in shared memory; LEVELS stages stand behind one another, and each turns the plane that arrives at it into a plane of
// its result, some planes behind. What a level keeps between planes are partial sums (see core's `carry.rs`), in
// registers. Along X the window is as wide as a warp: neighbours' cells come by shuffles. Along Y, rows at the edge of a
// warp's strip pass through shared memory: strips wait for each other at each level, or (LAG) each level takes what
// the one before it made a plane ago, so that one barrier a plane serves all. Cells near the window's sides go wrong by a radius a level and are
// not stored: neighbouring windows overlap by twice MARGIN.

constexpr int THREADS = 32 * WARPS;
constexpr int TILE_Y = WARPS * OWN_Y, TILE_X = 32 * OWN_X;
constexpr int SHIFT_Y = LOW_Y == FIXED ? 0 : MARGIN_Y;   // the first window starts where nothing outside is needed, ...
constexpr int SHIFT_X = LOW_X == FIXED ? 0 : MARGIN_X;   // ... else so far outside that nothing wrong reaches the domain
constexpr int USE_Y = TILE_Y - 2 * MARGIN_Y, USE_X = TILE_X - 2 * MARGIN_X;
constexpr int LANES = 16 / sizeof(real);                 // cells of a 16-byte access
constexpr bool VECTORS = OWN_X % LANES == 0;
constexpr bool ALIGNED = VECTORS && EXTENT_X % LANES == 0;
constexpr bool WRAPS_Y = LOW_Y == PERIODIC, WRAPS_X = LOW_X == PERIODIC;
constexpr bool MIRRORS_Y = LOW_Y == MIRROR || HIGH_Y == MIRROR, MIRRORS_X = LOW_X == MIRROR || HIGH_X == MIRROR;
constexpr bool SYNCED = EDGE_Y > 0 && LAG == 0;            // strips wait for each other level by level
// Whether windows begin and end where the domain does, so that held cells lie in the outermost lanes and warps, at a side.
constexpr bool SNUG_Y = EXTENT_Y == 1 || (LOW_Y == FIXED && HIGH_Y == FIXED && TILES_Y > 1 && FIX_Y <= OWN_Y);
constexpr bool SNUG_X = LOW_X == FIXED && HIGH_X == FIXED && TILES_X > 1 && FIX_X <= OWN_X && (!ALIGNED || (EXTENT_X - TILE_X) % LANES == 0);
// With stages of unequal radius, the windows but the outermost must not reach held cells at all.
constexpr bool CLEAR_X = TILES_X < 2 || (USE_X >= FIX_X && EXTENT_X - TILE_X - (TILES_X - 2) * USE_X >= FIX_X);
constexpr bool CLEAR_Y = TILES_Y < 2 || (USE_Y >= FIX_Y && EXTENT_Y - TILE_Y - (TILES_Y - 2) * USE_Y >= FIX_Y);
constexpr bool SNUG = SNUG_Y && SNUG_X && (STAGES == 1 || (CLEAR_X && CLEAR_Y));
enum Side { SIDE_X = 1, LANE_LOW = 2, LANE_HIGH = 4, WARP_LOW = 8, WARP_HIGH = 16 };
constexpr int PLANE = TILE_Y * TILE_X;
constexpr int VECTOR = VECTORS ? LANES : 1;              // cells of an access to shared memory by one thread, ...
constexpr int WORD = ALIGNED ? LANES : 1;                // ... and to device memory

struct alignas(VECTOR * sizeof(real)) Word { real lane[VECTOR]; };

template <int I> struct Index { static constexpr int value = I; };

// Calls f(Index<0>), f(Index<1>), … f(Index<N-1>): a loop whose counter is a constant, so that it can index registers.
template <int N, int I = 0, class F>
__device__ __forceinline__ void each(const F& f)
{
    if constexpr (I < N) { f(Index<I>{}); each<N, I + 1>(f); }
}

typedef real Cells[OWN_Y][OWN_X];                        // a thread's own cells of a plane

// The planes by which what arrives at a level is behind what arrives at the first.
template <int LEVEL>
__device__ constexpr int lag()
{
    if constexpr (LEVEL == 0) return 0;
    else return lag<LEVEL - 1>() + StageAt<(LEVEL - 1) % STAGES>::type::DELAY + LAG;
}
constexpr int BEHIND = lag<LEVELS>() - LAG;              // ... and what leaves the last

// Copies to shared memory without a detour through registers where the device can; `KEEP`: leaving a copy in the first-level
// cache, for cells that are held are read again, by way of it, at each level.
template <int BYTES, bool KEEP>
__device__ __forceinline__ void copy_async(real* to, const real* from)
{
#if __CUDA_ARCH__ >= 800
    const unsigned address = unsigned(__cvta_generic_to_shared(to));
    if constexpr (BYTES == 16 && !KEEP) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
    else asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(from), "n"(BYTES) : "memory");
#else
    if constexpr (BYTES == 16) *reinterpret_cast<DeviceVector*>(to) = __ldcg(reinterpret_cast<const DeviceVector*>(from));
    else *to = __ldcg(from);
#endif
}

__device__ __forceinline__ void copies_end()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until all but the last `N` groups of copies have arrived.
template <int N>
__device__ __forceinline__ void copies_wait()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}

// Loads where `yes`, by way of the first-level cache: nobody writes the input of a pass.
__device__ __forceinline__ void load_if(unsigned yes, double& value, const double* from)
{
    asm("{ .reg .pred p; setp.ne.u32 p, %1, 0; @p ld.global.nc.f64 %0, [%2]; }" : "+d"(value) : "r"(yes), "l"(from));
}
__device__ __forceinline__ void load_if(unsigned yes, float& value, const float* from)
{
    asm("{ .reg .pred p; setp.ne.u32 p, %1, 0; @p ld.global.nc.f32 %0, [%2]; }" : "+f"(value) : "r"(yes), "l"(from));
}

__device__ __forceinline__ void barrier()
{
    if constexpr (WARPS > 1) __syncthreads();
    else __syncwarp();
}

struct Stream {
    const Buffers& buffers;
    const Parameters& parameters;
    real* ring;                          // [AHEAD][FIELDS][TILE_Y][TILE_X]: planes of the input
    real* edges;                         // [1 + LAG][LEVELS - 1][FIELDS][WARPS][2][EDGE_Y][TILE_X]: first and last rows of strips
    real* far;                           // [LEVELS][FAR][OWN_Y * OWN_X][THREADS]: carried values beyond the registers
    real* row;                           // [TILE_X] a warp: a row on its way out
    int tid, lane, warp;
    Offset y0, x0;                       // the window's first cell
    unsigned stored;                     // words of own rows that this block stores, a bit each
    unsigned inside, held;               // own cells across that lie in the domain, and those that keep their value: a bit each
    bool whole_rows;                     // whether no cell of the window needs the boundary to find it
    bool bound_across;                   // whether the boundary gives cells of the window
    unsigned side;                       // where the window is SNUG, of the sides (Side) that it lies at
    int turn;                            // with LAG, the half of `edges` that was written last
    real near[LEVELS][NEAR > 0 ? NEAR : 1][OWN_Y][OWN_X]; // carried values in registers
    Cells arriving[LEVELS][FIELDS];      // the plane that waits before each level

    __device__ __forceinline__ Offset y(int own) const { return y0 + warp * OWN_Y + own; }
    __device__ __forceinline__ Offset x(int own) const { return x0 + lane * OWN_X + own; }

    __device__ __forceinline__ real* edge(int half, int level, int field, int strip, int last) const
    {
        return edges + ((((half * (LEVELS - 1) + level - 1) * FIELDS + field) * WARPS + strip) * 2 + last) * (EDGE_Y * TILE_X);
    }

    __device__ __forceinline__ static void load_row(const real* from, real (&cells)[OWN_X], int lane)
    {
        each<OWN_X / VECTOR>([&](auto v) {
            const Word word = *reinterpret_cast<const Word*>(from + lane * OWN_X + v.value * VECTOR);
            each<VECTOR>([&](auto l) { cells[v.value * VECTOR + l.value] = word.lane[l.value]; });
        });
    }

    __device__ __forceinline__ static void store_row(real* to, const real (&cells)[OWN_X], int lane)
    {
        each<OWN_X / VECTOR>([&](auto v) {
            Word word;
            each<VECTOR>([&](auto l) { word.lane[l.value] = cells[v.value * VECTOR + l.value]; });
            *reinterpret_cast<Word*>(to + lane * OWN_X + v.value * VECTOR) = word;
        });
    }

    template <bool KEEP>
    __device__ __forceinline__ void fetch_rows(real* to, const real* field) const
    {
        const real* const from = field + x0 + lane * WORD;
        each<OWN_Y>([&](auto r) {
            const real* const line = EXTENT_Y == 1 ? from : from + source_y(y(r.value)).index * STRIDE_Y;
            each<OWN_X / WORD>([&](auto q) {
                copy_async<WORD * sizeof(real), KEEP>(to + r.value * TILE_X + (q.value * 32 + lane) * WORD, line + q.value * 32 * WORD);
            });
        });
    }

    // Starts the copy of plane `p` into a slot of the ring.
    __device__ __forceinline__ void fetch(Offset p, int slot) const
    {
        const Source plane = source_s(p);
        each<FIELDS>([&](auto f) {
            const real* const field = buffers.current[f.value] + plane.index * STRIDE_S;
            real* const to = ring + (slot * FIELDS + f.value) * PLANE + warp * OWN_Y * TILE_X;
            if (whole_rows && !plane.constant) {
                if (HAS_FIXED && bound_across) fetch_rows<true>(to, field);
                else fetch_rows<false>(to, field);
            } else {
                // A loop in earnest, for its body must not be mixed with the one above.
                #pragma unroll 1
                for (int cell = lane; cell < OWN_Y * TILE_X; cell += 32) {
                    const Source line = source_y(y(cell / TILE_X)), column = source_x(x0 + cell % TILE_X);
                    if (plane.constant || line.constant || column.constant)
                        to[cell] = plane.constant ? plane.value : line.constant ? line.value : column.value;
                    else copy_async<sizeof(real), true>(to + cell, field + line.index * STRIDE_Y + column.index);
                }
            }
        });
    }

    // What a formula sees of own cell (y, x): cells of the arriving plane, and what was carried.
    template <class S, int LEVEL, int Y, int X>
    struct View {
        Stream& stream;
        const real (&wide)[FIELDS][OWN_Y + 2 * S::RADIUS_Y][OWN_X + 2 * S::RADIUS_X];
        real (&distant)[FAR > 0 ? FAR : 1][OWN_Y][OWN_X];
        Offset plane;                    // the plane that arrives

        template <int F, int DY, int DX>
        __device__ __forceinline__ real now() const { return wide[F][Y + S::RADIUS_Y + DY][X + S::RADIUS_X + DX]; }
        template <int K>
        __device__ __forceinline__ real& carried() const
        {
            if constexpr (K < NEAR) return stream.near[LEVEL][K][Y][X];
            else return distant[K - NEAR][Y][X];
        }
        __device__ __forceinline__ real parameter(int i) const { return stream.parameters.value[i]; }
        // The coordinate of the cell whose plane lies `D` planes before the arriving one.
        template <int AXIS, int D>
        __device__ __forceinline__ real coordinate() const
        {
            const Source at = AXIS == AXIS_S ? source_s(plane - D) : AXIS == AXIS_Y ? source_y(stream.y(Y)) : source_x(stream.x(X));
            return real(at.index);
        }
    };

    // Rows of other strips beside the own cells of field F, as far as the stage taps them.
    template <class S, int LEVEL, bool EDGE, int F, class Wide>
    __device__ __forceinline__ void rows_beside(Wide& wide, int slot) const
    {
        constexpr int RY = S::RADIUS_Y, RX = S::RADIUS_X, UP = -S::low_y(F), DOWN = S::high_y(F);
        each<UP + DOWN>([&](auto i) {
            constexpr bool above = i.value < UP;
            constexpr int R = above ? -1 - i.value : OWN_Y + i.value - UP;
            real cells[OWN_X];
            if constexpr (LEVEL == 0) {
                const int at = warp * OWN_Y + R;
                load_row(ring + (slot * FIELDS + F) * PLANE + (at < 0 ? 0 : at >= TILE_Y ? TILE_Y - 1 : at) * TILE_X, cells, lane);
            } else {
                // Beyond the window's sides any row will do.
                const int strip = warp + (above ? -1 : 1), at = strip < 0 ? 0 : strip >= WARPS ? WARPS - 1 : strip;
                constexpr int K = above ? EDGE_Y + R : R - OWN_Y;
                load_row(edge(turn, LEVEL, F, at, above) + K * TILE_X, cells, lane);
            }
            each<OWN_X>([&](auto c) { wide[R + RY][c.value + RX] = cells[c.value]; });
        });
        if constexpr (EDGE && MIRRORS_Y) {
            // One ghost row mirrors the row at the edge; the planner admits no larger radius.
            each<OWN_Y + 2 * RY>([&](auto r) {
                const Offset at = y(r.value - RY);
                if constexpr (RY > 0 && LOW_Y == MIRROR && r.value + 1 < OWN_Y + 2 * RY)
                    if (at == -1) each<OWN_X>([&](auto c) { wide[r.value][c.value + RX] = wide[r.value + 1][c.value + RX]; });
                if constexpr (RY > 0 && HIGH_Y == MIRROR && r.value > 0)
                    if (at == EXTENT_Y) each<OWN_X>([&](auto c) { wide[r.value][c.value + RX] = wide[r.value - 1][c.value + RX]; });
            });
        }
    }

    // Columns of other lanes beside row `R - RADIUS_Y` of field F, as far as taps of any own row reach.
    template <class S, bool EDGE, int F, int R, class Wide>
    __device__ __forceinline__ void columns_beside(Wide& wide) const
    {
        constexpr int RY = S::RADIUS_Y, RX = S::RADIUS_X;
        constexpr int LEFT = S::template reach_x<F>(R - RY, true), RIGHT = S::template reach_x<F>(R - RY, false);
        each<LEFT>([&](auto i) {
            constexpr int K = i.value + 1, STEP = (K + OWN_X - 1) / OWN_X, FROM = STEP * OWN_X - K;
            wide[R][RX - K] = __shfl_up_sync(~0u, wide[R][RX + FROM], STEP);
        });
        each<RIGHT>([&](auto i) {
            constexpr int K = i.value, STEP = K / OWN_X + 1, FROM = K % OWN_X;
            wide[R][RX + OWN_X + K] = __shfl_down_sync(~0u, wide[R][RX + FROM], STEP);
        });
        if constexpr (EDGE && MIRRORS_X) {
            each<OWN_X + 2 * RX>([&](auto c) {
                const Offset at = x(c.value - RX);
                if constexpr (RX > 0 && LOW_X == MIRROR && c.value + 1 < OWN_X + 2 * RX)
                    if (at == -1) wide[R][c.value] = wide[R][c.value + 1];
                if constexpr (RX > 0 && HIGH_X == MIRROR && c.value > 0)
                    if (at == EXTENT_X) wide[R][c.value] = wide[R][c.value - 1];
            });
        }
    }

    // The values that the boundary gives to own cells of plane `q` of field F.
    template <int F>
    __device__ __forceinline__ void bound(Cells& cells, Offset q) const
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
            // A cell that is held has the value it had in the beginning, which the input still has. Few warps have such
            // cells. Loads are predicated and not branched around: lanes that part would meet again only at a price.
            const bool plane_there = LOW_S == PERIODIC || (q >= 0 && q < EXTENT_S), plane_held = held_s(q);
            const real* const plane = buffers.current[F] + (LOW_S == PERIODIC ? a.index : q) * STRIDE_S;
            const real* const own = plane + (y(0) * STRIDE_Y + x(0));
            if (SNUG && !plane_held) {
                if (side & SIDE_X && plane_there) {
                    const bool low = side & LANE_LOW, high = side & LANE_HIGH;
                    each<OWN_Y>([&](auto r) {
                        each<FIX_X>([&](auto k) {
                            constexpr int LOW = k.value, HIGH = OWN_X - 1 - k.value;
                            real value = real(0);
                            load_if(low || high, value, own + (r.value * STRIDE_Y + (low ? LOW : HIGH)));
                            cells[r.value][LOW] = low ? value : cells[r.value][LOW];
                            cells[r.value][HIGH] = high ? value : cells[r.value][HIGH];
                        });
                    });
                }
                if (side & (WARP_LOW | WARP_HIGH) && plane_there) {
                    const bool low = side & WARP_LOW, high = side & WARP_HIGH;
                    each<FIX_Y>([&](auto k) {
                        each<OWN_X>([&](auto c) {
                            load_if(low, cells[k.value][c.value], own + (k.value * STRIDE_Y + c.value));
                            load_if(high, cells[OWN_Y - 1 - k.value][c.value], own + ((OWN_Y - 1 - k.value) * STRIDE_Y + c.value));
                        });
                    });
                }
            } else {
                const unsigned hold = plane_there ? plane_held ? inside : held : 0u;
                if (__any_sync(~0u, hold != 0u)) {
                    each<OWN_Y>([&](auto r) {
                        const real* const line = WRAPS_Y ? plane + source_y(y(r.value)).index * STRIDE_Y + x(0) : own + r.value * STRIDE_Y;
                        each<OWN_X>([&](auto c) {
                            const real* const cell = WRAPS_X ? line - x(0) + source_x(x(c.value)).index : line + c.value;
                            load_if(hold & 1u << (r.value * OWN_X + c.value), cells[r.value][c.value], cell);
                        });
                    });
                }
            }
        }
    }

    // Own cells take the arriving plane `p` and give the plane DELAY before it.
    template <int LEVEL, bool EDGE, class Wide, class Distant>
    __device__ __forceinline__ void take(const Wide& wide, Distant& distant, Cells (&out)[FIELDS], Offset p)
    {
        typedef typename StageAt<LEVEL % STAGES>::type S;
        auto arrive = [&]() {
            each<OWN_Y>([&](auto r) {
                constexpr int R = r.value;
                each<OWN_X>([&](auto c) {
                    constexpr int C = c.value;
                    const View<S, LEVEL, R, C> view = {*this, wide, distant, p};
                    real value[FIELDS];
                    S::arrive(view, value);
                    each<FIELDS>([&](auto f) { out[f.value][R][C] = value[f.value]; });
                });
            });
        };
        if constexpr (EDGE && LOW_S == MIRROR && S::BACK > 0) {
            // The plane before the first mirrors it: the first arrives twice.
            #pragma unroll 1
            for (int times = p == 0 ? 2 : 1; times > 0; --times) arrive();
        } else arrive();
        if constexpr (EDGE && (HAS_FIXED || HAS_CONSTANT))
            each<S::WRITES>([&](auto o) { bound<S::writes(o.value)>(out[S::writes(o.value)], p - S::DELAY); });
    }

    // A stage turns the plane `p` that arrives at it into the plane DELAY before it.
    template <int LEVEL, bool EDGE>
    __device__ __forceinline__ void level(const Cells (&in)[FIELDS], Cells (&out)[FIELDS], Offset p, int slot)
    {
        typedef typename StageAt<LEVEL % STAGES>::type S;
        constexpr int RY = S::RADIUS_Y, RX = S::RADIUS_X;
        constexpr bool EARLY = !(EDGE && MIRRORS_Y);     // whether own rows have all they need before those beside arrive
        real wide[FIELDS][OWN_Y + 2 * RY][OWN_X + 2 * RX];
        each<FIELDS>([&](auto f) {
            constexpr int F = f.value;
            each<OWN_Y>([&](auto r) { each<OWN_X>([&](auto c) { wide[F][r.value + RY][c.value + RX] = in[F][r.value][c.value]; }); });
            if constexpr (EARLY) each<OWN_Y>([&](auto r) { columns_beside<S, EDGE, F, r.value + RY>(wide[F]); });
        });
        // Now all strips have the plane's copies and have published the level's rows, and are done with those before.
        if constexpr (SYNCED) barrier();
        each<FIELDS>([&](auto f) {
            constexpr int F = f.value;
            rows_beside<S, LEVEL, EDGE, F>(wide[F], slot);
            each<OWN_Y + 2 * RY>([&](auto r) {
                constexpr bool own = r.value >= RY && r.value < OWN_Y + RY;
                if constexpr (!(own && EARLY)) columns_beside<S, EDGE, F, r.value>(wide[F]);
            });
        });
        real distant[FAR > 0 ? FAR : 1][OWN_Y][OWN_X];
        constexpr int HERE = S::CARRIED > NEAR ? S::CARRIED - NEAR : 0;
        Word* const words = reinterpret_cast<Word*>(far) + LEVEL * FAR * (OWN_Y * OWN_X / VECTOR) * THREADS + tid;
        each<HERE * OWN_Y * (OWN_X / VECTOR)>([&](auto i) {
            constexpr int V = i.value % (OWN_X / VECTOR), R = i.value / (OWN_X / VECTOR) % OWN_Y, K = i.value / (OWN_X / VECTOR) / OWN_Y;
            const Word word = words[i.value * THREADS];
            each<VECTOR>([&](auto l) { distant[K][R][V * VECTOR + l.value] = word.lane[l.value]; });
        });
        take<LEVEL, EDGE>(wide, distant, out, p);
        if constexpr (SYNCED && LEVEL < LEVELS - 1) publish<LEVEL + 1>(out);
        each<HERE * OWN_Y * (OWN_X / VECTOR)>([&](auto i) {
            constexpr int V = i.value % (OWN_X / VECTOR), R = i.value / (OWN_X / VECTOR) % OWN_Y, K = i.value / (OWN_X / VECTOR) / OWN_Y;
            Word word;
            each<VECTOR>([&](auto l) { word.lane[l.value] = distant[K][R][V * VECTOR + l.value]; });
            words[i.value * THREADS] = word;
        });
    }

    // Hands the plane that a level made to the next: the own cells stay, rows at the strip's edge go to shared memory.
    template <int LEVEL, bool EDGE>
    __device__ __forceinline__ void hand_on(const Cells (&made)[FIELDS], Offset q)
    {
        // Beyond the last plane, a mirror shows the last.
        if (EDGE && HIGH_S == MIRROR && q >= EXTENT_S) return;
        each<FIELDS>([&](auto f) {
            each<OWN_Y>([&](auto r) { each<OWN_X>([&](auto c) { arriving[LEVEL][f.value][r.value][c.value] = made[f.value][r.value][c.value]; }); });
        });
    }

    // The rows that other strips read of the plane that waits before a level.
    template <int LEVEL>
    __device__ __forceinline__ void publish(const Cells (&waiting)[FIELDS]) const
    {
        typedef typename StageAt<LEVEL % STAGES>::type S;
        each<FIELDS>([&](auto f) {
            constexpr int UP = -S::low_y(f.value), DOWN = S::high_y(f.value);
            each<DOWN>([&](auto k) { store_row(edge(turn, LEVEL, f.value, warp, 0) + k.value * TILE_X, waiting[f.value][k.value], lane); });
            each<UP>([&](auto k) {
                constexpr int K = EDGE_Y - 1 - k.value, R = OWN_Y - 1 - k.value;
                store_row(edge(turn, LEVEL, f.value, warp, 1) + K * TILE_X, waiting[f.value][R], lane);
            });
        });
    }

    // All levels take a plane each; `p` arrives at the first.
    template <bool EDGE>
    __device__ __forceinline__ void step(Offset p, int slot, Cells (&out)[FIELDS])
    {
        if constexpr (LAG > 0) {
            // From the last to the first: each takes what the one before it made a plane ago.
            each<LEVELS>([&](auto i) {
                constexpr int LEVEL = LEVELS - 1 - i.value, DELAY = StageAt<LEVEL % STAGES>::type::DELAY;
                const Offset here = p - lag<LEVEL>();
                if constexpr (LEVEL == LEVELS - 1) level<LEVEL, EDGE>(arriving[LEVEL], out, here, slot);
                else {
                    Cells made[FIELDS];
                    level<LEVEL, EDGE>(arriving[LEVEL], made, here, slot);
                    hand_on<LEVEL + 1, EDGE>(made, here - DELAY);
                }
            });
            turn ^= 1;
            each<LEVELS - 1>([&](auto l) { publish<l.value + 1>(arriving[l.value + 1]); });
        } else {
            each<LEVELS>([&](auto l) {
                constexpr int LEVEL = l.value;
                if constexpr (LEVEL == LEVELS - 1) level<LEVEL, EDGE>(arriving[LEVEL], out, p - lag<LEVEL>(), slot);
                else level<LEVEL, EDGE>(arriving[LEVEL], arriving[LEVEL + 1], p - lag<LEVEL>(), slot);
                if constexpr (SYNCED && LEVEL == 0) fetch_next(p, slot);
            });
        }
    }

    // Stores own cells of plane `q`, a row at a time by way of shared memory, so that stores are whole sectors. What a window
    // stores begins and ends with whole words.
    __device__ __forceinline__ void store(const Cells (&cells)[FIELDS], Offset q) const
    {
        each<FIELDS>([&](auto f) {
            if constexpr (written<f.value>()) {
                real* const plane = buffers.next[f.value] + q * STRIDE_S + (y(0) * STRIDE_Y + x0 + lane * WORD);
                each<OWN_Y>([&](auto r) {
                    if constexpr (OWN_X > WORD) {
                        __syncwarp();
                        store_row(row, cells[f.value][r.value], lane);
                        __syncwarp();
                    }
                    each<OWN_X / WORD>([&](auto v) {
                        real part[WORD];
                        each<WORD>([&](auto l) {
                            part[l.value] = OWN_X > WORD ? row[(v.value * 32 + lane) * WORD + l.value] : cells[f.value][r.value][l.value];
                        });
                        if (stored & 1u << (r.value * (OWN_X / WORD) + v.value)) {
                            real* const to = plane + (r.value * STRIDE_Y + v.value * 32 * WORD);
                            if constexpr (ALIGNED) {
                                DeviceVector word;
                                memcpy(&word, part, 16);
                                *reinterpret_cast<DeviceVector*>(to) = word;
                            } else *to = part[0];
                        }
                    });
                });
            }
        });
    }

    // Starts the copy of the plane that is AHEAD - 1 planes away, into the slot of the plane that all are done with.
    __device__ __forceinline__ void fetch_next(Offset p, int slot) const
    {
        fetch(p + AHEAD - 1, slot == 0 ? AHEAD - 1 : slot - 1);
        copies_end();
    }

    // Plane `p` arrives; planes first … last - 1 of the result are stored.
    template <bool EDGE>
    __device__ __forceinline__ void advance(Offset p, Offset first, Offset last, int& slot)
    {
        copies_wait<AHEAD - 2>();
        if constexpr (SYNCED) {
            // The lanes of the warp have each other's copies; level 0 waits for the other warps'.
            __syncwarp();
        } else {
            barrier();
            fetch_next(p, slot);
        }
        each<FIELDS>([&](auto f) {
            each<OWN_Y>([&](auto r) {
                load_row(ring + (slot * FIELDS + f.value) * PLANE + (warp * OWN_Y + r.value) * TILE_X, arriving[0][f.value][r.value], lane);
            });
        });
        Cells out[FIELDS];
        step<EDGE>(p, slot, out);
        const Offset q = p - BEHIND;
        if (q >= first && q < last) store(out, q);
        slot = slot == AHEAD - 1 ? 0 : slot + 1;
    }

    __device__ __forceinline__ void run(Offset first, Offset last)
    {
        Offset p = LOW_S == FIXED && first < MARGIN_S ? 0 : first - MARGIN_S;
        each<AHEAD - 1>([&](auto i) { fetch(p + i.value, i.value); copies_end(); });
        // Planes between these two meet no boundary of S at any level.
        const Offset low = bound_across ? last + BEHIND : LOW_S == PERIODIC ? p : BEHIND + FIX_S;
        const Offset high = HIGH_S == PERIODIC ? last + BEHIND : EXTENT_S - FIX_S;
        int slot = 0;
        #pragma unroll 1
        while (p < last + BEHIND) {
            const Offset end = last + BEHIND;
            #pragma unroll 1
            for (const Offset stop = p >= high || low > end ? end : low; p < stop; ++p) advance<true>(p, first, last, slot);
            #pragma unroll 1
            for (const Offset stop = high < end ? high : end; p < stop; ++p) advance<false>(p, first, last, slot);
        }
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_MULTIPROCESSOR)
stream(const __grid_constant__ Buffers buffers, const __grid_constant__ Parameters parameters)
{
    extern __shared__ __align__(16) unsigned char shared[];
    // Windows at the domain's sides take longer, for each level asks the boundary: they make fewer planes each, CUT times
    // as many make up for it, and they go first.
    constexpr int SIDES = CUT > 1 ? (TILES_X < 2 ? TILES_X : 2) : 0, SIDE_BLOCKS = SIDES * TILES_S * CUT;
    const int block = blockIdx.x - SIDE_BLOCKS;
    const bool at_side = CUT > 1 && block < 0;
    const int side_block = blockIdx.x;
    constexpr int ROW = SIDES > 0 ? SIDES : 1, MIDDLE = TILES_X > SIDES ? TILES_X - SIDES : 1;
    const int tile_s = at_side ? side_block / ROW : block / (TILES_Y * MIDDLE);
    const int tile_y = at_side ? 0 : block / MIDDLE % TILES_Y;
    const int tile_x = at_side ? side_block % ROW * (TILES_X - 1) : block % MIDDLE + (SIDES > 0);
    const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
    Stream stream = {buffers, parameters};
    stream.ring = reinterpret_cast<real*>(shared);
    stream.edges = stream.ring + AHEAD * FIELDS * PLANE;
    stream.far = stream.edges + (1 + LAG) * (LEVELS - 1) * FIELDS * WARPS * 2 * EDGE_Y * TILE_X;
    stream.row = stream.far + LEVELS * FAR * PLANE + warp * TILE_X;
    stream.tid = tid;
    stream.lane = lane;
    stream.warp = warp;
    stream.turn = 0;
    stream.y0 = Offset(tile_y) * USE_Y - SHIFT_Y;
    stream.x0 = Offset(tile_x) * USE_X - SHIFT_X;
    // What this block stores.
    const Offset low_y = tile_y == 0 ? 0 : stream.y0 + MARGIN_Y, high_y = tile_y == TILES_Y - 1 ? EXTENT_Y : stream.y0 + TILE_Y - MARGIN_Y;
    const Offset low_x = tile_x == 0 ? 0 : stream.x0 + MARGIN_X, high_x = tile_x == TILES_X - 1 ? EXTENT_X : stream.x0 + TILE_X - MARGIN_X;
    const bool low_side = tile_x == 0, high_side = tile_x == TILES_X - 1;
    if (SNUG && high_side) stream.x0 = EXTENT_X - TILE_X;
    if (SNUG && TILES_Y > 1 && tile_y == TILES_Y - 1) stream.y0 = EXTENT_Y - TILE_Y;
    stream.side = (low_side || high_side ? SIDE_X : 0) | (low_side && lane == 0 ? LANE_LOW : 0) | (high_side && lane == 31 ? LANE_HIGH : 0) |
                  (TILES_Y > 1 && tile_y == 0 && warp == 0 ? WARP_LOW : 0) | (TILES_Y > 1 && tile_y == TILES_Y - 1 && warp == WARPS - 1 ? WARP_HIGH : 0);
    const Offset y1 = stream.y0 + TILE_Y, x1 = stream.x0 + TILE_X;
    // Rows beyond the domain are found by clamping unless they have a constant for all cells.
    stream.whole_rows = stream.x0 >= 0 && x1 <= EXTENT_X && (LOW_Y != CONSTANT || stream.y0 >= 0) && (HIGH_Y != CONSTANT || y1 <= EXTENT_Y);
    stream.bound_across = (LOW_Y != PERIODIC && stream.y0 < FIX_Y) || (HIGH_Y != PERIODIC && y1 > EXTENT_Y - FIX_Y) ||
                          (LOW_X != PERIODIC && stream.x0 < FIX_X) || (HIGH_X != PERIODIC && x1 > EXTENT_X - FIX_X);
    stream.stored = stream.inside = stream.held = 0;
    each<OWN_Y>([&](auto r) {
        each<OWN_X / WORD>([&](auto v) {
            const Offset y = stream.y(r.value), x = stream.x0 + (v.value * 32 + lane) * WORD;
            const bool ours = y >= low_y && y < high_y && x >= low_x && x < high_x;
            stream.stored |= unsigned(ours) << (r.value * (OWN_X / WORD) + v.value);
        });
    });
    each<OWN_Y>([&](auto r) {
        each<OWN_X>([&](auto c) {
            const Offset y = stream.y(r.value), x = stream.x(c.value);
            const bool in = (WRAPS_Y || (y >= 0 && y < EXTENT_Y)) && (WRAPS_X || (x >= 0 && x < EXTENT_X));
            stream.inside |= unsigned(in) << (r.value * OWN_X + c.value);
            stream.held |= unsigned(in && (held_y(y) || held_x(x))) << (r.value * OWN_X + c.value);
        });
    });
    each<LEVELS>([&](auto l) {
        each<NEAR>([&](auto k) { each<OWN_Y>([&](auto r) { each<OWN_X>([&](auto c) { stream.near[l.value][k.value][r.value][c.value] = real(0); }); }); });
        each<FIELDS>([&](auto f) { each<OWN_Y>([&](auto r) { each<OWN_X>([&](auto c) { stream.arriving[l.value][f.value][r.value][c.value] = real(0); }); }); });
    });
    const Offset chunk = at_side ? (CHUNK + CUT - 1) / CUT : CHUNK;
    const Offset first = Offset(tile_s) * chunk, last = first + chunk < EXTENT_S ? first + chunk : EXTENT_S;
    if (first < last) stream.run(first, last);
}

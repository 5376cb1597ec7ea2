// A block of threads and the tile that it owns: the places where planes stay, and the ways of cells there and
// back.

constexpr int THREADS = THREADS_Y * THREADS_X;
constexpr int TILE_Y = THREADS_Y * OWN_Y;            // cells of a tile's plane
constexpr int TILE_X = THREADS_X * OWN_X;
constexpr int TILE_COUNT = TILES_S * TILES_Y * TILES_X;
constexpr int ROUNDS = (TILE_COUNT + BLOCKS - 1) / BLOCKS;
constexpr int LANES = 16 / sizeof(real);             // cells of a 16-byte access
constexpr bool RAGGED = EXTENT_Y % TILE_Y != 0 || EXTENT_X % TILE_X != 0;
// Whether a thread's cells of a row are whole 16-byte words: in shared memory, and in device memory too.
constexpr bool VECTORS = OWN_X % LANES == 0;
constexpr bool ALIGNED = VECTORS && PITCH % LANES == 0;
constexpr int DYNAMIC = -1000000;                    // a plane number that is not known when compiling

struct alignas(16) Vector { real lane[LANES]; };

typedef real Cells[OWN_Y][OWN_X];                    // a thread's own cells of a plane

struct Block {
    real* in[FIELDS];          // current values; complete for tiles in device memory, else the rims
    real* out[FIELDS];         // the next
    real* planes;              // [FIELDS][PLANES_SHARED][TILE_Y][TILE_X]
    real* ring;                // two halves, used by turns
    unsigned half;             // the ring's half of the next exchange
    int tid, ty, tx;
    // The tile at hand.
    int planes_here;           // the tile's planes
    Offset s0, y0, x0;         // the tile's first cell
    int live_y, live_x;        // the tile's cells across that lie in the domain
    const Parameters* parameters;
    const real* varying;       // what varies, from the step's first stage

    __device__ __forceinline__ void enter(int tile)
    {
        const int row = tile / (TILES_Y * TILES_X), y = tile / TILES_X % TILES_Y, x = tile % TILES_X;
        constexpr int extra = EXTENT_S % TILES_S;
        planes_here = EXTENT_S / TILES_S + (row < extra ? 1 : 0);
        s0 = Offset(row) * (EXTENT_S / TILES_S) + (row < extra ? row : extra);
        y0 = Offset(y) * TILE_Y;
        x0 = Offset(x) * TILE_X;
        live_y = EXTENT_Y - y0 < TILE_Y ? int(EXTENT_Y - y0) : TILE_Y;
        live_x = EXTENT_X - x0 < TILE_X ? int(EXTENT_X - x0) : TILE_X;
    }

    __device__ __forceinline__ int own_y(int y) const { return ty * OWN_Y + y; }
    __device__ __forceinline__ int own_x(int x) const { return tx * OWN_X + x; }
    __device__ __forceinline__ bool live(int y, int x) const { return !RAGGED || (own_y(y) < live_y && own_x(x) < live_x); }
    __device__ __forceinline__ Offset across(int y, int x) const { return (y0 + own_y(y)) * STRIDE_Y + x0 + own_x(x); }

    // Own cells of a plane of device memory. Loads go past the first-level cache, which does not see other
    // blocks' stores.
    __device__ __forceinline__ void load_device(const real* plane, Cells& cells) const
    {
        each<OWN_Y>([&](auto y) {
            if constexpr (ALIGNED) {
                each<OWN_X / LANES>([&](auto v) {
                    constexpr int X = v.value * LANES;
                    if (live(y.value, X)) {
                        const DeviceVector word = __ldcg(reinterpret_cast<const DeviceVector*>(plane + across(y.value, X)));
                        Vector part;
                        memcpy(&part, &word, 16);
                        each<LANES>([&](auto l) { cells[y.value][X + l.value] = part.lane[l.value]; });
                    }
                });
            } else {
                each<OWN_X>([&](auto x) {
                    if (live(y.value, x.value)) cells[y.value][x.value] = __ldcg(plane + across(y.value, x.value));
                });
            }
        });
    }

    __device__ __forceinline__ void store_device(real* plane, const Cells& cells) const
    {
        each<OWN_Y>([&](auto y) {
            if constexpr (ALIGNED) {
                each<OWN_X / LANES>([&](auto v) {
                    constexpr int X = v.value * LANES;
                    if (live(y.value, X)) {
                        Vector part;
                        each<LANES>([&](auto l) { part.lane[l.value] = cells[y.value][X + l.value]; });
                        DeviceVector word;
                        memcpy(&word, &part, 16);
                        __stcg(reinterpret_cast<DeviceVector*>(plane + across(y.value, X)), word);
                    }
                });
            } else {
                each<OWN_X>([&](auto x) {
                    if (live(y.value, x.value)) __stcg(plane + across(y.value, x.value), cells[y.value][x.value]);
                });
            }
        });
    }

    // Own cells into a plane of the ring, whose rows are `pitch` apart.
    __device__ __forceinline__ void store_ring(real* first, int pitch, const Cells& cells) const
    {
        each<OWN_Y>([&](auto y) {
            real* row = first + own_y(y.value) * pitch + own_x(0);
            if constexpr (VECTORS && !RAGGED) {
                each<OWN_X / LANES>([&](auto v) {
                    Vector part;
                    each<LANES>([&](auto l) { part.lane[l.value] = cells[y.value][v.value * LANES + l.value]; });
                    *reinterpret_cast<Vector*>(row + v.value * LANES) = part;
                });
            } else {
                each<OWN_X>([&](auto x) { if (live(y.value, x.value)) row[x.value] = cells[y.value][x.value]; });
            }
        });
    }

    // A plane in shared memory, where only the owner of a cell touches it: word by word of all threads in a
    // row, so that neighbouring threads use neighbouring banks.
    __device__ __forceinline__ real* kept_plane(int field, int plane) const
    {
        return planes + (field * PLANES_SHARED + plane - PLANES_REGISTERS) * (TILE_Y * TILE_X);
    }

    __device__ __forceinline__ void load_kept(int field, int plane, Cells& cells) const
    {
        const real* from = kept_plane(field, plane);
        each<OWN_Y>([&](auto y) {
            if constexpr (VECTORS) {
                each<OWN_X / LANES>([&](auto v) {
                    const int word = (y.value * (OWN_X / LANES) + v.value) * THREADS + tid;
                    const Vector part = reinterpret_cast<const Vector*>(from)[word];
                    each<LANES>([&](auto l) { cells[y.value][v.value * LANES + l.value] = part.lane[l.value]; });
                });
            } else {
                each<OWN_X>([&](auto x) { cells[y.value][x.value] = from[(y.value * OWN_X + x.value) * THREADS + tid]; });
            }
        });
    }

    __device__ __forceinline__ void store_kept(int field, int plane, const Cells& cells) const
    {
        real* to = kept_plane(field, plane);
        each<OWN_Y>([&](auto y) {
            if constexpr (VECTORS) {
                each<OWN_X / LANES>([&](auto v) {
                    const int word = (y.value * (OWN_X / LANES) + v.value) * THREADS + tid;
                    Vector part;
                    each<LANES>([&](auto l) { part.lane[l.value] = cells[y.value][v.value * LANES + l.value]; });
                    reinterpret_cast<Vector*>(to)[word] = part;
                });
            } else {
                each<OWN_X>([&](auto x) { to[(y.value * OWN_X + x.value) * THREADS + tid] = cells[y.value][x.value]; });
            }
        });
    }

    // Own cells of plane `p` of the tile from wherever it stays; beyond the tile, of its neighbour's rim or
    // the boundary. `AT` is `p` where that is known when compiling, as it must be for a plane in registers.
    template <bool CACHED, int AT, class Kept>
    __device__ __forceinline__ void load_plane(const Kept& kept, int field, const real* from, int p, Cells& cells) const
    {
        if constexpr (CACHED && AT >= 0 && AT < PLANES_REGISTERS) {
            each<OWN_Y>([&](auto y) { each<OWN_X>([&](auto x) { cells[y.value][x.value] = kept[field][AT][y.value][x.value]; }); });
        } else {
            const bool within = p >= 0 && (p < PLANES_LEAST || p < planes_here);
            if (CACHED && within && p < PLANES_REGISTERS + PLANES_SHARED) {
                load_kept(field, p, cells);
            } else {
                Source plane = {s0 + p, false, real(0)};
                if (!within) plane = source_s(s0 + p);
                if (plane.constant) {
                    each<OWN_Y>([&](auto y) { each<OWN_X>([&](auto x) { cells[y.value][x.value] = plane.value; }); });
                } else {
                    load_device(from + plane.index * STRIDE_S, cells);
                }
            }
        }
    }

    // Whether blocks beside the tile need this cell of it, given the reach of their taps.
    __device__ __forceinline__ bool rim(int reach_y, int reach_x, int y, int x) const
    {
        const int a = own_y(y), b = own_x(x);
        return a < reach_y || a >= live_y - reach_y || b < reach_x || b >= live_x - reach_x;
    }

    // Keeps the new cells of plane `p` at its place, and publishes its rim.
    template <bool CACHED, int AT, int FIELD, class Kept>
    __device__ __forceinline__ void store_plane(Kept& kept, int p, const Cells& cells) const
    {
        real* plane = out[FIELD] + (s0 + p) * STRIDE_S;
        bool on_chip = false;
        if constexpr (CACHED && AT >= 0 && AT < PLANES_REGISTERS) {
            each<OWN_Y>([&](auto y) { each<OWN_X>([&](auto x) { kept[FIELD][AT][y.value][x.value] = cells[y.value][x.value]; }); });
            on_chip = true;
        } else if (CACHED && p < PLANES_REGISTERS + PLANES_SHARED) {
            store_kept(FIELD, p, cells);
            on_chip = true;
        }
        constexpr int reach_s = reach<FIELD>(0), reach_y = reach<FIELD>(1), reach_x = reach<FIELD>(2);
        if (!on_chip || p < reach_s || p >= planes_here - reach_s) {
            store_device(plane, cells);
        } else if (reach_y > 0 || reach_x > 0) {
            each<OWN_Y>([&](auto y) {
                each<OWN_X>([&](auto x) {
                    // A thread's inner columns are never a rim when its cells are as wide as the reach.
                    constexpr bool inner = reach_y == 0 && !RAGGED && x.value >= reach_x && x.value < OWN_X - reach_x;
                    if (!inner && live(y.value, x.value) && rim(reach_y, reach_x, y.value, x.value))
                        __stcg(plane + across(y.value, x.value), cells[y.value][x.value]);
                });
            });
        }
    }

    template <bool CACHED, class Kept>
    __device__ __forceinline__ void load_tile(Kept& kept) const
    {
        each<FIELDS>([&](auto field) {
            constexpr int F = field.value;
            each<PLANES_REGISTERS>([&](auto p) {
                Cells cells = {};
                load_device(in[F] + (s0 + p.value) * STRIDE_S, cells);
                each<OWN_Y>([&](auto y) { each<OWN_X>([&](auto x) { kept[F][p.value][y.value][x.value] = cells[y.value][x.value]; }); });
            });
            for (int p = PLANES_REGISTERS; p < PLANES_REGISTERS + PLANES_SHARED && p < planes_here; ++p) {
                Cells cells = {};
                load_device(in[F] + (s0 + p) * STRIDE_S, cells);
                store_kept(F, p, cells);
            }
        });
        __syncthreads();
    }

    template <class Kept>
    __device__ __forceinline__ void store_tile(const Kept& kept) const
    {
        each<FIELDS>([&](auto field) {
            constexpr int F = field.value;
            if constexpr (written<F>()) {
                each<PLANES_REGISTERS>([&](auto p) {
                    Cells cells;
                    each<OWN_Y>([&](auto y) { each<OWN_X>([&](auto x) { cells[y.value][x.value] = kept[F][p.value][y.value][x.value]; }); });
                    store_device(in[F] + (s0 + p.value) * STRIDE_S, cells);
                });
                for (int p = PLANES_REGISTERS; p < PLANES_REGISTERS + PLANES_SHARED && p < planes_here; ++p) {
                    Cells cells;
                    load_kept(F, p, cells);
                    store_device(in[F] + (s0 + p) * STRIDE_S, cells);
                }
            }
        });
    }
};

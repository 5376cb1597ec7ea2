// A sweep: one stage over one tile, plane by plane, through a window that slides along in registers.

// The values that a formula sees of cell (k, y, x) of a chunk: planes of the sweep, and fields that it reads
// only at the cell itself.
template <class S, class Sweep, int K, int Y, int X>
struct View {
    const Sweep& sweep;
    const real (&narrow_cells)[Sweep::NARROW][CHUNK][OWN_Y][OWN_X];
    Offset s;

    template <int F, int DS, int DY, int DX>
    __device__ __forceinline__ real wide() const
    {
        if constexpr (S::BOX) return sweep.wide[F][K + S::RADIUS_S + DS][Y + S::RADIUS_Y + DY][X + S::RADIUS_X + DX];
        else if constexpr (DS == 0) return sweep.wide[F][K][Y + S::RADIUS_Y + DY][X + S::RADIUS_X + DX];
        else return sweep.window[F][K + S::RADIUS_S + DS][Y][X];
    }
    template <int F>
    __device__ __forceinline__ real narrow() const { return narrow_cells[F][K][Y][X]; }
    template <int I>
    __device__ __forceinline__ real parameter() const { return parameter_of<I>(*sweep.block.parameters, sweep.block.varying + S::NUMBER * VARYING); }
    template <int AXIS>
    __device__ __forceinline__ real coordinate() const
    {
        return real(AXIS == AXIS_S ? s : AXIS == AXIS_Y ? sweep.block.y0 + sweep.block.own_y(Y) : sweep.block.x0 + sweep.block.own_x(X));
    }
};

// One stage over one tile.
//
// A star's lateral taps lie in the plane being computed. So only this plane's cells are handed round among
// threads ("widened"), just before it is computed. A box taps all planes of the window beside the cell: these
// planes are widened as they arrive.
template <class S, bool CACHED, class Kept>
struct Sweep {
    static constexpr int RS = S::RADIUS_S, RY = S::RADIUS_Y, RX = S::RADIUS_X;
    static constexpr int WIDE = S::WIDE > 0 ? S::WIDE : 1;
    static constexpr int NARROW = S::NARROW > 0 ? S::NARROW : 1;
    static constexpr bool LATERAL = S::WIDE > 0 && (RY > 0 || RX > 0);
    static constexpr int WINDOW = 2 * RS + CHUNK;      // planes of the window
    static constexpr int WIDENED = S::BOX ? WINDOW : CHUNK;
    // Cells of a row pass between the threads of a warp by shuffles, else through the ring.
    static constexpr int SEGMENT = THREADS_X < 32 ? THREADS_X : 32;
    // A row of the ring: RX cells of halo on either side, padded so that own cells stay aligned.
    static constexpr int PAD = (RX + LANES - 1) / LANES * LANES;
    static constexpr int PITCH = TILE_X + 2 * PAD;
    static constexpr int SLOT = (TILE_Y + 2 * RY) * PITCH;
    // Lateral halo of a plane: rows before and behind with their corners, columns on either side. The halo is
    // fetched for a group of chunks at once, a group ahead of its use.
    static constexpr int HALO = 2 * RY * (TILE_X + 2 * RX) + 2 * RX * TILE_Y;
    static constexpr int GROUP = HALO_AHEAD;
    static constexpr int HALO_SLOTS = LATERAL ? (GROUP * CHUNK * HALO + THREADS - 1) / THREADS : 0;
    static constexpr int SLOTS = HALO_SLOTS > 0 ? HALO_SLOTS : 1;
    typedef real Halo[WIDE][SLOTS];

    Block& block;
    Kept& kept;
    real window[WIDE][WINDOW][OWN_Y][OWN_X];           // own cells of the planes around the one computed
    real wide[WIDE][WIDENED][OWN_Y + 2 * RY][OWN_X + 2 * RX]; // planes with the cells beside the own ones
    real own[WIDE][CHUNK][OWN_Y][OWN_X];               // planes on their way
    Halo halo, halo_next;                              // this thread's share of two groups' lateral halo
    int halo_ring[SLOTS];                              // its places in the ring; -1: nowhere
    Offset halo_from[SLOTS];                           // its sources in a plane; -1: it is halo_value
    real halo_value[HAS_CONSTANT ? SLOTS : 1];
    unsigned held;                                     // bit y * OWN_X + x: the own cell keeps its value

    __device__ __forceinline__ Sweep(Block& b, Kept& k) : block(b), kept(k) {}

    __device__ __forceinline__ void locate_halo()
    {
        each<HALO_SLOTS>([&](auto i) {
            const int e = block.tid + i.value * THREADS;
            const int k = e / HALO, c = e % HALO;
            constexpr int ROWS = 2 * RY * (TILE_X + 2 * RX), SIDES = RX > 0 ? 2 * RX : 1;
            int y, x;                                  // relative to the tile
            bool used = e < GROUP * CHUNK * HALO;
            if (c < ROWS) {
                const int row = c / (TILE_X + 2 * RX);
                x = c % (TILE_X + 2 * RX) - RX;
                y = row < RY ? row - RY : block.live_y + row - RY;
                used = used && x < block.live_x + RX;
            } else {
                const int column = (c - ROWS) % SIDES;
                y = (c - ROWS) / SIDES;
                x = column < RX ? column - RX : block.live_x + column - RX;
                used = used && y < block.live_y;
            }
            const Source sy = source_y(block.y0 + y), sx = source_x(block.x0 + x);
            halo_ring[i.value] = used ? k % CHUNK * WIDE * SLOT + (y + RY) * PITCH + PAD + x : -1;
            halo_from[i.value] = sy.constant || sx.constant ? -1 : sy.index * STRIDE_Y + sx.index;
            if constexpr (HAS_CONSTANT) halo_value[i.value] = sy.constant ? sy.value : sx.value;
        });
    }

    __device__ __forceinline__ int halo_plane(int slot) const { return (block.tid + slot * THREADS) / HALO; }

    // Starts the loads of the lateral halo of a group: planes first … first + GROUP * CHUNK - 1.
    __device__ __forceinline__ void fetch_halo(int first, Halo& into)
    {
        each<HALO_SLOTS>([&](auto i) {
            const int p = first + halo_plane(i.value);
            if (halo_ring[i.value] >= 0 && p < block.planes_here + (S::BOX ? RS : 0)) {
                const Source plane = source_s(block.s0 + p);
                each<S::WIDE>([&](auto f) {
                    real value = plane.value;
                    if (!plane.constant) {
                        if (HAS_CONSTANT && halo_from[i.value] < 0) value = halo_value[HAS_CONSTANT ? i.value : 0];
                        else value = __ldcg(block.in[S::wide(f.value)] + plane.index * STRIDE_S + halo_from[i.value]);
                    }
                    into[f.value][i.value] = value;
                });
            }
        });
    }

    // At the first chunk of a group, takes over the halo that has arrived and starts the loads of the next
    // group's.
    __device__ __forceinline__ void turn_halo(int chunk)
    {
        if (chunk % GROUP == 0) {
            each<S::WIDE>([&](auto f) { each<HALO_SLOTS>([&](auto i) { halo[f.value][i.value] = halo_next[f.value][i.value]; }); });
            fetch_halo((S::BOX ? RS : 0) + (chunk + GROUP) * CHUNK, halo_next);
        }
    }

    // Starts the loads of own cells of planes first … first + COUNT - 1.
    template <int COUNT, int AT>
    __device__ __forceinline__ void fetch_own(int first)
    {
        each<S::WIDE>([&](auto f) {
            constexpr int F = S::wide(f.value);
            if (CACHED && AT == DYNAMIC && first + COUNT <= PLANES_REGISTERS + PLANES_SHARED && first + COUNT <= block.planes_here) {
                each<COUNT>([&](auto k) { block.load_kept(F, first + k.value, own[f.value][k.value]); });
            } else {
                each<COUNT>([&](auto k) {
                    if (AT != DYNAMIC || first + k.value < block.planes_here + RS)
                        block.template load_plane<CACHED, AT == DYNAMIC ? DYNAMIC : AT + k.value>(
                            kept, F, block.in[F], first + k.value, own[f.value][k.value]);
                });
            }
        });
    }

    // Puts fetched planes into the window at `TO`.
    template <int COUNT, int TO>
    __device__ __forceinline__ void admit()
    {
        each<S::WIDE>([&](auto f) {
            each<COUNT>([&](auto k) {
                each<OWN_Y>([&](auto y) {
                    each<OWN_X>([&](auto x) { window[f.value][TO + k.value][y.value][x.value] = own[f.value][k.value][y.value][x.value]; });
                });
            });
        });
    }

    // Gives planes FROM … FROM + COUNT - 1 of the window the cells beside the own ones, as planes TO … of
    // `wide`. `turn` is their chunk's number in the group whose halo is at hand.
    template <int COUNT, int FROM, int TO>
    __device__ __forceinline__ void widen(int turn)
    {
        if constexpr (!LATERAL) {
            each<S::WIDE>([&](auto f) {
                each<COUNT>([&](auto k) {
                    each<OWN_Y>([&](auto y) {
                        each<OWN_X>([&](auto x) { wide[f.value][TO + k.value][y.value][x.value] = window[f.value][FROM + k.value][y.value][x.value]; });
                    });
                });
            });
        } else {
            real* ring = block.ring + block.half * (CHUNK * WIDE * SLOT);
            block.half ^= 1;
            each<S::WIDE>([&](auto f) {
                each<COUNT>([&](auto k) {
                    real* slot = ring + (k.value * WIDE + f.value) * SLOT + RY * PITCH + PAD;
                    if constexpr (RY > 0) block.store_ring(slot, PITCH, window[f.value][FROM + k.value]);
                    else if constexpr (THREADS_X > SEGMENT) store_ends(slot, window[f.value][FROM + k.value]);
                });
                each<HALO_SLOTS>([&](auto i) {
                    const int k = halo_plane(i.value) - turn * CHUNK;
                    if (halo_ring[i.value] >= 0 && (GROUP == 1 || k >= 0) && k < COUNT) ring[halo_ring[i.value] + f.value * SLOT] = halo[f.value][i.value];
                });
            });
            if constexpr (THREADS == 32) __syncwarp();
            else __syncthreads();
            each<S::WIDE>([&](auto f) {
                each<COUNT>([&](auto k) {
                    constexpr int PLANE = TO + k.value;
                    const real* cell = ring + (k.value * WIDE + f.value) * SLOT + block.own_y(0) * PITCH + PAD + block.own_x(0);
                    each<OWN_Y + 2 * RY>([&](auto y) {
                        widen_row<PLANE, y.value>(f.value, window[f.value][FROM + k.value], cell + y.value * PITCH);
                    });
                });
            });
        }
    }

    // Writes the cells that threads of another warp beside this warp tap: those near the ends of the warp's
    // row.
    __device__ __forceinline__ void store_ends(real* slot, const Cells& cells) const
    {
        const int lane = block.tx % SEGMENT;
        each<OWN_Y>([&](auto y) {
            each<OWN_X>([&](auto x) {
                const int column = lane * OWN_X + x.value;
                if ((column < RX || column >= SEGMENT * OWN_X - RX) && block.live(y.value, x.value))
                    slot[block.own_y(y.value) * PITCH + block.own_x(x.value)] = cells[y.value][x.value];
            });
        });
    }

    // Widens row `Y` of a plane, counted from RY rows before the own rows; `cell` is the ring's cell under
    // the first own cell.
    template <int TO, int Y>
    __device__ __forceinline__ void widen_row(int f, const Cells& cells, const real* cell)
    {
        constexpr bool OWN = Y >= RY && Y < RY + OWN_Y;
        real (&row)[OWN_X + 2 * RX] = wide[f][TO][Y];
        if constexpr (OWN) {
            each<OWN_X>([&](auto x) {
                real value = cells[Y - RY][x.value];
                // Beyond the domain's edge an own cell is halo, which another thread fetched.
                if (RAGGED && !block.live(Y - RY, x.value)) value = cell[x.value];
                row[RX + x.value] = value;
            });
        } else if constexpr (VECTORS && PITCH % LANES == 0) {
            each<OWN_X / LANES>([&](auto v) {
                const Vector part = *reinterpret_cast<const Vector*>(cell + v.value * LANES);
                each<LANES>([&](auto l) { row[RX + v.value * LANES + l.value] = part.lane[l.value]; });
            });
        } else {
            each<OWN_X>([&](auto x) { row[RX + x.value] = cell[x.value]; });
        }
        if constexpr (OWN || S::BOX) {
            const int lane = block.tx % SEGMENT;
            each<2 * RX>([&](auto i) {
                // Column X beside the own columns is column INDEX of the thread STEP further on.
                constexpr int X = i.value < RX ? i.value - RX : OWN_X + i.value - RX;
                constexpr int STEP = X < 0 ? -((-X - 1) / OWN_X + 1) : X / OWN_X, INDEX = X - STEP * OWN_X;
                const bool other_warp = X < 0 ? lane < -STEP : lane >= SEGMENT - STEP;
                real value;
                if constexpr (STEP < 0) value = __shfl_up_sync(~0u, row[RX + INDEX], -STEP < SEGMENT ? -STEP : 0, SEGMENT);
                else value = __shfl_down_sync(~0u, row[RX + INDEX], STEP < SEGMENT ? STEP : 0, SEGMENT);
                if (other_warp) value = cell[X];
                row[RX + X] = value;
            });
        }
    }

    // Computes planes first … first + CHUNK - 1 and keeps them.
    template <int AT>
    __device__ __forceinline__ void compute(int first)
    {
        real narrow[NARROW][CHUNK][OWN_Y][OWN_X];
        each<S::NARROW>([&](auto f) {
            constexpr int F = S::narrow(f.value);
            each<CHUNK>([&](auto k) {
                if (first + k.value < PLANES_LEAST || first + k.value < block.planes_here)
                    block.template load_plane<CACHED, AT == DYNAMIC ? DYNAMIC : AT + k.value>(
                        kept, F, block.in[F], first + k.value, narrow[f.value][k.value]);
            });
        });
        real fresh[S::WRITES][CHUNK][OWN_Y][OWN_X];
        each<CHUNK>([&](auto k) {
            constexpr int K = k.value;
            const Offset s = block.s0 + first + K;
            const bool hold_plane = held_s(s);
            each<OWN_Y>([&](auto y) {
                constexpr int Y = y.value;
                each<OWN_X>([&](auto x) {
                    constexpr int X = x.value;
                    const View<S, Sweep, K, Y, X> view = {*this, narrow, s};
                    real value[S::WRITES];
                    S::compute(view, value);
                    if constexpr (HAS_FIXED) {
                        real old[S::WRITES];
                        S::keep(view, old);
                        const bool hold = hold_plane || (held >> (Y * OWN_X + X) & 1u);
                        each<S::WRITES>([&](auto o) { value[o.value] = hold ? old[o.value] : value[o.value]; });
                    }
                    each<S::WRITES>([&](auto o) { fresh[o.value][K][Y][X] = value[o.value]; });
                });
            });
        });
        each<S::WRITES>([&](auto o) {
            constexpr int F = S::writes(o.value);
            each<CHUNK>([&](auto k) {
                const int p = first + k.value;
                if (p < PLANES_LEAST || p < block.planes_here)
                    block.template store_plane<CACHED, AT == DYNAMIC ? DYNAMIC : AT + k.value, F>(kept, p, fresh[o.value][k.value]);
            });
        });
        slide();
    }

    // Moves the window on by a chunk.
    __device__ __forceinline__ void slide()
    {
        each<S::WIDE>([&](auto f) {
            each<2 * RS>([&](auto i) {
                each<OWN_Y>([&](auto y) {
                    each<OWN_X>([&](auto x) { window[f.value][i.value][y.value][x.value] = window[f.value][i.value + CHUNK][y.value][x.value]; });
                });
                if constexpr (S::BOX) {
                    each<OWN_Y + 2 * RY>([&](auto y) {
                        each<OWN_X + 2 * RX>([&](auto x) { wide[f.value][i.value][y.value][x.value] = wide[f.value][i.value + CHUNK][y.value][x.value]; });
                    });
                }
            });
        });
    }

    // Loads planes -RS … RS - 1, which the first computed plane needs before it.
    template <int DONE>
    __device__ __forceinline__ void prologue()
    {
        if constexpr (DONE < 2 * RS) {
            constexpr int COUNT = 2 * RS - DONE < CHUNK ? 2 * RS - DONE : CHUNK;
            if (S::BOX && DONE % (GROUP * CHUNK) == 0) fetch_halo(DONE - RS, halo);
            fetch_own<COUNT, DONE - RS>(DONE - RS);
            admit<COUNT, DONE>();
            if constexpr (S::BOX) widen<COUNT, DONE, DONE>(DONE / CHUNK % GROUP);
            prologue<DONE + COUNT>();
        }
    }

    __device__ __forceinline__ void arrive(int chunk)
    {
        admit<CHUNK, 2 * RS>();
        turn_halo(chunk);
        if constexpr (S::BOX) widen<CHUNK, 2 * RS, 2 * RS>(chunk % GROUP);
        else widen<CHUNK, RS, 0>(chunk % GROUP);
    }

    // Sweeps the planes in registers, in straight-line code because a register is known by name only.
    template <int FIRST>
    __device__ __forceinline__ void unrolled()
    {
        if constexpr (FIRST < (CACHED ? PLANES_REGISTERS : 0)) {
            fetch_own<CHUNK, FIRST + RS>(FIRST + RS);
            arrive(FIRST / CHUNK);
            compute<FIRST>(FIRST);
            unrolled<FIRST + CHUNK>();
        }
    }

    __device__ __forceinline__ void run()
    {
        held = 0;
        if constexpr (HAS_FIXED) {
            each<OWN_Y>([&](auto y) {
                each<OWN_X>([&](auto x) {
                    const bool hold = held_y(block.y0 + block.own_y(y.value)) || held_x(block.x0 + block.own_x(x.value));
                    held |= unsigned(hold) << (y.value * OWN_X + x.value);
                });
            });
        }
        locate_halo();
        fetch_halo(S::BOX ? RS : 0, halo_next);
        prologue<0>();
        unrolled<0>();
        constexpr int FIRST = CACHED ? PLANES_REGISTERS : 0;
        fetch_own<CHUNK, DYNAMIC>(FIRST + RS);
        #pragma unroll 1
        for (int first = FIRST; first < block.planes_here; first += CHUNK) {
            arrive(first / CHUNK);
            // The next chunk's own cells are on their way while this chunk is computed.
            fetch_own<CHUNK, DYNAMIC>(first + RS + CHUNK);
            compute<DYNAMIC>(first);
        }
    }
};

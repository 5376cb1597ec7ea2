// Resident kernel: the time loop is inside, the whole domain lies on the chip, and blocks exchange cells once per
// DEPTH steps.
//
// A block owns a tile (tile.cuh) and keeps its lines from step to step, the first PLANES_REGISTERS planes of a
// warp in registers, the rest in shared memory. A step sweeps a warp's planes once, and each plane that arrives is
// turned into a plane of the result, which takes the place of the old one: between planes there are partial sums
// (core's `carry.rs`). Cells of other lanes come by shuffles. Lines of other warps come from copies in shared
// memory, `lines`, of which there are two by turns, or one and a barrier more. Tiles overlap: near the sides cells
// go wrong by a radius per stage, and every DEPTH steps a pass ends with an exchange (counted.cuh, tagged.cuh) that puts
// them right. What a side of the domain shows is read where it lies, or lies in `lines` and never changes.

// Own lines of all fields whose noted cells a lane keeps in registers, if they are so few; and those of a line: a bit each, and
// the number of the first one's value.
constexpr int NOTED_LINES = NOTES && FIELDS * PLANES * OWN_Y <= 16 && OWN_X <= 32 ? FIELDS * PLANES * OWN_Y : 0;
struct NotedCells {
    unsigned cells;
    int first;
};

struct Resident : Exchange {
    unsigned choosing;                   // own planes with cells that make a choice, a bit each
    unsigned noting;                     // NOTES: own lines that may have values to note, a bit each
    NotedCells kept_notes[NOTED_LINES > 0 ? NOTED_LINES : 1];

    // The domain's cells of the last tile, the lane of the last, and the cells of that lane.
    static constexpr int LAST_TILE = int(EXTENT_X - (TILES_X > 1 ? END_X - TILE_X : 0)), LAST_LANE = (LAST_TILE - 1) / OWN_X;
    static constexpr int LAST_CELLS = LAST_TILE - LAST_LANE * OWN_X;

    // What a formula sees of own cell (Y, X) beside fields.
    template <class S, int Y, int X>
    struct OwnView {
        const Tile& tile;
        int plane;                       // the plane that arrives, from the warp's first

        template <int I>
        __device__ __forceinline__ real parameter() const
        {
            constexpr int PLACE = place_of_varying(I);
            if constexpr (AT_HAND > 0 && PLACE >= 0) return tile.now[S::NUMBER * VARYING + PLACE];
            else return parameter_of<I>(tile.parameters, tile.varying + S::NUMBER * VARYING);
        }
        // Returns the coordinate of the cell whose plane lies `D` planes before the arriving one.
        template <int AXIS, int D>
        __device__ __forceinline__ real coordinate() const
        {
            const Source at = AXIS == AXIS_S ? source_s(tile.s0 + tile.first_s + plane - D)
                            : AXIS == AXIS_Y ? source_y(tile.y0 + tile.first_y + Y)
                                             : source_x(tile.x0 + tile.lane * OWN_X + X);
            return real(at.index);
        }
        // Returns whether the cell is one of the first or last COUNT along an axis across.
        template <int AXIS, int COUNT>
        __device__ __forceinline__ bool first() const
        {
            if constexpr (AXIS == AXIS_Y) return source_y(tile.y0 + tile.first_y + Y).index < COUNT;
            else return tile.tile_x == 0 && outermost<COUNT>(X, 0, 1);
        }
        template <int AXIS, int COUNT>
        __device__ __forceinline__ bool last() const
        {
            if constexpr (AXIS == AXIS_Y) return source_y(tile.y0 + tile.first_y + Y).index >= EXTENT_Y - COUNT;
            else return tile.tile_x == TILES_X - 1 && outermost<COUNT>(LAST_CELLS - 1 - X, LAST_LANE, -1);
        }
        // Returns whether a cell is one of COUNT, where that of the outermost lane lies `first` from the side.
        template <int COUNT>
        __device__ __forceinline__ bool outermost(int first, int lane, int inward) const
        {
            bool is_one = false;
            each<(COUNT + OWN_X - 1) / OWN_X + 1>([&](auto apart) {
                const int far = first + apart.value * OWN_X;
                is_one = is_one || (far >= 0 && far < COUNT && tile.lane == lane + apart.value * inward);
            });
            return is_one;
        }
    };

    // The same, with cells of the arriving plane, and carried values.
    template <class S, int Y, int X>
    struct View : OwnView<S, Y, X> {
        const real (&wide)[FIELDS][OWN_Y + 2 * S::RADIUS_Y][OWN_X + 2 * S::RADIUS_X];
        real (&near)[S::CARRIED > 0 ? S::CARRIED : 1][OWN_Y][OWN_X];

        template <int F, int DY, int DX>
        __device__ __forceinline__ real now() const { return wide[F][Y + S::RADIUS_Y + DY][X + S::RADIUS_X + DX]; }
        template <int K>
        __device__ __forceinline__ real& carried() const { return near[K][Y][X]; }
    };

    // How far taps of any cell that plane P gives something to reach into row `row` of it.
    template <class S, int F, int P>
    __device__ static constexpr int reach_x(int row, bool left)
    {
        int reach = 0;
        for (int d = -S::BACK; d <= S::DELAY; ++d)
            for (int dy = -S::RADIUS_Y; dy <= S::RADIUS_Y; ++dy)
                if (P - d >= 0 && P - d < PLANES && row - dy >= 0 && row - dy < OWN_Y && S::side_at(F, d, dy, left) > reach)
                    reach = S::side_at(F, d, dy, left);
        return reach;
    }

    __device__ __forceinline__ real from_left(real value, int step) const { return WHOLE_X ? __shfl_sync(~0u, value, (lane - step) & 31) : __shfl_up_sync(~0u, value, step); }
    __device__ __forceinline__ real from_right(real value, int step) const { return WHOLE_X ? __shfl_sync(~0u, value, (lane + step) & 31) : __shfl_down_sync(~0u, value, step); }

    // Puts the columns beside into row R of a wide plane: cells of other lanes, and what a side shows, unless all
    // of the row is `given` by a side of a slower axis.
    template <class S, bool SIDE, int F, int P, int R, class Row>
    __device__ __forceinline__ void columns_beside(Row& row, bool given) const
    {
        constexpr int RX = S::RADIUS_X;
        constexpr bool shown = SIDE && (shows_this_side(LOW_X) || shows_this_side(HIGH_X));
        constexpr int TO_LEFT = reach_x<S, F, P>(R - S::RADIUS_Y, true), TO_RIGHT = reach_x<S, F, P>(R - S::RADIUS_Y, false);
        // A side may show a cell of the far end of the reach.
        constexpr int MOST = TO_LEFT > TO_RIGHT ? TO_LEFT : TO_RIGHT;
        constexpr int LEFT = shown ? MOST : TO_LEFT, RIGHT = shown ? MOST : TO_RIGHT;
        each<LEFT>([&](auto i) {
            constexpr int K = i.value + 1, STEP = (K + OWN_X - 1) / OWN_X, FROM = STEP * OWN_X - K;
            row[RX - K] = from_left(row[RX + FROM], STEP);
        });
        each<RIGHT>([&](auto i) {
            constexpr int K = i.value, STEP = K / OWN_X + 1, FROM = K % OWN_X;
            row[RX + OWN_X + K] = from_right(row[RX + FROM], STEP);
        });
        if constexpr (SIDE && LOW_X != FIXED) {
            // The first lane begins where the domain does.
            each<LEFT>([&](auto i) {
                constexpr int K = i.value + 1, SHOWN = int(below(LOW_X, -K, EXTENT_X));
                const real ghost = LOW_X == CONSTANT ? LOW_VALUE_X : row[RX + (SHOWN < OWN_X + RIGHT ? SHOWN : 0)];
                row[RX - K] = tile_x == 0 && lane == 0 && !given ? ghost : row[RX - K];
            });
        }
        if constexpr (SIDE && HIGH_X != FIXED) {
            each<LEFT + OWN_X + RIGHT>([&](auto i) {
                constexpr int AT = i.value - LEFT;               // from the lane's first cell
                each<2>([&](auto back) {
                    constexpr int BACK = back.value, LANE = LAST_LANE - BACK, BEYOND = LANE * OWN_X + AT - LAST_TILE;
                    if constexpr (LANE >= 0 && BEYOND >= 0 && BEYOND < RX && (BACK == 0 || LAST_CELLS < RX)) {
                        constexpr int SHOWN = AT - BEYOND - int(EXTENT_X - above(HIGH_X, EXTENT_X + BEYOND, EXTENT_X));
                        const real ghost = HIGH_X == CONSTANT ? HIGH_VALUE_X : row[RX + (SHOWN >= -LEFT && SHOWN < OWN_X + RIGHT ? SHOWN : 0)];
                        row[RX + AT] = tile_x == TILES_X - 1 && lane == LANE && !given ? ghost : row[RX + AT];
                    }
                });
            });
        }
    }

    // Returns whether any lane may hold its column C.
    __device__ static constexpr bool may_hold(int c)
    {
        bool may = false;
        for (int k = 0; k < FIX_X; ++k) {
            if (LOW_X == FIXED && k % OWN_X == c) may = true;
            if (HIGH_X == FIXED && int((EXTENT_X - 1 - k - (TILES_X > 1 ? END_X - TILE_X : 0) + OWN_X * FIX_X) % OWN_X) == c) may = true;
        }
        return may;
    }

    template <class S, bool SIDE>
    __device__ __forceinline__ void stage(Planes& kept)
    {
        constexpr int RY = S::RADIUS_Y, RX = S::RADIUS_X;
        real near[S::CARRIED > 0 ? S::CARRIED : 1][OWN_Y][OWN_X];
        each<S::CARRIED>([&](auto k) { each<OWN_Y>([&](auto y) { each<OWN_X>([&](auto x) { near[k.value][y.value][x.value] = real(0); }); }); });
        // Lines that a warp does not own of the rows that taps reach when a plane arrives. Of a cube they are loaded a plane
        // ahead: the compiler moves no load past the stores of `publish`, so a line that is loaded when it is needed makes the
        // warp wait.
        real others[2][FIELDS][OWN_Y + 2 * RY][OWN_X];
        auto load_others = [&](auto plane, auto turn) {
            constexpr int P = plane.value, TURN = turn.value;
            constexpr bool own = P >= 0 && P < PLANES;
            int place = 0;
            if constexpr (P < 0) place = place_before<-P>();
            else if constexpr (P >= PLANES) place = place_behind<P - PLANES>();
            else if constexpr (RY > 0) place = own_place(P);
            each<FIELDS>([&](auto f) {
                constexpr int F = f.value, UP = -S::low_y(F), DOWN = S::high_y(F);
                each<UP + OWN_Y + DOWN>([&](auto r) {
                    constexpr int Y = r.value - UP;
                    if constexpr (HAS_LINES && !(own && Y >= 0 && Y < OWN_Y)) load_line(line<F>(place, place_y<Y>(), half[F]), others[TURN][F][RY + Y]);
                });
            });
        };
        if constexpr (!STACKED) load_others(Index<-S::BACK>{}, Index<0>{});
        each<S::BACK + PLANES + S::DELAY>([&](auto i) {
            constexpr int P = i.value - S::BACK, Q = P - S::DELAY;   // the plane that arrives, and the one that is made
            constexpr int HERE = i.value % 2;
            constexpr bool own = P >= 0 && P < PLANES;
            real wide[FIELDS][OWN_Y + 2 * RY][OWN_X + 2 * RX];
            if constexpr (STACKED) load_others(Index<P>{}, Index<HERE>{});
            else if constexpr (P + 1 < PLANES + S::DELAY) load_others(Index<P + 1>{}, Index<1 - HERE>{});
            each<FIELDS>([&](auto f) {
                constexpr int F = f.value, UP = -S::low_y(F), DOWN = S::high_y(F);
                each<UP + OWN_Y + DOWN>([&](auto r) {
                    constexpr int Y = r.value - UP;
                    Line cells;
                    if constexpr (own && Y >= 0 && Y < OWN_Y) load_own<F, P, Y>(kept, cells);
                    else if constexpr (HAS_LINES) each<OWN_X>([&](auto x) { cells[x.value] = others[HERE][F][RY + Y][x.value]; });
                    each<OWN_X>([&](auto x) { wide[F][RY + Y][RX + x.value] = cells[x.value]; });
                    const bool given = (P < 0 && LOW_S == CONSTANT && low_s()) || (P >= PLANES && HIGH_S == CONSTANT && high_s()) ||
                                       (LOW_Y == CONSTANT && below_y<Y>()) || (HIGH_Y == CONSTANT && above_y<Y>());
                    columns_beside<S, SIDE, F, P, RY + Y>(wide[F][RY + Y], given);
                });
            });
            real out[FIELDS][OWN_Y][OWN_X];
            each<OWN_Y>([&](auto y) {
                constexpr int Y = y.value;
                each<OWN_X>([&](auto x) {
                    constexpr int X = x.value;
                    const View<S, Y, X> view = {{*this, P}, wide, near};
                    real value[FIELDS];
                    S::template arrive<!S::LATE, true, true, SIDE>(view, value);
                    each<S::WRITES>([&](auto o) { out[S::writes(o.value)][Y][X] = value[S::writes(o.value)]; });
                });
            });
            if constexpr (Q >= 0) {
                each<S::WRITES>([&](auto o) {
                    constexpr int F = S::writes(o.value);
                    each<OWN_Y>([&](auto y) {
                        constexpr int Y = y.value;
                        Line& cells = out[F][Y];
                        if constexpr (SIDE && (LOW_X == FIXED || HIGH_X == FIXED)) {
                            Line before;
                            load_own<F, Q, Y>(kept, before);
                            each<OWN_X>([&](auto x) { if constexpr (may_hold(x.value)) cells[x.value] = held & 1u << x.value ? before[x.value] : cells[x.value]; });
                        }
                        store_own<F, Q, Y>(kept, cells);
                        if constexpr (HALVES == 2) publish<F, Q, Y>(cells, HALF - half[F]);
                    });
                });
            }
        });
        if constexpr (S::LATE) if (choosing != 0) choose<S>(kept);
        if constexpr (HAS_LINES) {
            if constexpr (HALVES == 1) {
                barrier();               // all have read the lines that are now replaced
                publish_all(kept, [](int f) { return writes<S>(f); });
            } else each<S::WRITES>([&](auto o) { half[S::writes(o.value)] = HALF - half[S::writes(o.value)]; });
            barrier();
        }
    }

    // Makes the choices of a stage in own planes that have cells for them.
    template <class S>
    __device__ __forceinline__ void choose(Planes& kept)
    {
        each<PLANES>([&](auto q) {
            constexpr int Q = q.value;
            if (choosing >> Q % 32 & 1u) each<OWN_Y>([&](auto y) {
                constexpr int Y = y.value;
                Line made[FIELDS];
                each<FIELDS>([&](auto f) { load_own<f.value, Q, Y>(kept, made[f.value]); });
                each<OWN_X>([&](auto x) {
                    real value[FIELDS];
                    each<FIELDS>([&](auto f) { value[f.value] = made[f.value][x.value]; });
                    S::late(OwnView<S, Y, x.value>{*this, Q}, value);
                    // Held cells are chosen by no formula.
                    if (!(FIX_X > 0 && held >> x.value & 1u)) each<FIELDS>([&](auto f) { made[f.value][x.value] = value[f.value]; });
                });
                each<S::WRITES>([&](auto o) {
                    constexpr int F = S::writes(o.value);
                    store_own<F, Q, Y>(kept, made[F]);
                    if constexpr (HALVES == 2) publish<F, Q, Y>(made[F], HALF - half[F]);
                });
            });
        });
    }

    // Finds the own planes with cells that make a choice of any stage.
    __device__ __forceinline__ void find_choices()
    {
        choosing = 0;
        each<STAGE_COUNT>([&](auto n) {
            typedef typename StageAt<n.value>::type S;
            each<S::CHOICES>([&](auto k) {
                bool on_y = S::choice(k.value, 1) < 0, on_x = S::choice(k.value, 2) < 0;
                each<OWN_Y>([&](auto r) { on_y = on_y || source_y(y0 + first_y + r.value).index == S::choice(k.value, 1); });
                each<OWN_X>([&](auto c) { on_x = on_x || source_x(x0 + lane * OWN_X + c.value).index == S::choice(k.value, 2); });
                const bool across = __any_sync(~0u, on_y && on_x);
                each<PLANES>([&](auto q) {
                    const bool on_s = S::choice(k.value, 0) < 0 || source_s(s0 + first_s + q.value).index == S::choice(k.value, 0);
                    choosing |= unsigned(across && on_s) << q.value % 32;
                });
            });
        });
        choosing = uniform(choosing);
    }

    // Returns the place in the domain of own line (S, Y), or of a column; -1 beyond its ends.
    __device__ __forceinline__ static Offset inside(bool wraps, Offset i, Offset extent)
    {
        const Offset at = wrapped(wraps, i, extent);
        return at >= 0 && at < extent ? at : -1;
    }

    // Finds own lines with values that are noted here: a tile keeps them, and no field's line is without.
    __device__ __forceinline__ void find_noted()
    {
        noting = 0;
        each_own([&](auto s, auto y) {
            const int in_s = first_s + s.value, in_y = first_y + y.value;
            const Offset plane = inside(WRAPS_S, s0 + in_s, EXTENT_S), row = inside(WRAPS_Y, y0 + in_y, EXTENT_Y);
            bool has = false;
            const bool kept = plane >= 0 && row >= 0 && along_s.keeps(in_s) && along_y.keeps(in_y);
            each<FIELDS>([&](auto f) {
                const int line = kept ? noted_line(noted_of(parameters), f.value, plane, row) : -1;
                has = has || line >= 0;
                if constexpr (NOTED_LINES > 0) {
                    NotedCells& own = kept_notes[(f.value * PLANES + s.value) * OWN_Y + y.value];
                    own = {0, 0};
                    // The values of a line's cells follow each other.
                    if (line >= 0) each<OWN_X>([&](auto c) {
                        const int at = lane * OWN_X + OWN_X - 1 - c.value;
                        const Offset column = inside(WRAPS_X, x0 + at, EXTENT_X);
                        const int number = column >= 0 && along_x.keeps(at) ? __ldg(noted_of(parameters).columns + line * EXTENT_X + column) : -1;
                        if (number >= 0) own = {own.cells | 1u << (OWN_X - 1 - c.value), number};
                    });
                }
            });
            noting |= unsigned(has) << (s.value * OWN_Y + y.value) % 32;
        });
        noting = uniform(noting);
    }

    // Notes values of own cells after a step.
    __device__ __forceinline__ void note(const Planes& kept, real* values) const
    {
        each_own([&](auto s, auto y) {
            constexpr int Q = s.value, Y = y.value;
            if (!(noting >> (Q * OWN_Y + Y) % 32 & 1u)) return;
            if constexpr (NOTED_LINES > 0) {
                each<FIELDS>([&](auto f) {
                    const NotedCells& own = kept_notes[(f.value * PLANES + Q) * OWN_Y + Y];
                    if (own.cells == 0) return;
                    Line cells;
                    load_own<f.value, Q, Y>(kept, cells);
                    each<OWN_X>([&](auto c) {
                        if (own.cells >> c.value & 1u) values[own.first + __popc(own.cells & ((1u << c.value) - 1u))] = cells[c.value];
                    });
                });
                return;
            }
            const int in_s = first_s + Q, in_y = first_y + Y;
            const Offset plane = inside(WRAPS_S, s0 + in_s, EXTENT_S), row = inside(WRAPS_Y, y0 + in_y, EXTENT_Y);
            if (plane < 0 || row < 0 || !along_s.keeps(in_s) || !along_y.keeps(in_y)) return;
            each<FIELDS>([&](auto f) {
                const int line = noted_line(noted_of(parameters), f.value, plane, row);
                if (line < 0) return;
                Line cells;
                load_own<f.value, Q, Y>(kept, cells);
                each<OWN_X>([&](auto c) {
                    const int in_x = lane * OWN_X + c.value;
                    const Offset column = inside(WRAPS_X, x0 + in_x, EXTENT_X);
                    if (column >= 0 && along_x.keeps(in_x)) note_cell(noted_of(parameters), values, line, column, cells[c.value]);
                });
            });
        });
    }

    template <class S>
    __device__ static constexpr bool writes(int f)
    {
        for (int o = 0; o < S::WRITES; ++o) if (S::writes(o) == f) return true;
        return false;
    }

    template <bool SIDE>
    __device__ __forceinline__ void run(unsigned steps)
    {
        Planes kept;
        load(kept);
        unsigned done = 0, passes = 0;
        each<AT_HAND>([&](auto i) { now[i.value] = __ldg(varying + i.value); });
        #pragma unroll 1
        while (done < steps) {
            const unsigned end = steps - done > unsigned(DEPTH) ? done + DEPTH : steps;
            #pragma unroll 1
            for (; done < end; ++done) {
                // What varies in the next step is on its way while this one is done.
                real next[AT_HAND > 0 ? AT_HAND : 1];
                each<AT_HAND>([&](auto i) { next[i.value] = __ldg(varying + (done + 1 < steps ? AT_HAND : 0) + i.value); });
                //@step
                if constexpr (NOTES) if (noting != 0) note(kept, noted_of(parameters).values + (long long)(done) * noted_of(parameters).count);
                each<AT_HAND>([&](auto i) { now[i.value] = next[i.value]; });
                varying += STAGE_COUNT * VARYING;
            }
            if constexpr (EXCHANGES) if (done < steps) exchange(kept, ++passes);
        }
        store(kept);
    }
};

// Runs the block's tile for so many steps.
__device__ __forceinline__ void run_tile(const Buffers& buffers, const ExchangeBuffer& exchange_buffer, const Parameters& parameters, unsigned* counters, unsigned steps)
{
    DYNAMIC_SHARED;
    Resident tile = {{{{buffers, exchange_buffer, parameters, varying_of(parameters), counters}}}};
    tile.warp = uniform(threadIdx.x / 32);
    tile.place = reinterpret_cast<Place*>(shared);
    real* const lines = reinterpret_cast<real*>(shared + PLACE_BYTES);
    real* const rest = lines + field_lines<FIELDS>();
    tile.lines = lines + threadIdx.x % 32 * VECTOR;
    tile.rest = rest + threadIdx.x * VECTOR;
    tile.columns = rest + FIELDS * PLANES_SHARED * OWN_Y * OWN_X * THREADS + tile.warp * FIELDS_AT_ONCE * COLUMNS;
    tile.locate();
    tile.look_up();
    tile.enter();
    tile.find_choices();
    if constexpr (NOTES) tile.find_noted();
    if constexpr (!SIDED_X) tile.run<false>(steps);
    else if constexpr (TILES_X < 3) tile.run<true>(steps);
    else if (tile.tile_x == 0 || tile.tile_x == TILES_X - 1) tile.run<true>(steps);
    else tile.run<false>(steps);
}

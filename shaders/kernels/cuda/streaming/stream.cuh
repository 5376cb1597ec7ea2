// A window's planes on their way through the levels, from the ring of input planes to the planes that leave.

// Planes of the input in shared memory: one in use, others on their way; and where cells are held, the planes
// that levels are at.
constexpr int RING = AHEAD + (HAS_FIXED ? BEHIND : 0);

// How far along X taps of any own row of field F reach into row `row`, to the left or right.
template <class S, int F>
__device__ constexpr int reach_x(int row, bool left)
{
    int reach = 0;
    for (int dy = -S::RADIUS_Y; dy <= S::RADIUS_Y; ++dy)
        if (row - dy >= 0 && row - dy < OWN_Y && S::side(F, dy, left) > reach) reach = S::side(F, dy, left);
    return reach;
}

// The rows of other strips that a stage reads of field F: those that it taps, and those that ghost rows beyond
// the domain's sides show.
template <class S, int F>
__device__ constexpr int rows_above()
{
    constexpr int SHOWN = shown(HIGH_Y, S::high_y(F)) - LAST_ROWS;
    return -S::low_y(F) > SHOWN ? -S::low_y(F) : SHOWN;
}
template <class S, int F>
__device__ constexpr int rows_below()
{
    constexpr int SHOWN = shown(LOW_Y, -S::low_y(F)) - OWN_Y;
    return S::high_y(F) > SHOWN ? S::high_y(F) : SHOWN;
}

// The columns of other lanes that a stage reads beside row `row` of field F: those that taps reach, and at a side
// (EDGE) those that ghost columns show.
template <class S, int F, bool EDGE>
__device__ constexpr int columns(int row, bool left)
{
    const int reach = reach_x<S, F>(row, left), far = reach_x<S, F>(row, !left);
    const int seen = !EDGE ? 0 : left ? shown(HIGH_X, far) - LAST_COLUMNS : shown(LOW_X, far) - OWN_X;
    return reach > seen ? reach : seen;
}

// The boundaries that a body asks about: none, those across, or all.
enum Edge { NONE, ACROSS, ALL };
// The choices of all stages that are made in single planes. Bodies for planes at a side of S (ALL) make them.
typedef StageAt<STAGES - 1>::type LastStage;
constexpr int CHOICES = LastStage::FIRST_CHOICE + LastStage::CHOICES;

// Planes that ghost planes show, once they have passed: in local memory, as few windows have any.
constexpr int KEPT_LOW = shown(LOW_S, FIX_S), KEPT_HIGH = shown(HIGH_S, FIX_S);
struct Kept {
    // The first, for whichever level receives them, with what other threads have beside the own cells ...
    real low[KEPT_LOW > 1 ? KEPT_LOW : 1][FIELDS][OWN_Y + 2 * FIX_Y][OWN_X + 2 * FIX_X];
    // ... and the last before each level.
    Cells high[LEVELS][KEPT_HIGH > 0 ? KEPT_HIGH : 1][FIELDS];
};

// The bits of conditions that coefficients alone decide, of own cells of as many planes as levels may be behind the input.
constexpr int MASK_BITS = OWN_Y * OWN_X, MASK_WORDS = ((BEHIND + 1) * MASK_BITS + 31) / 32;

struct Stream : Notes {
    const real* varying;                 // what varies, from the pass's first stage
    const Turns& turns;
    Kept& kept;
    // [1 + LAG][LEVELS - 1][PASSING][1 + WARPS + 1][2][EDGE_Y][TILE_X]: first and last rows of strips, from
    // the own one; those before the first and behind the last are never filled.
    real* edges;
    // [LEVELS][FAR][OWN_Y * OWN_X][THREADS]: carried values beyond the registers.
    real* far;
    int turn;                            // with LAG, the half of `edges` that was written last
    real near[LEVELS][NEAR > 0 ? NEAR : 1][OWN_Y][OWN_X]; // carried values in registers
    Cells arriving[LEVELS][FIELDS];      // the plane that waits before each level
    unsigned masks[MASKS > 0 ? MASKS : 1][MASK_WORDS]; // conditions: bits of the newest plane first, in the order of own cells
    Offset newest;                       // that plane

    // Returns the first or last rows of the own strip, or of the strip above (-1) or below (1).
    __device__ __forceinline__ real* edge(int half, int level, int field, int strip, int last) const
    {
        return edges + ((((half * (LEVELS - 1) + level - 1) * PASSING + passing(field)) * (WARPS + 2) + strip) * 2 + last) * (EDGE_Y * TILE_X);
    }

    // An own cell of the plane that arrives at the first level.
    template <int Y, int X>
    struct Input {
        const Stream& stream;
        template <int F, int DY, int DX>
        __device__ __forceinline__ real now() const { return stream.arriving[0][F][Y][X]; }
        template <int I>
        __device__ __forceinline__ real parameter() const { return parameter_of<I>(stream.parameters, stream.varying); }
    };

    // Asks which conditions hold at own cells of the plane that arrives at the first level.
    __device__ __forceinline__ void ask_all(Offset plane)
    {
        newest = plane;
        unsigned bits[MASKS > 0 ? MASKS : 1] = {};
        each<OWN_Y>([&](auto r) {
            constexpr int R = r.value;
            each<OWN_X>([&](auto c) {
                constexpr int C = c.value;
                const Input<R, C> input = {*this};
                bool holds[MASKS > 0 ? MASKS : 1];
                ask(input, holds);
                each<MASKS>([&](auto k) { bits[k.value] |= unsigned(holds[k.value]) << (R * OWN_X + C); });
            });
        });
        constexpr int WORDS = MASK_BITS / 32, BITS = MASK_BITS % 32;
        each<MASKS>([&](auto k) {
            unsigned (&all)[MASK_WORDS] = masks[k.value];
            each<MASK_WORDS>([&](auto i) {
                constexpr int W = MASK_WORDS - 1 - i.value, FROM = W - WORDS;
                unsigned older = 0;
                if constexpr (FROM >= 0) older = all[FROM] << BITS;
                if constexpr (FROM >= 1 && BITS > 0) older |= all[FROM - 1] >> (32 - BITS);
                all[W] = W == 0 ? older | bits[k.value] : older;
            });
        });
    }

    // The values that a formula sees of own cell (y, x): cells of the arriving plane, and carried values. LATE: planes may arrive
    // when later ones have.
    template <class S, int LEVEL, int Y, int X, bool LATE>
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
        template <int I>
        __device__ __forceinline__ real parameter() const { return parameter_of<I>(stream.parameters, stream.varying + LEVEL * VARYING); }
        // Returns whether condition `K` holds at the cell whose plane lies `D` planes before the arriving one.
        template <int K, int D>
        __device__ __forceinline__ bool mask() const
        {
            if constexpr (LATE) {
                // No word is asked for by a number that the compiler does not know: all would be in local memory.
                const int bit = int(stream.newest - (plane - D)) * MASK_BITS + Y * OWN_X + X;
                unsigned word = 0;
                each<MASK_WORDS>([&](auto w) { if (bit >> 5 == w.value) word = stream.masks[K][w.value]; });
                return word >> (bit & 31) & 1u;
            } else {
                constexpr int BIT = (lag<LEVEL>() + D) * MASK_BITS + Y * OWN_X + X;
                return stream.masks[K][BIT / 32] & 1u << BIT % 32;
            }
        }
        // Returns the coordinate of the cell whose plane lies `D` planes before the arriving one.
        template <int AXIS, int D>
        __device__ __forceinline__ real coordinate() const
        {
            const Source at = AXIS == AXIS_S ? source_s(plane - D) : AXIS == AXIS_Y ? source_y(stream.y(Y)) : source_x(stream.x(X));
            return real(at.index);
        }
        // Returns whether the cell is one of the first or last COUNT along an axis across, in a window at that side.
        template <int AXIS, int COUNT>
        __device__ __forceinline__ bool first() const
        {
            if constexpr (AXIS == AXIS_Y) return stream.template first<Y_LOW, OWN_Y, Y, COUNT>();
            else return stream.template first<X_LOW, OWN_X, X, COUNT>();
        }
        template <int AXIS, int COUNT>
        __device__ __forceinline__ bool last() const
        {
            if constexpr (AXIS == AXIS_Y) return stream.template last<Y_HIGH, OWN_Y, Y, COUNT, LAST_ROWS>();
            else return stream.template last<X_HIGH, OWN_X, X, COUNT, LAST_COLUMNS>();
        }
    };

    // Calls fill(value) if plane `p` is a ghost plane that holds a value.
    template <class Fill>
    __device__ __forceinline__ static void fill_plane(Offset p, const Fill& fill)
    {
        if constexpr (LOW_S == CONSTANT || HIGH_S == CONSTANT) {
            const Source plane = source_s(p);
            if (plane.constant) fill(plane.value);
        }
    }

    // Reads rows of other strips beside the own cells of field F, as far as the stage taps them.
    template <class S, int LEVEL, int F, int EDGE, class Wide>
    __device__ __forceinline__ void rows_beside(Wide& wide, Offset p, int slot) const
    {
        constexpr int RY = S::RADIUS_Y, RX = S::RADIUS_X, UP = rows_above<S, F>(), DOWN = rows_below<S, F>();
        each<UP + DOWN>([&](auto i) {
            constexpr bool above = i.value < UP;
            constexpr int R = above ? -1 - i.value : OWN_Y + i.value - UP;
            real cells[OWN_X];
            // Beyond the window's sides any row will do.
            if constexpr (LEVEL == 0) {
                load_row(ring + (slot * FIELDS + F) * PLANE + R * TILE_X, cells, lane);
                if constexpr (EDGE == ALL) fill_plane(p, [&](real value) { each<OWN_X>([&](auto c) { cells[c.value] = value; }); });
            } else {
                constexpr int K = above ? EDGE_Y + R : R - OWN_Y;
                load_row(edge(turn, LEVEL, F, above ? -1 : 1, above) + K * TILE_X, cells, lane);
            }
            each<OWN_X>([&](auto c) { wide[R + RY][c.value + RX] = cells[c.value]; });
        });
    }

    // Calls give(ghost, cell) for the ghost rows on which the stage taps field F.
    template <class S, int F, class Low, class High>
    __device__ __forceinline__ void ghost_rows(const Low& low, const High& high) const
    {
        if constexpr (LOW_Y != FIXED && !WRAPS_Y) beyond_low<Y_LOW, LOW_Y, OWN_Y, -S::low_y(F)>(low);
        if constexpr (HIGH_Y != FIXED && !WRAPS_Y) beyond_high<Y_HIGH, HIGH_Y, OWN_Y, S::high_y(F), LAST_ROWS>(high);
    }

    // Puts the rows that ghost rows show of field F in their places.
    template <class S, int F, class Wide>
    __device__ __forceinline__ void show_rows(Wide& wide) const
    {
        auto show = [&](auto ghost, auto row) {
            constexpr int TO = ghost.value + S::RADIUS_Y, FROM = row.value + S::RADIUS_Y;
            each<OWN_X>([&](auto c) { wide[TO][c.value + S::RADIUS_X] = wide[FROM][c.value + S::RADIUS_X]; });
        };
        ghost_rows<S, F>([&](auto ghost, auto row) { if constexpr (LOW_Y != CONSTANT) show(ghost, row); },
                         [&](auto ghost, auto row) { if constexpr (HIGH_Y != CONSTANT) show(ghost, row); });
    }

    // Fetches columns of other lanes beside row `R - RADIUS_Y` of field F, as far as taps of any own row
    // reach.
    template <class S, int F, bool EDGE, int R, class Wide>
    __device__ __forceinline__ void columns_beside(Wide& wide) const
    {
        constexpr int RX = S::RADIUS_X, LEFT = columns<S, F, EDGE>(R - S::RADIUS_Y, true), RIGHT = columns<S, F, EDGE>(R - S::RADIUS_Y, false);
        each<LEFT>([&](auto i) {
            constexpr int K = i.value + 1, STEP = (K + OWN_X - 1) / OWN_X, FROM = STEP * OWN_X - K;
            wide[R][RX - K] = __shfl_up_sync(~0u, wide[R][RX + FROM], STEP);
        });
        each<RIGHT>([&](auto i) {
            constexpr int K = i.value, STEP = K / OWN_X + 1, FROM = K % OWN_X;
            wide[R][RX + OWN_X + K] = __shfl_down_sync(~0u, wide[R][RX + FROM], STEP);
        });
    }

    // Puts what ghost columns show of field F in plane `p`, and then the values of constant ghost rows, in their
    // places: where both meet, the row's value counts, and that of a constant plane before both.
    template <class S, int F, int EDGE, class Wide>
    __device__ __forceinline__ void show_columns(Wide& wide, Offset p) const
    {
        constexpr int RY = S::RADIUS_Y, RX = S::RADIUS_X;
        auto given = [&](real side) {
            if constexpr (EDGE == ALL) fill_plane(p, [&](real value) { side = value; });
            return side;
        };
        constexpr bool GIVEN = !WRAPS_X && (LOW_X != FIXED || HIGH_X != FIXED);
        if (GIVEN && (FLAT || uniform(side) & 1u << AT_SIDE)) {
            each<OWN_Y + 2 * RY>([&](auto r) {
                auto& row = wide[r.value];
                constexpr int LEFT = reach_x<S, F>(r.value - RY, true), RIGHT = reach_x<S, F>(r.value - RY, false);
                if constexpr (LOW_X != FIXED)
                    beyond_low<X_LOW, LOW_X, OWN_X, LEFT>([&](auto ghost, auto cell) {
                        row[RX + ghost.value] = LOW_X == CONSTANT ? given(LOW_VALUE_X) : row[RX + cell.value];
                    });
                if constexpr (HIGH_X != FIXED)
                    beyond_high<X_HIGH, HIGH_X, OWN_X, RIGHT, LAST_COLUMNS>([&](auto ghost, auto cell) {
                        row[RX + ghost.value] = HIGH_X == CONSTANT ? given(HIGH_VALUE_X) : row[RX + cell.value];
                    });
            });
        }
        auto fill = [&](auto ghost, real value) { each<OWN_X + 2 * RX>([&](auto c) { wide[ghost.value + RY][c.value] = value; }); };
        ghost_rows<S, F>([&](auto ghost, auto) { if constexpr (LOW_Y == CONSTANT) fill(ghost, given(LOW_VALUE_Y)); },
                         [&](auto ghost, auto) { if constexpr (HIGH_Y == CONSTANT) fill(ghost, given(HIGH_VALUE_Y)); });
    }

    // Takes the arriving plane `p` with the own cells, which give the plane DELAY before it.
    template <int LEVEL, int EDGE, class Wide, class Distant>
    __device__ __forceinline__ void take(Wide& wide, Distant& distant, Cells (&out)[FIELDS], Offset p, int slot)
    {
        typedef typename StageAt<LEVEL % STAGES>::type S;
        constexpr bool LATE = EDGE == ALL && LEVEL > 0 && shows_this_side(LOW_S) && S::BACK > 0;
        auto arrive = [&](Offset plane) {
            each<OWN_Y>([&](auto r) {
                constexpr int R = r.value;
                each<OWN_X>([&](auto c) {
                    constexpr int C = c.value;
                    const View<S, LEVEL, R, C, LATE> view = {*this, wide, distant, plane};
                    real value[FIELDS];
                    S::template arrive<EDGE == ALL, EDGE == ALL, EDGE != NONE, EDGE != NONE>(view, value);
                    each<FIELDS>([&](auto f) { out[f.value][R][C] = value[f.value]; });
                });
            });
        };
        // The input has ghost planes in their places. Before other levels they arrive late: once all planes that
        // they show are there, which then arrive again.
        if constexpr (LATE) {
            constexpr int SHOWN = shown(LOW_S, S::BACK);
            auto cells = [&](const auto& act) {
                each<FIELDS>([&](auto f) { each<OWN_Y + 2 * S::RADIUS_Y>([&](auto r) { each<OWN_X + 2 * S::RADIUS_X>([&](auto c) { act(f.value, r.value, c.value); }); }); });
            };
            if (SHOWN > 1 && p >= 0 && p < SHOWN) cells([&](int f, int r, int c) { kept.low[p][f][r][c] = wide[f][r][c]; });
            #pragma unroll 1
            for (int plane = p == SHOWN - 1 ? -S::BACK : SHOWN - 1; plane < SHOWN; ++plane) {
                if (SHOWN > 1 && p == SHOWN - 1) cells([&](int f, int r, int c) { wide[f][r][c] = kept.low[plane < 0 ? below(LOW_S, plane, 0) : plane][f][r][c]; });
                // Ghost planes know their own places.
                arrive(p - (SHOWN - 1) + plane);
            }
        } else arrive(p);
        if constexpr (EDGE != NONE && HAS_FIXED) {
            const int now = slot - (lag<LEVEL>() + S::DELAY), at = now < 0 ? now + RING : now;
            each<S::WRITES>([&](auto o) { hold<S::writes(o.value), EDGE == ALL>(out[S::writes(o.value)], p - S::DELAY, at); });
        }
    }

    // Puts what a ghost plane shows in the place of plane `q`, which goes to a level.
    template <int LEVEL>
    __device__ __forceinline__ void show_plane(Cells (&made)[FIELDS], Offset q) const
    {
        const int behind = int(q - EXTENT_S);
        auto cells = [&](const auto& act) {
            each<FIELDS>([&](auto f) { each<OWN_Y>([&](auto r) { each<OWN_X>([&](auto c) { act(f.value, r.value, c.value); }); }); });
        };
        fill_plane(q, [&](real value) { cells([&](int f, int r, int c) { made[f][r][c] = value; }); });
        if (KEPT_HIGH > 0 && behind >= 0) {
            // Ghost planes farther behind are not tapped.
            const int shows = -1 - int(above(HIGH_S, behind, 0));
            // A number that the compiler does not know, lest it keeps the planes in registers.
            const int k = uniform(shows < KEPT_HIGH ? shows : KEPT_HIGH - 1);
            cells([&](int f, int r, int c) { made[f][r][c] = kept.high[LEVEL][k][f][r][c]; });
        } else if (KEPT_HIGH > 0 && behind >= -KEPT_HIGH) cells([&](int f, int r, int c) { kept.high[LEVEL][-1 - behind][f][r][c] = made[f][r][c]; });
    }

    // Runs a level: its stage turns the plane `p` that arrives at it into the plane DELAY before it.
    template <int LEVEL, int EDGE>
    __device__ __forceinline__ void level(const Cells (&in)[FIELDS], Cells (&out)[FIELDS], Offset p, int slot)
    {
        typedef typename StageAt<LEVEL % STAGES>::type S;
        constexpr int RY = S::RADIUS_Y, RX = S::RADIUS_X;
        // Whether own rows have all they need before the rows beside arrive: none of them is a ghost row.
        constexpr bool EARLY = EDGE == NONE || TILES_Y > 1 || LAST_ROWS == OWN_Y;
        real wide[FIELDS][OWN_Y + 2 * RY][OWN_X + 2 * RX];
        each<FIELDS>([&](auto f) {
            constexpr int F = f.value;
            each<OWN_Y>([&](auto r) { each<OWN_X>([&](auto c) { wide[F][r.value + RY][c.value + RX] = in[F][r.value][c.value]; }); });
            if constexpr (EARLY) each<OWN_Y>([&](auto r) { columns_beside<S, F, EDGE != NONE, r.value + RY>(wide[F]); });
        });
        // From here on all strips have the plane's copies, have published the level's rows, and are done with
        // those before.
        if constexpr (SYNCED) barrier();
        each<FIELDS>([&](auto f) {
            constexpr int F = f.value;
            rows_beside<S, LEVEL, F, EDGE>(wide[F], p, slot);
            if constexpr (EDGE != NONE) show_rows<S, F>(wide[F]);
            each<OWN_Y + 2 * RY>([&](auto r) {
                constexpr bool own = r.value >= RY && r.value < OWN_Y + RY;
                if constexpr (!(own && EARLY)) columns_beside<S, F, EDGE != NONE, r.value>(wide[F]);
            });
            if constexpr (EDGE != NONE) show_columns<S, F, EDGE>(wide[F], p);
        });
        real distant[FAR > 0 ? FAR : 1][OWN_Y][OWN_X];
        constexpr int HERE = S::CARRIED > NEAR ? S::CARRIED - NEAR : 0;
        Word* const words = reinterpret_cast<Word*>(far) + LEVEL * FAR * (OWN_Y * OWN_X / VECTOR) * THREADS + tid;
        each<HERE * OWN_Y * (OWN_X / VECTOR)>([&](auto i) {
            constexpr int V = i.value % (OWN_X / VECTOR), R = i.value / (OWN_X / VECTOR) % OWN_Y, K = i.value / (OWN_X / VECTOR) / OWN_Y;
            const Word word = words[i.value * THREADS];
            each<VECTOR>([&](auto l) { distant[K][R][V * VECTOR + l.value] = word.lane[l.value]; });
        });
        take<LEVEL, EDGE>(wide, distant, out, p, slot);
        if constexpr (NOTES && EDGE == ALL && LEVEL % STAGES == STAGES - 1) note(noting, out, p - S::DELAY, LEVEL / STAGES);
        if constexpr (EDGE == ALL && LEVEL < LEVELS - 1) show_plane<LEVEL + 1>(out, p - S::DELAY);
        if constexpr (SYNCED && LEVEL < LEVELS - 1) publish<LEVEL + 1>(out);
        each<HERE * OWN_Y * (OWN_X / VECTOR)>([&](auto i) {
            constexpr int V = i.value % (OWN_X / VECTOR), R = i.value / (OWN_X / VECTOR) % OWN_Y, K = i.value / (OWN_X / VECTOR) / OWN_Y;
            Word word;
            each<VECTOR>([&](auto l) { word.lane[l.value] = distant[K][R][V * VECTOR + l.value]; });
            words[i.value * THREADS] = word;
        });
    }

    // Writes the rows that other strips read of the plane that waits before a level.
    template <int LEVEL>
    __device__ __forceinline__ void publish(const Cells (&waiting)[FIELDS]) const
    {
        typedef typename StageAt<LEVEL % STAGES>::type S;
        each<FIELDS>([&](auto f) {
            constexpr int UP = rows_above<S, f.value>(), DOWN = rows_below<S, f.value>();
            each<DOWN>([&](auto k) { store_row(edge(turn, LEVEL, f.value, 0, 0) + k.value * TILE_X, waiting[f.value][k.value], lane); });
            each<UP>([&](auto k) {
                constexpr int K = EDGE_Y - 1 - k.value, R = OWN_Y - 1 - k.value;
                store_row(edge(turn, LEVEL, f.value, 0, 1) + K * TILE_X, waiting[f.value][R], lane);
            });
        });
    }

    // Lets each level take a plane; `p` arrives at the first.
    template <int EDGE>
    __device__ __forceinline__ void step(Offset p, int slot, Cells (&out)[FIELDS])
    {
        if constexpr (LAG > 0) {
            // From the last level to the first: each takes the plane that the level before it made a plane
            // ago.
            each<LEVELS>([&](auto i) {
                constexpr int LEVEL = LEVELS - 1 - i.value;
                const Offset here = p - lag<LEVEL>();
                if constexpr (LEVEL == LEVELS - 1) level<LEVEL, EDGE>(arriving[LEVEL], out, here, slot);
                else {
                    Cells made[FIELDS];
                    level<LEVEL, EDGE>(arriving[LEVEL], made, here, slot);
                    each<FIELDS>([&](auto f) {
                        each<OWN_Y>([&](auto r) { each<OWN_X>([&](auto c) { arriving[LEVEL + 1][f.value][r.value][c.value] = made[f.value][r.value][c.value]; }); });
                    });
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

    // Starts the copy of the plane that is AHEAD - 1 planes away, into the slot of a plane with which all
    // threads are done.
    __device__ __forceinline__ void fetch_next(Offset p, int slot) const
    {
        fetch(p + AHEAD - 1, slot + AHEAD - 1 < RING ? slot + AHEAD - 1 : slot + AHEAD - 1 - RING);
        copies_end();
    }

    // Lets plane `p` arrive; planes first … last - 1 of the result are stored.
    template <int EDGE>
    __device__ __forceinline__ void advance(Offset p, Offset first, Offset last, int& slot)
    {
        copies_wait<AHEAD - 2>();
        if constexpr (SYNCED) {
            // The lanes of this warp have each other's copies; level 0 waits for those of the other warps.
            __syncwarp();
        } else {
            barrier();
            fetch_next(p, slot);
        }
        each<FIELDS>([&](auto f) {
            each<OWN_Y>([&](auto r) {
                load_row(ring + (slot * FIELDS + f.value) * PLANE + r.value * TILE_X, arriving[0][f.value][r.value], lane);
                if constexpr (EDGE == ALL) fill_plane(p, [&](real value) { each<OWN_X>([&](auto c) { arriving[0][f.value][r.value][c.value] = value; }); });
            });
        });
        if constexpr (MASKS > 0) ask_all(p);
        Cells out[FIELDS];
        step<EDGE>(p, slot, out);
        const Offset q = p - BEHIND;
        if (q >= first && q < last) {
            store(out, q, buffers.next);
            give(turns, out, q);
        }
        slot = slot == RING - 1 ? 0 : slot + 1;
    }

    // Returns the choices that some cell of the window may make, a bit each.
    __device__ __forceinline__ unsigned choices_across() const
    {
        auto meets = [](Offset at, Offset begin, Offset cells, Offset extent) {
            auto within = [&](Offset i) { return i >= begin && i < begin + cells; };
            return at < 0 || within(at - extent) || within(at) || within(at + extent);
        };
        unsigned choices = 0;
        each<STAGES>([&](auto n) {
            typedef typename StageAt<n.value>::type S;
            each<S::CHOICES>([&](auto k) {
                const bool on_y = meets(S::choice(k.value, 1), y0, TILE_Y, EXTENT_Y), on_x = meets(S::choice(k.value, 2), x0, TILE_X, EXTENT_X);
                choices |= unsigned(on_y && on_x) << (S::FIRST_CHOICE + k.value);
            });
        });
        return choices;
    }

    // Returns the first plane from `p` on at whose arrival a level makes a choice, or `end`.
    __device__ __forceinline__ static Offset next_choice(unsigned choices, Offset p, Offset end)
    {
        Offset next = end;
        each<STAGES>([&](auto n) {
            typedef typename StageAt<n.value>::type S;
            each<S::CHOICES>([&](auto k) {
                for (int round = LOW_S == PERIODIC ? -1 : 0; round <= (LOW_S == PERIODIC ? 1 : 0); ++round) {
                    const Offset made = S::choice(k.value, 0) + round * EXTENT_S, from = made < p ? p : made;
                    if ((choices >> (S::FIRST_CHOICE + k.value) & 1u) && p <= made + BEHIND && from < next) next = from;
                }
            });
        });
        return next;
    }

    __device__ __forceinline__ void run(Offset first, Offset last)
    {
        Offset p = LOW_S == FIXED && first < MARGIN_S ? 0 : first - MARGIN_S;
        each<AHEAD - 1>([&](auto i) { fetch(p + i.value, i.value); copies_end(); });
        // Planes between these two meet no boundary of S at any level.
        constexpr int NEAR_END = KEPT_HIGH > FIX_S ? KEPT_HIGH : FIX_S;
        const Offset end = last + BEHIND, high = MEETS_S ? EXTENT_S - NEAR_END : end;
        const Offset low = FLAT && bound_across ? end : MEETS_S ? BEHIND + FIX_S : p;
        unsigned choices = 0;
        if constexpr (CHOICES > 0) choices = choices_across();
        int slot = 0;
        #pragma unroll 1
        while (p < end) {
            Offset until = end;
            bool notes = false;
            if constexpr (NOTES) {
                until = next_noted(noting, p, notes);
                if (until > end) until = end;
            }
            if constexpr (MEETS_S || (FLAT && MEETS_ACROSS) || CHOICES > 0 || NOTES) {
                Offset stop = p >= high || low > end ? end : low;
                if constexpr (CHOICES > 0) if (stop <= p && next_choice(choices, p, end) == p) stop = p + 1;
                if constexpr (NOTES) if (notes || stop > until) stop = until;
                #pragma unroll 1
                for (; p < stop; ++p) advance<ALL>(p, first, last, slot);
                if (NOTES && p == until) continue;
            }
            Offset stop = high < until ? high : until;
            if constexpr (CHOICES > 0) stop = next_choice(choices, p, stop);
            if constexpr (MEETS_ACROSS && !FLAT) {
                #pragma unroll 1
                for (const Offset there = bound_across ? stop : p; p < there; ++p) advance<ACROSS>(p, first, last, slot);
            }
            #pragma unroll 1
            for (; p < stop; ++p) advance<NONE>(p, first, last, slot);
        }
    }
};

// The ways of lines into the tile and out of it, and what tiles exchange between two passes. A cell that
// another tile reads is sent to its place in one of two copies of the domain, by turns. Of each line the
// columns that tiles beside read go through shared memory, so that whole sectors are stored.

struct Exchange : Tile {
    static constexpr int WORDS = OWN_X / WORD, BESIDE = MARGIN_X / WORD;

    // Returns where a line of the tile is in a field in device memory, and where a column is in a line.
    __device__ __forceinline__ Offset line_at(int s, int y) const
    {
        return wrapped(WRAPS_S, s0 + s, EXTENT_S) * STRIDE_S + wrapped(WRAPS_Y, y0 + y, EXTENT_Y) * STRIDE_Y;
    }
    __device__ __forceinline__ Offset column_at(int x) const { return wrapped(WRAPS_X, x0 + x, EXTENT_X); }
    // Returns whether a column of the tile is in the domain, or in the last word of its line.
    __device__ __forceinline__ bool is_there(int x) const { return WRAPS_X || x0 + x < END_X; }

    // Starts the copy of a word. Narrow copies go through the first-level cache, which does not see other blocks'
    // stores; narrow words are therefore loaded.
    __device__ __forceinline__ static void copy_word(real* to, const real* from)
    {
        if constexpr (WORD * sizeof(real) == 16) copy_async<16>(to, from);
        else {
            real cells[WORD];
            load_word(cells, from);
            each<WORD>([&](auto l) { to[l.value] = cells[l.value]; });
        }
    }

    __device__ __forceinline__ void load_cells(const real* field, int s, int y, Line& cells) const
    {
        const real* const from = field + line_at(s, y);
        each<WORDS>([&](auto v) {
            const int x = lane * OWN_X + v.value * WORD;
            if (is_there(x)) load_word(&cells[v.value * WORD], from + column_at(x));
            else each<WORD>([&](auto l) { cells[v.value * WORD + l.value] = real(0); });
        });
    }

    __device__ __forceinline__ void store_cells(real* field, int s, int y, const Line& cells) const
    {
        real* const to = field + line_at(s, y);
        each<WORDS>([&](auto v) {
            const int x = lane * OWN_X + v.value * WORD;
            if (is_there(x) && along_x.keeps(x)) store_word(to + column_at(x), &cells[v.value * WORD]);
        });
    }

    // Calls `f(s, y)` with each line beyond the tile that this warp fetches into `lines`; warps take them by turns.
    template <class Each>
    __device__ __forceinline__ void each_beyond(const Each& f) const
    {
        // The planes before and behind the tile, then the rows beside each of its planes.
        constexpr int PLANES_BEYOND = 2 * RING_S * LINES_Y, ALL = PLANES_BEYOND + TILE_S * 2 * RING_Y;
        each<(ALL + WARPS - 1) / WARPS>([&](auto i) {
            const int line = i.value * WARPS + warp;
            if (line < PLANES_BEYOND) {
                const int plane = line / LINES_Y;
                f(plane < RING_S ? plane - RING_S : TILE_S + plane - RING_S, line % LINES_Y - RING_Y);
            } else if (line < ALL) {
                constexpr int SIDES = RING_Y > 0 ? 2 * RING_Y : 1;
                const int row = (line - PLANES_BEYOND) % SIDES;
                f((line - PLANES_BEYOND) / SIDES, row < RING_Y ? row - RING_Y : TILE_Y + row - RING_Y);
            }
        });
    }

    // Returns the place in `lines` of line (s, y) beyond the tile.
    __device__ __forceinline__ static int place_beyond(int s, int y)
    {
        // Of a tile whose warps stand along S not all lines are there.
        return (s < 0 || !STACKED ? RING_S + s : LINES_S - RING_S + s - TILE_S) * LINES_Y + RING_Y + y;
    }

    // What line (s, y) beyond the tile is: a neighbour's, which changes; the domain's, held; outside, a value or
    // nothing that is read.
    enum Beyond { CHANGES, HOLDS, IS_VALUE, IS_UNREAD };
    __device__ __forceinline__ Beyond beyond(int s, int y, real& value) const
    {
        auto of = [&value](int i, int tile, bool before, bool behind, int low, int high, bool whole, real below, real above) {
            if (i >= 0 && i < tile) return CHANGES;
            if (whole) return IS_UNREAD;
            if (i < 0 ? before : behind) return CHANGES;
            const int kind = i < 0 ? low : high;
            if (kind == CONSTANT) value = i < 0 ? below : above;
            return kind == CONSTANT ? IS_VALUE : kind == FIXED ? HOLDS : IS_UNREAD;
        };
        const Beyond a = of(s, TILE_S, along_s.has_before, along_s.has_behind, LOW_S, HIGH_S, WHOLE_S, LOW_VALUE_S, HIGH_VALUE_S);
        const real first = value;
        const Beyond b = of(y, TILE_Y, along_y.has_before, along_y.has_behind, LOW_Y, HIGH_Y, WHOLE_Y, LOW_VALUE_Y, HIGH_VALUE_Y);
        // The slowest axis speaks first.
        if (a == IS_VALUE) value = first;
        return a == IS_UNREAD || b == IS_UNREAD ? IS_UNREAD : a == IS_VALUE || b == IS_VALUE ? IS_VALUE : a == HOLDS || b == HOLDS ? HOLDS : CHANGES;
    }

    // Starts the copies of the lines beyond the tile of field F to the half of `lines` that is read: all of them, to both
    // halves, or those that change.
    template <int F, bool ALL>
    __device__ __forceinline__ void fetch_beyond(const real* field) const
    {
        each_beyond([&](int s, int y) {
            real value = real(0);
            const Beyond what = beyond(s, y, value);
            if (what == IS_UNREAD || (!ALL && what != CHANGES)) return;
            const real* const from = field + line_at(s, y);
            each<ALL && halves<F>() == 2 ? 2 : 1>([&](auto other) {
                real* const to = lines + field_lines<F>() + place_beyond(s, y) * TILE_X + (other.value ? HALF - half[F] : half[F]);
                each<WORDS>([&](auto v) {
                    constexpr int C = v.value * WORD;
                    real* const cells = to + C / VECTOR * 32 * VECTOR + C % VECTOR;
                    const int x = lane * OWN_X + C;
                    if (what != IS_VALUE && is_there(x)) copy_word(cells, from + column_at(x));
                    else each<WORD>([&](auto l) { cells[l.value] = value; });
                });
            });
        });
    }

    __device__ __forceinline__ void load(Planes& kept)
    {
        each<FIELDS>([&](auto f) {
            constexpr int F = f.value;
            half[F] = 0;
            fetch_beyond<F, true>(buffers.current[F]);
            each_own([&](auto s, auto y) {
                Line cells;
                load_cells(buffers.current[F], first_s + s.value, first_y + y.value, cells);
                store_own<F, s.value, y.value>(kept, cells);
            });
        });
        copies_end();
        copies_wait<0>();
        publish_all(kept, [](int) { return true; });
        if constexpr (EXCHANGES) sent();
        barrier();
    }

    // Stores what the tile keeps in place of what was loaded, once neighbours have loaded what they read of it.
    __device__ __forceinline__ void store(const Planes& kept)
    {
        look_up();
        if constexpr (EXCHANGES) await(0);
        each<FIELDS>([&](auto f) {
            constexpr int F = f.value;
            if constexpr (written<F>()) each_own([&](auto s, auto y) {
                Line cells;
                load_own<F, s.value, y.value>(kept, cells);
                const int line_s = first_s + s.value, line_y = first_y + y.value;
                if (along_s.keeps(line_s) && along_y.keeps(line_y)) store_cells(buffers.current[F], line_s, line_y, cells);
            });
        });
    }

    // Tells the neighbours that this warp has loaded its lines, or has sent what they read.
    __device__ __forceinline__ void sent() const
    {
        __syncwarp();
        if (lane == 0) add_release(counters + blockIdx.x * 32, 1u);
    }

    // Waits until all warps of all neighbours have sent pass number `pass`; 0 is the load.
    __device__ __forceinline__ void await(unsigned pass) const
    {
        const int other = tile_beside(tile_s, tile_y, tile_x, lane);
        if (other >= 0)
            while (load_acquire(counters + other * 32) < (pass + 1) * WARPS) {}
        __syncwarp();
    }

    __device__ __forceinline__ void exchange(Planes& kept, unsigned pass)
    {
        look_up();
        const bool odd = pass & 1;
        // Whether none of this warp's lines is read whole, or comes whole, from elsewhere.
        const bool inner = all_lines([&](int s, int y) { return !whole_read(s, y) && along_s.keeps(s) && along_y.keeps(y); });
        each<FIELDS>([&](auto f) {
            constexpr int F = f.value;
            if constexpr (written<F>()) {
                real* const to = odd ? turns.next[F] : turns.current[F];
                if (!inner) each_own([&](auto s, auto y) {
                    const int line_s = first_s + s.value, line_y = first_y + y.value;
                    if (whole_read(line_s, line_y) && along_s.keeps(line_s) && along_y.keeps(line_y)) {
                        Line cells;
                        load_own<F, s.value, y.value>(kept, cells);
                        store_cells(to, line_s, line_y, cells);
                    }
                });
                if constexpr (BESIDE_X) send_columns<F>(kept, to);
            }
        });
        sent();
        await(pass);
        each<FIELDS>([&](auto f) {
            constexpr int F = f.value;
            if constexpr (written<F>()) {
                const real* const from = odd ? turns.next[F] : turns.current[F];
                if constexpr (BESIDE_X) fetch_columns(from);
                fetch_beyond<F, false>(from);
                copies_end();
                if (!inner) each_own([&](auto s, auto y) {
                    const int line_s = first_s + s.value, line_y = first_y + y.value;
                    if (!(along_s.keeps(line_s) && along_y.keeps(line_y))) {
                        Line cells;
                        load_cells(from, line_s, line_y, cells);
                        store_own<F, s.value, y.value>(kept, cells);
                    }
                });
                copies_wait<0>();
                if constexpr (BESIDE_X) take_columns<F>(kept);
            }
        });
        publish_all(kept, [](int f) { return changes(f); });
        barrier();
    }

    __device__ __forceinline__ static bool changes(int f)
    {
        bool is = false;
        each<FIELDS>([&](auto g) { if (g.value == f) is = written<g.value>(); });
        return is;
    }

    template <class Test>
    __device__ __forceinline__ bool all_lines(const Test& test) const
    {
        bool all = true;
        each_own([&](auto s, auto y) { all = all && test(first_s + s.value, first_y + y.value); });
        return all;
    }

    // Returns whether a tile before or behind reads the line, from end to end.
    __device__ __forceinline__ bool whole_read(int s, int y) const
    {
        return along_s.read(s, MARGIN_S + RING_S) || along_y.read(y, MARGIN_Y + RING_Y);
    }

    // Of all own lines, the columns that tiles beside read go to their places.
    template <int F>
    __device__ __forceinline__ void send_columns(const Planes& kept, real* to) const
    {
        __syncwarp();                    // all lanes are done with the columns before
        each_own([&](auto s, auto y) {
            Line cells;
            load_own<F, s.value, y.value>(kept, cells);
            real* const line = columns + (s.value * OWN_Y + y.value) * 2 * MARGIN_X;
            each<WORDS>([&](auto v) {
                const int x = lane * OWN_X + v.value * WORD, left = x - along_x.before, right = x - along_x.behind;
                if (left >= 0 && left < MARGIN_X) memcpy(line + left, &cells[v.value * WORD], WORD * sizeof(real));
                if (right >= 0 && right < MARGIN_X) memcpy(line + MARGIN_X + right, &cells[v.value * WORD], WORD * sizeof(real));
            });
        });
        __syncwarp();                    // all lanes have written their columns
        each<(COLUMNS / WORD + 31) / 32>([&](auto i) {
            const int word = i.value * 32 + lane, line = word / (2 * BESIDE), column = word % (2 * BESIDE);
            const bool behind = column >= BESIDE;
            const int s = first_s + line / OWN_Y, y = first_y + line % OWN_Y;
            if (word < COLUMNS / WORD && (behind ? along_x.has_behind : along_x.has_before) && along_s.keeps(s) && along_y.keeps(y)) {
                const int x = behind ? along_x.behind + (column - BESIDE) * WORD : along_x.before + column * WORD;
                real cells[WORD];
                memcpy(cells, columns + word * WORD, sizeof cells);
                store_word(to + line_at(s, y) + column_at(x), cells);
            }
        });
    }

    // The columns that come from tiles beside: the first and last MARGIN_X of all own lines.
    __device__ __forceinline__ void fetch_columns(const real* from) const
    {
        __syncwarp();                    // all lanes have taken theirs of the field before
        each<(COLUMNS / WORD + 31) / 32>([&](auto i) {
            const int word = i.value * 32 + lane, line = word / (2 * BESIDE), column = word % (2 * BESIDE);
            const bool behind = column >= BESIDE;
            const int s = first_s + line / OWN_Y, y = first_y + line % OWN_Y;
            if (word < COLUMNS / WORD && (behind ? along_x.has_behind : along_x.has_before)) {
                const int x = behind ? TILE_X - MARGIN_X + (column - BESIDE) * WORD : column * WORD;
                copy_word(columns + word * WORD, from + line_at(s, y) + column_at(x));
            }
        });
    }

    template <int F>
    __device__ __forceinline__ void take_columns(Planes& kept) const
    {
        __syncwarp();                    // all lanes' columns have arrived
        each_own([&](auto s, auto y) {
            Line cells;
            load_own<F, s.value, y.value>(kept, cells);
            const real* const line = columns + (s.value * OWN_Y + y.value) * 2 * MARGIN_X;
            each<WORDS>([&](auto v) {
                const int x = lane * OWN_X + v.value * WORD, right = x - (TILE_X - MARGIN_X);
                if (along_x.has_before && x < MARGIN_X) memcpy(&cells[v.value * WORD], line + x, WORD * sizeof(real));
                if (along_x.has_behind && right >= 0) memcpy(&cells[v.value * WORD], line + MARGIN_X + right, WORD * sizeof(real));
            });
            store_own<F, s.value, y.value>(kept, cells);
        });
    }
};

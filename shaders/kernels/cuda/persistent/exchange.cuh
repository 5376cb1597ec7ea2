// The ways of lines into the tile and out of it. A cell that another tile reads is sent to it between two passes:
// counted.cuh and tagged.cuh say how. Of each line the columns that tiles beside read go through shared memory, so that
// whole sectors are stored.

struct Ways : Tile {
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

    // The lines beyond the tile: the planes before and behind it, then the rows beside each of its planes. Warps fetch them
    // into `lines` by turns.
    static constexpr int PLANES_BEYOND = 2 * RING_S * LINES_Y, LINES_BEYOND = PLANES_BEYOND + TILE_S * 2 * RING_Y;
    static constexpr int TURNS_BEYOND = (LINES_BEYOND + WARPS - 1) / WARPS;

    // Finds the line that this warp fetches in a turn; returns whether there is one.
    __device__ __forceinline__ bool line_beyond(int turn, int& s, int& y) const
    {
        const int line = turn * WARPS + warp;
        if (line < PLANES_BEYOND) {
            const int plane = line / LINES_Y;
            s = plane < RING_S ? plane - RING_S : TILE_S + plane - RING_S;
            y = line % LINES_Y - RING_Y;
        } else {
            constexpr int SIDES = RING_Y > 0 ? 2 * RING_Y : 1;
            const int row = (line - PLANES_BEYOND) % SIDES;
            s = (line - PLANES_BEYOND) / SIDES;
            y = row < RING_Y ? row - RING_Y : TILE_Y + row - RING_Y;
        }
        return line < LINES_BEYOND;
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
        each<TURNS_BEYOND>([&](auto turn) {
            int s, y;
            if (!line_beyond(turn.value, s, y)) return;
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

    // Writes what the tile keeps in place of what was loaded, once neighbours have loaded what they read of it.
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

    // Copies from all own lines the columns that tiles beside read to `to`, in shared memory.
    template <int F>
    __device__ __forceinline__ void collect_columns(const Planes& kept, real* to) const
    {
        each_own([&](auto s, auto y) {
            Line cells;
            load_own<F, s.value, y.value>(kept, cells);
            real* const line = to + (s.value * OWN_Y + y.value) * 2 * MARGIN_X;
            each<WORDS>([&](auto v) {
                const int x = lane * OWN_X + v.value * WORD, left = x - along_x.before, right = x - along_x.behind;
                if (left >= 0 && left < MARGIN_X) memcpy(line + left, &cells[v.value * WORD], WORD * sizeof(real));
                if (right >= 0 && right < MARGIN_X) memcpy(line + MARGIN_X + right, &cells[v.value * WORD], WORD * sizeof(real));
            });
        });
    }

    // Puts the columns that came from tiles beside, the first and last MARGIN_X of all own lines, in their places.
    template <int F>
    __device__ __forceinline__ void take_columns(Planes& kept, const real* from) const
    {
        each_own([&](auto s, auto y) {
            Line cells;
            load_own<F, s.value, y.value>(kept, cells);
            const real* const line = from + (s.value * OWN_Y + y.value) * 2 * MARGIN_X;
            each<WORDS>([&](auto v) {
                const int x = lane * OWN_X + v.value * WORD, right = x - (TILE_X - MARGIN_X);
                if (along_x.has_before && x < MARGIN_X) memcpy(&cells[v.value * WORD], line + x, WORD * sizeof(real));
                if (along_x.has_behind && right >= 0) memcpy(&cells[v.value * WORD], line + MARGIN_X + right, WORD * sizeof(real));
            });
            store_own<F, s.value, y.value>(kept, cells);
        });
    }
};

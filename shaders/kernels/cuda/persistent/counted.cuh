// How tiles exchange cells by counters. Each cell is stored at its place in one of two copies of the domain, by turns;
// then each warp adds one to its block's counter, waits until all neighbours have the number of their warps for this
// pass, and loads.

struct ExchangeBuffer {
    Buffers turns;                       // the two copies of each field that changes
};

struct Exchange : Ways {
    __device__ __forceinline__ void exchange(Planes& kept, unsigned pass)
    {
        look_up();
        const bool odd = pass & 1;
        // Whether none of this warp's lines is read whole, or comes whole, from elsewhere.
        const bool inner = all_lines([&](int s, int y) { return !whole_read(s, y) && along_s.keeps(s) && along_y.keeps(y); });
        each<FIELDS>([&](auto f) {
            constexpr int F = f.value;
            if constexpr (written<F>()) {
                real* const to = odd ? exchange_buffer.turns.next[F] : exchange_buffer.turns.current[F];
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
                const real* const from = odd ? exchange_buffer.turns.next[F] : exchange_buffer.turns.current[F];
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
                if constexpr (BESIDE_X) {
                    __syncwarp();        // all lanes' columns have arrived
                    take_columns<F>(kept, columns);
                }
            }
        });
        publish_all(kept, [](int f) { return changes(f); });
        barrier();
    }

    // Of all own lines, the columns that tiles beside read go to their places.
    template <int F>
    __device__ __forceinline__ void send_columns(const Planes& kept, real* to) const
    {
        __syncwarp();                    // all lanes are done with the columns before
        collect_columns<F>(kept, columns);
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
};

// How tiles exchange cells by one way through the second-level cache. A tile puts what others read into its exchange buffer, in
// words of 64 bits: 32 bits of a value, and beside them a tag, the number of the exchange. Readers load words until all
// tags are right. Each word carries its own tag, so there is no fence, and nothing hangs on the size of an access.
//
// An exchange buffer has two halves, used by turns. A tile writes over exchange n in exchange n + 2, after it has received n + 1
// from all tiles around it. Each of them has sent that after the barrier that ends its exchange n, when all its warps
// had read n. Every tile that reads an exchange buffer is a tile that the exchange buffer's owner reads: what tiles read of each other
// along an axis is equally much on both sides, and each cell has one sender, the tile at that side (`Shared::side`).

constexpr int PARTS = sizeof(real) / 4;                  // words of a value
constexpr int TAGGED_WORDS = PARTS == 2 || OWN_X % 2 == 0 ? 2 : 1; // words of an access
constexpr int VALUES = TAGGED_WORDS / PARTS;                   // values of an access
constexpr int CHANGING = changing<FIELDS>();

// An exchange buffer, for a half and a field: all lines of the tile, the lanes' vectors side by side; then of each line the
// columns that the tile before reads, and those that the tile behind reads.
constexpr int LINE_WORDS = TILE_X * PARTS, COLUMN_WORDS = 2 * MARGIN_X * PARTS;
constexpr int BUFFER_WORDS = TILE_S * TILE_Y * (LINE_WORDS + COLUMN_WORDS);
static_assert((long long)(BLOCKS) * 2 * CHANGING * BUFFER_WORDS * 8 == EXCHANGE_BYTES, "the host allocates all exchange buffers");
static_assert(EXCHANGE_BYTES / 8 <= 0x7fffffff && MARGIN_X % VALUES == 0);

// Vectors that a lane waits for at once, each with the place that it comes from, in registers that no plane takes.
constexpr int FREE = REGISTERS - FIELDS * PLANES_REGISTERS * OWN_Y * OWN_X * PARTS - 48, MOST = FREE / (2 * TAGGED_WORDS + 2);
constexpr int AT_ONCE = MOST < 1 ? 1 : MOST < 12 ? MOST : 12;

typedef unsigned long long Tagged;

struct ExchangeBuffer {
    Tagged* words;                       // [BLOCKS][2][CHANGING][BUFFER_WORDS]
    unsigned before;                     // exchanges before this launch
};

struct TaggedVector {
    Tagged word[TAGGED_WORDS];

    // Returns values with their tag.
    __device__ __forceinline__ static TaggedVector of(const real* cells, unsigned tag)
    {
        unsigned bits[TAGGED_WORDS];
        memcpy(bits, cells, sizeof bits);
        TaggedVector vector;
        each<TAGGED_WORDS>([&](auto w) { vector.word[w.value] = Tagged(tag) << 32 | bits[w.value]; });
        return vector;
    }

    __device__ __forceinline__ void open(real* cells) const
    {
        unsigned bits[TAGGED_WORDS];
        each<TAGGED_WORDS>([&](auto w) { bits[w.value] = unsigned(word[w.value]); });
        memcpy(cells, bits, sizeof bits);
    }

    __device__ __forceinline__ bool has(unsigned tag) const
    {
        bool all = true;
        each<TAGGED_WORDS>([&](auto w) { all = all && unsigned(word[w.value] >> 32) == tag; });
        return all;
    }

    // Each word is stored and loaded as a whole; both words of a vector are not.
    __device__ __forceinline__ void store(Tagged* to) const
    {
        store_words(to, word);
    }

    __device__ __forceinline__ void load(const Tagged* from)
    {
        load_words(word, from);
    }
};

// Returns the number of the G-th field that changes.
template <int G, int F = 0>
__device__ constexpr int changing_field()
{
    if constexpr (!written<F>()) return changing_field<G, F + 1>();
    else if constexpr (G == 0) return F;
    else return changing_field<G - 1, F + 1>();
}

struct Exchange : Ways {
    static constexpr int PARCELS = OWN_X / VALUES;       // of a lane's cells of a line
    static constexpr int COLUMN_VECTORS = BESIDE_X ? COLUMNS / VALUES : 0; // of a warp and a field
    static constexpr int ROW_VECTORS = COLUMN_VECTORS > 0 ? 2 * MARGIN_X / VALUES : 1; // of those, a line's
    static constexpr int COLUMN_TURNS = (COLUMN_VECTORS + 31) / 32;

    // A tile as seen from this one, and a line by that tile's indices.
    struct Sender { int tile, line; };

    // Returns the tile at side `x` along X that sends line (s, y), which may lie beyond this tile.
    __device__ __forceinline__ Sender sender(int s, int y, int x) const
    {
        const int side_s = along_s.side(s), side_y = along_y.side(y);
        const int at_s = int(wrapped(WRAPS_S, tile_s + side_s, TILES_S)), at_y = int(wrapped(WRAPS_Y, tile_y + side_y, TILES_Y));
        // Where that tile begins, from this one.
        const int from_s = side_s < 0 ? along_s.before - TILE_S + MARGIN_S : side_s > 0 ? along_s.behind + RING_S : 0;
        const int from_y = side_y < 0 ? along_y.before - TILE_Y + MARGIN_Y : side_y > 0 ? along_y.behind + RING_Y : 0;
        return {(at_s * TILES_Y + at_y) * TILES_X + int(wrapped(WRAPS_X, tile_x + x, TILES_X)), (s - from_s) * TILE_Y + y - from_y};
    }

    // Returns the first word of a tile's exchange buffer, of the G-th field that changes.
    __device__ __forceinline__ static int buffer_begin(int tile, int g, unsigned tag) { return ((tile * 2 + int(tag & 1)) * CHANGING + g) * BUFFER_WORDS; }

    // Returns where in an exchange buffer the lane's vector number `p` of a line is, and where column `column` of those that tiles
    // beside read.
    __device__ __forceinline__ int in_line(int line, int p) const { return line * LINE_WORDS + (p * 32 + lane) * TAGGED_WORDS; }
    __device__ __forceinline__ static int in_columns(int line, int column) { return TILE_S * TILE_Y * LINE_WORDS + line * COLUMN_WORDS + column * PARTS; }

    // Loads vectors until all are those of exchange `tag`: the one at `at(i)` for each i below N, none where that is
    // negative. Then hands their values to `take(i, cells)`.
    template <int N, class At, class Take>
    __device__ __forceinline__ void receive(unsigned tag, const At& at, const Take& take) const
    {
        each<(N + AT_ONCE - 1) / AT_ONCE>([&](auto group) {
            constexpr int FIRST = group.value * AT_ONCE, COUNT = N - FIRST < AT_ONCE ? N - FIRST : AT_ONCE;
            int from[COUNT];
            TaggedVector vectors[COUNT];
            each<COUNT>([&](auto i) {
                from[i.value] = at(Index<FIRST + i.value>{});
                each<TAGGED_WORDS>([&](auto w) { vectors[i.value].word[w.value] = Tagged(tag) << 32; });
            });
            bool all;
            do {
                all = true;
                each<COUNT>([&](auto i) { if (from[i.value] >= 0) vectors[i.value].load(exchange_buffer.words + from[i.value]); });
                each<COUNT>([&](auto i) { all = all && vectors[i.value].has(tag); });
            } while (!all);
            each<COUNT>([&](auto i) {
                real cells[VALUES];
                vectors[i.value].open(cells);
                if (from[i.value] >= 0) take(Index<FIRST + i.value>{}, cells);
            });
        });
    }

    // Sends own lines that tiles before or behind read.
    template <int F>
    __device__ __forceinline__ void send_lines(const Planes& kept, unsigned tag) const
    {
        Tagged* const own = exchange_buffer.words + buffer_begin(blockIdx.x, changing<F>(), tag);
        each_own([&](auto s, auto y) {
            const int line_s = first_s + s.value, line_y = first_y + y.value;
            if (whole_read(line_s, line_y) && along_s.keeps(line_s) && along_y.keeps(line_y)) {
                Line cells;
                load_own<F, s.value, y.value>(kept, cells);
                each<PARCELS>([&](auto p) {
                    const int x = lane * OWN_X + p.value * VALUES;
                    if (is_there(x) && along_x.keeps(x)) TaggedVector::of(&cells[p.value * VALUES], tag).store(own + in_line(line_s * TILE_Y + line_y, p.value));
                });
            }
        });
    }

    // Finds the line and the first column of the lane's vector number `turn` among columns; returns whether there is a
    // tile at that side.
    __device__ __forceinline__ bool column_vector(int turn, int& s, int& y, int& column) const
    {
        const int vector = turn * 32 + lane, line = vector / ROW_VECTORS;
        s = first_s + line / OWN_Y;
        y = first_y + line % OWN_Y;
        column = vector % ROW_VECTORS * VALUES;
        return vector < COLUMN_VECTORS && (column < MARGIN_X ? along_x.has_before : along_x.has_behind);
    }

    // Sends the columns of all fields, which lie in shared memory.
    __device__ __forceinline__ void send_columns(unsigned tag) const
    {
        each<CHANGING * COLUMN_TURNS>([&](auto i) {
            constexpr int G = i.value / COLUMN_TURNS, TURN = i.value % COLUMN_TURNS;
            int s, y, column;
            if (column_vector(TURN, s, y, column) && along_s.keeps(s) && along_y.keeps(y)) {
                const TaggedVector vector = TaggedVector::of(columns + G * COLUMNS + (TURN * 32 + lane) * VALUES, tag);
                vector.store(exchange_buffer.words + buffer_begin(blockIdx.x, G, tag) + in_columns(s * TILE_Y + y, column));
            }
        });
    }

    // Receives columns into shared memory, and lines beyond the tile into `lines`.
    __device__ __forceinline__ void receive_beside(unsigned tag) const
    {
        constexpr int BEYOND = TURNS_BEYOND * PARCELS, N = COLUMN_TURNS + BEYOND;
        receive<CHANGING * N>(
            tag,
            [&](auto i) {
                constexpr int G = i.value / N, I = i.value % N;
                int s, y, column;
                if constexpr (I < COLUMN_TURNS) {
                    if (!column_vector(I, s, y, column)) return -1;
                    // What is first here is last there.
                    const bool low = column < MARGIN_X;
                    const Sender from = sender(s, y, low ? -1 : 1);
                    return buffer_begin(from.tile, G, tag) + in_columns(from.line, low ? column + MARGIN_X : column - MARGIN_X);
                } else {
                    constexpr int TURN = (I - COLUMN_TURNS) / PARCELS, P = (I - COLUMN_TURNS) % PARCELS;
                    real value;
                    if (!line_beyond(TURN, s, y) || beyond(s, y, value) != CHANGES) return -1;
                    const int x = lane * OWN_X + P * VALUES, side = along_x.side(x);
                    if (!is_there(x)) return -1;
                    const Sender from = sender(s, y, side);
                    return buffer_begin(from.tile, G, tag) + (side == 0 ? in_line(from.line, P) : in_columns(from.line, side < 0 ? x + MARGIN_X : x - TILE_X + MARGIN_X));
                }
            },
            [&](auto i, const real* cells) {
                constexpr int G = i.value / N, I = i.value % N, F = changing_field<G>();
                if constexpr (I < COLUMN_TURNS) memcpy(columns + G * COLUMNS + (I * 32 + lane) * VALUES, cells, VALUES * sizeof(real));
                else {
                    constexpr int TURN = (I - COLUMN_TURNS) / PARCELS, C = (I - COLUMN_TURNS) % PARCELS * VALUES;
                    int s, y;
                    line_beyond(TURN, s, y);
                    real* const line = lines + field_lines<F>() + half[F] + place_beyond(s, y) * TILE_X;
                    memcpy(line + C / VECTOR * 32 * VECTOR + C % VECTOR, cells, VALUES * sizeof(real));
                }
            });
    }

    // Receives own lines that other tiles keep, but for their columns.
    __device__ __forceinline__ void receive_lines(Planes& kept, unsigned tag) const
    {
        constexpr int N = PLANES * OWN_Y * PARCELS;
        receive<CHANGING * N>(
            tag,
            [&](auto i) {
                constexpr int G = i.value / N, LINE = i.value % N / PARCELS, P = i.value % PARCELS;
                const int s = first_s + LINE / OWN_Y, y = first_y + LINE % OWN_Y, x = lane * OWN_X + P * VALUES;
                if ((along_s.keeps(s) && along_y.keeps(y)) || !is_there(x) || !along_x.keeps(x)) return -1;
                const Sender from = sender(s, y, 0);
                return buffer_begin(from.tile, G, tag) + in_line(from.line, P);
            },
            [&](auto i, const real* cells) {
                constexpr int G = i.value / N, LINE = i.value % N / PARCELS, P = i.value % PARCELS;
                replace_own<changing_field<G>(), LINE / OWN_Y, LINE % OWN_Y, P * VALUES>(kept, cells);
            });
    }

    // Replaces the lane's cells of an own line from column C on.
    template <int F, int S, int Y, int C>
    __device__ __forceinline__ void replace_own(Planes& kept, const real* cells) const
    {
        if constexpr (S < PLANES_REGISTERS) each<VALUES>([&](auto l) { kept[F][S][Y][C + l.value] = cells[l.value]; });
        else memcpy(rest_line<F, S, Y>() + C / VECTOR * VECTOR * THREADS + C % VECTOR, cells, VALUES * sizeof(real));
    }

    __device__ __forceinline__ void exchange(Planes& kept, unsigned pass)
    {
        look_up();
        // Else the compiler keeps over all steps what follows from these.
        warp = opaque(warp);
        first_s = opaque(first_s);
        first_y = opaque(first_y);
        const unsigned tag = exchange_buffer.before + pass;
        // Whether none of this warp's lines is read whole, or comes whole, from elsewhere.
        const bool inner = all_lines([&](int s, int y) { return !whole_read(s, y) && along_s.keeps(s) && along_y.keeps(y); });
        each<FIELDS>([&](auto f) {
            constexpr int F = f.value;
            if constexpr (written<F>()) {
                if (!inner) send_lines<F>(kept, tag);
                if constexpr (BESIDE_X) collect_columns<F>(kept, columns + changing<F>() * COLUMNS);
            }
        });
        if constexpr (BESIDE_X) {
            __syncwarp();                // all lanes have written their columns
            // A lane's received columns go where those lie that it has sent.
            send_columns(tag);
        }
        receive_beside(tag);
        if constexpr (MARGIN_S > 0 || MARGIN_Y > 0) if (!inner) receive_lines(kept, tag);
        if constexpr (BESIDE_X) {
            __syncwarp();                // all lanes' columns have arrived
            each<FIELDS>([&](auto f) {
                constexpr int F = f.value;
                if constexpr (written<F>()) take_columns<F>(kept, columns + changing<F>() * COLUMNS);
            });
        }
        publish_all(kept, [](int f) { return changes(f); });
        barrier();
    }
};

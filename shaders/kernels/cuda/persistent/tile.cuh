// A block's tile of the domain: where it lies, which warp owns which of its lines, and the ways of lines into
// it and out of it.
//
// A line is a row along X, as wide as a warp: 32 × OWN_X cells. A tile is TILE_S × TILE_Y lines. Of a line or a
// square, warps stand one behind another along S, PLANES lines each; of a cube, along Y, OWN_Y lines of each
// of the tile's planes. Where a tile's lines are no multiple of a warp's, warps overlap, and compute a line twice.

constexpr int THREADS = 32 * WARPS;
constexpr int TILE_X = 32 * OWN_X;
constexpr int LANES = 16 / sizeof(real);                 // cells of a 16-byte access
// Cells of an access to shared memory, and to device memory.
constexpr int VECTOR = OWN_X % LANES == 0 ? LANES : OWN_X % 2 == 0 ? 2 : 1;
constexpr bool WRAPS_S = LOW_S == PERIODIC, WRAPS_Y = LOW_Y == PERIODIC, WRAPS_X = LOW_X == PERIODIC;
constexpr int WORD = PITCH % VECTOR == 0 && !(WRAPS_X && EXTENT_X % VECTOR != 0) ? VECTOR : 1;
// A line in device memory, with the last word's cells behind it.
constexpr Offset END_X = (EXTENT_X + WORD - 1) / WORD * WORD;

// Held cells along S and Y lie outside of all tiles: they are lines beyond the first and last tile that never
// change.
constexpr int CUT_S = LOW_S == FIXED ? FIX_S : 0, CUT_Y = LOW_Y == FIXED ? FIX_Y : 0;
constexpr Offset COMPUTED_S = EXTENT_S - CUT_S - (HIGH_S == FIXED ? FIX_S : 0);
constexpr Offset COMPUTED_Y = EXTENT_Y - CUT_Y - (HIGH_Y == FIXED ? FIX_Y : 0);
// Whether one tile holds a periodic axis as a whole, so that its last line or lane lies beside its first.
constexpr bool WHOLE_S = WRAPS_S && TILES_S == 1, WHOLE_Y = WRAPS_Y && TILES_Y == 1;
constexpr bool WHOLE_X = WRAPS_X && TILES_X == 1 && TILE_X == EXTENT_X;
// Whether columns come from other tiles, or from the far end of this one.
constexpr bool BESIDE_X = TILES_X > 1 || (WRAPS_X && !WHOLE_X);
constexpr bool EXCHANGES = TILES_S > 1 || TILES_Y > 1 || BESIDE_X;
constexpr int BLOCKS = TILES_S * TILES_Y * TILES_X;
// Whether bodies for tiles at a side along X and for others differ.
constexpr bool SIDED_X = FIX_X > 0 && !WRAPS_X;

struct ExchangeBuffer;                             // what tiles exchange: counted.cuh, tagged.cuh

struct alignas(VECTOR * sizeof(real)) Word { real lane[VECTOR]; };

// The type of an access of so many bytes.
template <int BYTES> struct Access;
template <> struct Access<4> { typedef float type; };
template <> struct Access<8> { typedef double type; };
template <> struct Access<16> { typedef DeviceVector type; };
typedef Access<WORD * sizeof(real)>::type DeviceWord;

// Loads and stores of device memory go past the first-level cache, which does not see other blocks' stores.
__device__ __forceinline__ void load_word(real* cells, const real* from)
{
    const DeviceWord word = __ldcg(reinterpret_cast<const DeviceWord*>(from));
    memcpy(cells, &word, sizeof word);
}

__device__ __forceinline__ void store_word(real* to, const real* cells)
{
    DeviceWord word;
    memcpy(&word, cells, sizeof word);
    __stcg(reinterpret_cast<DeviceWord*>(to), word);
}

// Returns where tile `i` of an axis begins, or a neighbour of the first or last beyond a periodic side.
template <bool WRAPS, int TILES>
__device__ __forceinline__ Offset begin(int i, Offset extent, int cut, Offset computed, int tile, int margin, int word)
{
    if constexpr (WRAPS) {
        const int round = i < 0 ? -1 : i >= TILES ? 1 : 0;
        const Offset first = Offset((long long)(i - round * TILES) * extent / TILES);
        return first / word * word - margin + round * extent;
    } else if constexpr (TILES == 1) return cut;
    else return cut + Offset((long long)(i) * (computed - tile) / (TILES - 1)) / word * word;
}
__device__ __forceinline__ Offset begin_s(int i) { return WHOLE_S ? 0 : begin<WRAPS_S, TILES_S>(i, EXTENT_S, CUT_S, COMPUTED_S, TILE_S, MARGIN_S, 1); }
__device__ __forceinline__ Offset begin_y(int i) { return WHOLE_Y ? 0 : begin<WRAPS_Y, TILES_Y>(i, EXTENT_Y, CUT_Y, COMPUTED_Y, TILE_Y, MARGIN_Y, 1); }
__device__ __forceinline__ Offset begin_x(int i) { return WHOLE_X ? 0 : begin<WRAPS_X, TILES_X>(i, WRAPS_X ? EXTENT_X : END_X, 0, END_X, TILE_X, MARGIN_X, WORD); }

__device__ __forceinline__ Offset wrapped(bool wraps, Offset i, Offset extent) { return !wraps ? i : i < 0 ? i + extent : i >= extent ? i - extent : i; }

// What a tile shares with its neighbours along an axis, by indices of its own.
struct Shared {
    // The cells that are right at the end of a pass, and are therefore kept.
    int low, high;
    // The first of the cells that the tile before reads, and of those that the tile behind reads.
    int before, behind;
    bool has_before, has_behind;

    __device__ __forceinline__ bool keeps(int i) const { return i >= low && i < high; }
    // Returns which tile keeps cell `i` and sends it here: the one before, this one, or the one behind.
    __device__ __forceinline__ int side(int i) const { return i < low ? -1 : i < high ? 0 : 1; }
    // Returns whether one of the neighbours reads cell `i`, where each reads `length` cells.
    __device__ __forceinline__ bool read(int i, int length) const
    {
        return (has_before && i >= before && i < before + length) || (has_behind && i >= behind && i < behind + length);
    }
};

template <int TILES, bool WRAPS, bool WHOLE, int TILE, int MARGIN>
__device__ __forceinline__ Shared shared_along(int at, int before, int behind)
{
    Shared s;
    s.has_before = !WHOLE && (WRAPS || at > 0);
    s.has_behind = !WHOLE && (WRAPS || at < TILES - 1);
    s.low = s.has_before ? MARGIN : 0;
    s.high = TILE - (s.has_behind ? MARGIN : 0);
    s.before = before;
    s.behind = behind;
    return s;
}

// A tile's place, in shared memory: its first cell, what neighbours read (`Shared`), its number along each axis.
struct Place {
    Offset first[3];
    int before[3], behind[3], tile[3];
};
constexpr int PLACE_BYTES = 64;
static_assert(sizeof(Place) <= PLACE_BYTES);

typedef real Line[OWN_X];                                // a lane's cells of a line

// How many more lines than taps reach a side shows beyond it: one, where the outermost is the mirror.
__device__ constexpr int more(int kind) { return shows_this_side(kind) && below(kind, -1, 0) > 0 ? 1 : 0; }
constexpr int MORE_S = RING_S > 0 && (more(LOW_S) || more(HIGH_S)), MORE_Y = RING_Y > 0 && (more(LOW_Y) || more(HIGH_Y));
// `lines` along S: those before the tile, PUBLISHED of each warp, or all of the tile's planes, those behind.
constexpr int REACH_OUT = RING_S + (STACKED && (TILE_S != WARPS * PLANES || MORE_S) ? 1 : 0);
constexpr int PUBLISHED = PLANES < 2 * REACH_OUT ? PLANES : 2 * REACH_OUT;
constexpr int LINES_S = 2 * RING_S + (STACKED ? WARPS * PUBLISHED : PLANES), LINES_Y = TILE_Y + 2 * RING_Y;
constexpr bool HAS_LINES = RING_S > 0 || RING_Y > 0;
constexpr int HALF = HAS_LINES ? LINES_S * LINES_Y * TILE_X : 0; // cells of a field's copy
constexpr int PLANES_SHARED = PLANES - PLANES_REGISTERS;
constexpr int COLUMNS = PLANES * OWN_Y * 2 * MARGIN_X;   // of a warp and a field, on their way to or from other tiles
// Whether lines of this side of the domain are read as lines beyond it.
constexpr bool SHOWN_LOW_S = shows_this_side(LOW_S), SHOWN_HIGH_S = shows_this_side(HIGH_S);
constexpr bool SHOWN_LOW_Y = shows_this_side(LOW_Y), SHOWN_HIGH_Y = shows_this_side(HIGH_Y);

// Copies in `lines`: a field that no stage writes needs one.
template <int F> __device__ constexpr int halves() { return written<F>() ? HALVES : 1; }
// Returns where a field's copies begin in `lines`.
template <int F>
__device__ constexpr int field_lines()
{
    if constexpr (F == 0) return 0;
    else return field_lines<F - 1>() + halves<F - 1>() * HALF;
}

// Returns how many of the first F fields change.
template <int F>
__device__ constexpr int changing()
{
    if constexpr (F == 0) return 0;
    else return changing<F - 1>() + (written<F - 1>() ? 1 : 0);
}

// The fields whose columns are on their way at the same time.
constexpr int FIELDS_AT_ONCE = TAGGED ? changing<FIELDS>() : 1;

// Calls f(s, y) with the constant indices of each of a warp's lines.
template <class F>
__device__ __forceinline__ void each_own(const F& f)
{
    each<PLANES * OWN_Y>([&](auto i) { f(Index<i.value / OWN_Y>{}, Index<i.value % OWN_Y>{}); });
}

typedef real Planes[FIELDS][PLANES_REGISTERS > 0 ? PLANES_REGISTERS : 1][OWN_Y][OWN_X];

// What varies in a step, if it is so little that registers have room for it.
constexpr int AT_HAND = STAGE_COUNT * VARYING <= 4 ? STAGE_COUNT * VARYING : 0;

struct Tile {
    const Buffers& buffers;              // the domain before the launch and after it
    const ExchangeBuffer& exchange_buffer;                    // what tiles exchange
    const Parameters& parameters;
    const real* varying;                 // what varies, from the step's first stage
    unsigned* counters;                  // per block: warps that have loaded their lines, or have sent
    Place* place;
    real* lines;                         // from this lane's cells of the first line
    real* rest;                          // planes in shared memory: [FIELDS][PLANES_SHARED][OWN_Y][OWN_X / VECTOR][THREADS] words
    real* columns;                       // [FIELDS_AT_ONCE][COLUMNS] per warp
    int half[FIELDS];                    // where the half of `lines` lies that is read
    int lane, warp, tile_s, tile_y, tile_x;
    Offset s0, y0, x0;                   // the tile's first cell
    int first_s, first_y;                // the warp's first line in the tile
    int skip_low, skip_high;             // where warps overlap along S: lines that the warp before and behind have too
    unsigned held;                       // own columns that keep their value, a bit each
    Shared along_s, along_y, along_x;
    real now[AT_HAND > 0 ? AT_HAND : 1]; // what varies in the step

    // A line of shared memory, which each lane writes and reads its own cells of.
    __device__ __forceinline__ static void load_line(const real* from, Line& cells)
    {
        each<OWN_X / VECTOR>([&](auto v) {
            const Word word = *reinterpret_cast<const Word*>(from + v.value * 32 * VECTOR);
            each<VECTOR>([&](auto l) { cells[v.value * VECTOR + l.value] = word.lane[l.value]; });
        });
    }

    __device__ __forceinline__ static void store_line(real* to, const Line& cells)
    {
        each<OWN_X / VECTOR>([&](auto v) {
            Word word;
            each<VECTOR>([&](auto l) { word.lane[l.value] = cells[v.value * VECTOR + l.value]; });
            *reinterpret_cast<Word*>(to + v.value * 32 * VECTOR) = word;
        });
    }

    __device__ __forceinline__ bool low_s() const { return tile_s == 0 && (!STACKED || warp == 0); }
    __device__ __forceinline__ bool high_s() const { return tile_s == TILES_S - 1 && (!STACKED || warp == WARPS - 1); }
    // Whether row `Y` from the warp's first lies beyond the domain: of any warp, where warps own less than taps reach or
    // overlap.
    template <int Y>
    __device__ __forceinline__ bool below_y() const { return Y < 0 && tile_y == 0 && first_y + Y < 0; }
    template <int Y>
    __device__ __forceinline__ bool above_y() const { return Y >= OWN_Y && tile_y == TILES_Y - 1 && first_y + Y >= TILE_Y; }

    // Works out the tile's place, once per launch.
    __device__ __forceinline__ void locate() const
    {
        const int block = BATCHED ? 0 : blockIdx.x;
        Place at;
        at.tile[0] = block / (TILES_Y * TILES_X);
        at.tile[1] = block / TILES_X % TILES_Y;
        at.tile[2] = block % TILES_X;
        at.first[0] = begin_s(at.tile[0]);
        at.first[1] = begin_y(at.tile[1]);
        at.first[2] = begin_x(at.tile[2]);
        at.before[0] = int(begin_s(at.tile[0] - 1) - at.first[0]) + TILE_S - MARGIN_S;
        at.before[1] = int(begin_y(at.tile[1] - 1) - at.first[1]) + TILE_Y - MARGIN_Y;
        at.before[2] = int(begin_x(at.tile[2] - 1) - at.first[2]) + TILE_X - MARGIN_X;
        at.behind[0] = int(begin_s(at.tile[0] + 1) - at.first[0]) - RING_S;
        at.behind[1] = int(begin_y(at.tile[1] + 1) - at.first[1]) - RING_Y;
        at.behind[2] = int(begin_x(at.tile[2] + 1) - at.first[2]);
        if (threadIdx.x == 0) *place = at;
        barrier();
    }

    // Looks the tile's place up. Between exchanges little of it is needed, so each exchange looks it up again, and
    // the compiler must not keep it in registers until then.
    __device__ __forceinline__ void look_up()
    {
        lane = opaque(int(threadIdx.x)) % 32;
        tile_s = TILES_S == 1 ? 0 : place->tile[0];
        tile_y = TILES_Y == 1 ? 0 : place->tile[1];
        tile_x = TILES_X == 1 ? 0 : place->tile[2];
        s0 = place->first[0];
        y0 = place->first[1];
        x0 = place->first[2];
        along_s = shared_along<TILES_S, WRAPS_S, WHOLE_S, TILE_S, MARGIN_S>(tile_s, place->before[0], place->behind[0]);
        along_y = shared_along<TILES_Y, WRAPS_Y, WHOLE_Y, TILE_Y, MARGIN_Y>(tile_y, place->before[1], place->behind[1]);
        along_x = shared_along<TILES_X, WRAPS_X, WHOLE_X, TILE_X, MARGIN_X>(tile_x, place->before[2], place->behind[2]);
    }

    // Finds the warp's place in the tile, once per launch.
    __device__ __forceinline__ void enter()
    {
        // The lines may be no multiple of a warp's: warps then overlap.
        auto first = [](int w, int tile, int own) { return WARPS == 1 ? 0 : w * (tile - own) / (WARPS > 1 ? WARPS - 1 : 1); };
        first_s = STACKED ? first(warp, TILE_S, PLANES) : 0;
        first_y = STACKED ? 0 : first(warp, TILE_Y, OWN_Y);
        skip_low = STACKED && warp > 0 ? first(warp - 1, TILE_S, PLANES) + PLANES - first_s : 0;
        skip_high = STACKED && warp < WARPS - 1 ? first_s + PLANES - first(warp + 1, TILE_S, PLANES) : 0;
        held = 0;
        each<OWN_X>([&](auto c) {
            const Offset x = x0 + lane * OWN_X + c.value;
            held |= unsigned(x >= 0 && x < EXTENT_X && held_x(x)) << c.value;
        });
    }

    // Places along S of lines in `lines`: own line `s`, and the line `k` before or behind the warp's lines.
    __device__ __forceinline__ int own_place(int s) const
    {
        if (!STACKED) return RING_S + s;
        return RING_S + warp * PUBLISHED + (s < REACH_OUT ? s : PUBLISHED - (PLANES - s));
    }
    template <int K>                     // 1, 2, …
    __device__ __forceinline__ int place_before() const
    {
        const int first = STACKED ? RING_S + warp * PUBLISHED : RING_S;
        if constexpr (WHOLE_S) { if (low_s()) return LINES_S - RING_S - K; }
        if constexpr (SHOWN_LOW_S) { if (low_s()) return RING_S + int(below(LOW_S, -K, EXTENT_S)); }
        return first - skip_low - K;
    }
    template <int K>                     // 0, 1, …
    __device__ __forceinline__ int place_behind() const
    {
        const int end = STACKED ? RING_S + (warp + 1) * PUBLISHED : RING_S + PLANES;
        if constexpr (WHOLE_S) { if (high_s()) return RING_S + K; }
        if constexpr (SHOWN_HIGH_S) { if (high_s()) return LINES_S - RING_S - int(EXTENT_S - above(HIGH_S, EXTENT_S + K, EXTENT_S)); }
        return end + skip_high + K;
    }
    // … and along Y, of row `Y` from the warp's first.
    template <int Y>
    __device__ __forceinline__ int place_y() const
    {
        const int row = first_y + Y;
        if constexpr (Y < 0) {
            if constexpr (WHOLE_Y) { if (below_y<Y>()) return RING_Y + TILE_Y + row; }
            if constexpr (SHOWN_LOW_Y) { if (below_y<Y>()) return RING_Y + int(below(LOW_Y, row, EXTENT_Y)); }
        } else if constexpr (Y >= OWN_Y) {
            if constexpr (WHOLE_Y) { if (above_y<Y>()) return RING_Y + row - TILE_Y; }
            if constexpr (SHOWN_HIGH_Y) { if (above_y<Y>()) return RING_Y + TILE_Y - int(EXTENT_Y - above(HIGH_Y, EXTENT_Y + row - TILE_Y, EXTENT_Y)); }
        }
        return RING_Y + row;
    }
    template <int F>
    __device__ __forceinline__ real* line(int place_s, int place_y, int half) const
    {
        return lines + field_lines<F>() + half + (place_s * LINES_Y + place_y) * TILE_X;
    }

    // The planes that stay in shared memory; only their owner touches them.
    template <int F, int S, int Y>
    __device__ __forceinline__ real* rest_line() const { return rest + ((F * PLANES_SHARED + S - PLANES_REGISTERS) * OWN_Y + Y) * OWN_X * THREADS; }

    template <int F, int S, int Y>
    __device__ __forceinline__ void load_own(const Planes& kept, Line& cells) const
    {
        if constexpr (S < PLANES_REGISTERS) each<OWN_X>([&](auto c) { cells[c.value] = kept[F][S][Y][c.value]; });
        else each<OWN_X / VECTOR>([&](auto v) {
            const Word word = *reinterpret_cast<const Word*>(rest_line<F, S, Y>() + v.value * VECTOR * THREADS);
            each<VECTOR>([&](auto l) { cells[v.value * VECTOR + l.value] = word.lane[l.value]; });
        });
    }

    template <int F, int S, int Y>
    __device__ __forceinline__ void store_own(Planes& kept, const Line& cells) const
    {
        if constexpr (S < PLANES_REGISTERS) each<OWN_X>([&](auto c) { kept[F][S][Y][c.value] = cells[c.value]; });
        else each<OWN_X / VECTOR>([&](auto v) {
            Word word;
            each<VECTOR>([&](auto l) { word.lane[l.value] = cells[v.value * VECTOR + l.value]; });
            *reinterpret_cast<Word*>(rest_line<F, S, Y>() + v.value * VECTOR * THREADS) = word;
        });
    }

    // Copies own line (S, Y) to `lines`, if others read it.
    template <int F, int S, int Y>
    __device__ __forceinline__ void publish(const Line& cells, int half) const
    {
        constexpr bool all = TILE_Y != WARPS * OWN_Y || (!STACKED && (WHOLE_S || SHOWN_LOW_S || SHOWN_HIGH_S) && (S < RING_S + MORE_S || S >= PLANES - RING_S - MORE_S));
        constexpr bool read = STACKED ? S < REACH_OUT || S >= PLANES - REACH_OUT : all || Y < RING_Y + MORE_Y || Y >= OWN_Y - RING_Y - MORE_Y;
        if constexpr (HAS_LINES && read) store_line(line<F>(own_place(S), RING_Y + first_y + Y, half), cells);
    }

    // Copies all own lines of fields to `lines`.
    template <class Meant>
    __device__ __forceinline__ void publish_all(const Planes& kept, const Meant& meant) const
    {
        each<FIELDS>([&](auto f) {
            constexpr int F = f.value;
            if (meant(F)) each_own([&](auto s, auto y) {
                Line cells;
                load_own<F, s.value, y.value>(kept, cells);
                publish<F, s.value, y.value>(cells, half[F]);
            });
        });
    }

    __device__ __forceinline__ static void barrier()
    {
        if constexpr (WARPS > 1) __syncthreads();
        else __syncwarp();
    }
};

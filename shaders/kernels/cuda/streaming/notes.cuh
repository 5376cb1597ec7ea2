// The values that a window notes after each step of a pass: which planes have some, and how they are written.

// Returns the planes by which the plane that arrives at a level is behind the one that arrives at the first.
template <int LEVEL>
__device__ constexpr int lag()
{
    if constexpr (LEVEL == 0) return 0;
    else return lag<LEVEL - 1>() + StageAt<(LEVEL - 1) % STAGES>::type::DELAY + LAG;
}
constexpr int BEHIND = lag<LEVELS>() - LAG;              // ... and the same for what leaves the last

// What a window notes in a pass, of the planes before `last`: the next plane with such cells, from those on that levels have
// still to make, and which of the 64 from it on have some. It notes own cells in these rows and columns.
template <bool> struct Noting {};
template <> struct Noting<true> {
    Offset last, next;
    unsigned long long planes;
    int tile_y, tile_x;
    unsigned pass;

    __device__ __forceinline__ Offset low_y() const { return tile_y == 0 ? 0 : Offset(tile_y) * USE_Y - SHIFT_Y + MARGIN_Y; }
    __device__ __forceinline__ Offset high_y() const { return tile_y == TILES_Y - 1 ? EXTENT_Y : Offset(tile_y + 1) * USE_Y - SHIFT_Y + MARGIN_Y; }
    __device__ __forceinline__ Offset low_x() const { return tile_x == 0 ? 0 : Offset(tile_x) * USE_X - SHIFT_X + MARGIN_X; }
    __device__ __forceinline__ Offset high_x() const { return tile_x == TILES_X - 1 ? EXTENT_X : Offset(tile_x + 1) * USE_X - SHIFT_X + MARGIN_X; }
};

struct Notes : Window {
    const Parameters& parameters;
    Noting<NOTES> noting;

    // Whether the planes that levels make are so close that 64 bits tell which of them have noted cells.
    static constexpr bool CLOSE = BEHIND < 32;

    // Finds what the window notes of planes first … last - 1; `pass` is the launch's.
    template <class Note>
    __device__ __forceinline__ void find_noted(Note& noting, int tile_y, int tile_x, Offset first, Offset last, unsigned pass) const
    {
        noting = {last, last, 0, tile_y, tile_x, pass};
        noting = next_from(noting, noted_of(parameters), lane, first);
    }

    // Returns a window's `noting` with the next plane from `from` on with cells that it notes, and those behind it. By values alone:
    // a window whose address a call is given lies in local memory as a whole.
    template <class Note>
    __device__ static Note next_from(Note noting, const Noted& noted, int lane, Offset from)
    {
        // The window's planes from `from` on, of which those behind 64 need not be known: lanes go through the places together.
        const int end = __ldg(noted.firsts + noting.last);
        const Offset low_y = noting.low_y(), high_y = noting.high_y(), low_x = noting.low_x(), high_x = noting.high_x();
        Offset next = noting.last;
        unsigned long long planes = 0;
        #pragma unroll 1
        for (int i = __ldg(noted.firsts + from); i < end; i += 32) {
            Offset s = noting.last;
            if (i + lane < end) {
                const int* const at = noted.places + 3 * (i + lane);
                const Offset y = __ldg(at + 1), x = __ldg(at + 2);
                if (y >= low_y && y < high_y && x >= low_x && x < high_x) s = __ldg(at);
            }
            Offset least = s;
            each<5>([&](auto k) {
                const Offset other = __shfl_xor_sync(~0u, least, 16 >> k.value);
                if (other < least) least = other;
            });
            if (next == noting.last) next = least;
            if (next == noting.last) continue;
            unsigned long long own = s < noting.last && s - next < 64 ? 1ull << (s - next) : 0;
            each<5>([&](auto k) { own |= __shfl_xor_sync(~0u, own, 16 >> k.value); });
            planes |= own;
            if (!CLOSE || uniform(__ldg(noted.places + 3 * i)) - next >= 64) break;
        }
        noting.next = next;
        noting.planes = planes;
        return noting;
    }

    // Returns the plane before which planes arrive that all have their notes made by one body: of plane `p` and some behind it,
    // `notes` tells whether any does.
    template <class Note>
    __device__ __forceinline__ Offset next_noted(Note& noting, Offset p, bool& notes) const
    {
        const Offset oldest = p - BEHIND;    // of the planes that levels have still to make
        if (noting.next < noting.last && noting.next < oldest) noting = next_from(noting, noted_of(parameters), lane, oldest);
        notes = noting.next <= p && noting.next < noting.last;
        if (!notes) return noting.next < noting.last ? noting.next : noting.last + BEHIND;
        const int behind = CLOSE ? 63 - __clzll((long long)(noting.planes)) : 0;
        return noting.next + (CLOSE && behind + BEHIND >= 64 ? 64 : behind + BEHIND + 1);
    }

    // Notes values of own cells of plane `q` after a step of the pass.
    template <class Note>
    __device__ __forceinline__ void note(const Note& noting, const Cells (&cells)[FIELDS], Offset q, int step) const
    {
        const Offset apart = q - noting.next;
        if (apart < 0 || q >= noting.last || (CLOSE && (apart >= 64 || !(noting.planes >> apart & 1)))) return;
        const Noted& noted = noted_of(parameters);
        real* const values = noted.values + (noting.pass * (LEVELS / STAGES) + step) * noted.count;
        each<FIELDS>([&](auto f) {
            each<OWN_Y>([&](auto r) {
                const Offset line_y = y(r.value);
                const int line = line_y >= noting.low_y() && line_y < noting.high_y() ? noted_line(noted, f.value, q, line_y) : -1;
                if (line < 0) return;
                // By way of shared memory, so that a loop goes over the cells: bodies have few registers left.
                __syncwarp();
                store_row(row, cells[f.value][r.value], lane);
                __syncwarp();
                #pragma unroll 1
                for (int i = lane; i < TILE_X; i += 32) {
                    const Offset column = x0 + i;
                    if (column >= noting.low_x() && column < noting.high_x()) note_cell(noted, values, line, column, row[place(i)]);
                }
                __syncwarp();
            });
        });
    }
};

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
// still to make, and which of the 64 from it on have some; and those cells, which begin with that plane's.
template <bool> struct Noting {};
template <> struct Noting<true> {
    Offset last, next;
    unsigned long long planes;
    int cell, end;
    unsigned pass;
};

struct Notes : Window {
    const Parameters& parameters;
    Noting<NOTES> noting;

    // Whether the planes that levels make are so close that 64 bits tell which of them have noted cells.
    static constexpr bool CLOSE = BEHIND < 32;

    // Finds what the window notes of planes first … last - 1; `pass` is the launch's.
    template <class Note>
    __device__ __forceinline__ void find_noted(Note& noting, int window, Offset first, Offset last, unsigned pass) const
    {
        const Noted& noted = noted_of(parameters);
        noting = {last, last, 0, uniform(__ldg(noted.firsts + window)), uniform(__ldg(noted.firsts + window + 1)), pass};
        noting = next_from(noting, noted, lane, first);
    }

    // Returns a window's `noting` with the next plane from `from` on with cells that it notes, and those behind it. By values alone:
    // a window whose address a call is given lies in local memory as a whole.
    template <class Note>
    __device__ static Note next_from(Note noting, const Noted& noted, int lane, Offset from)
    {
        // The lanes' cells; none behind the last.
        auto plane = [&](int i) { return i + lane < noting.end ? Offset(__ldg(noted.cells + 4 * (i + lane))) : noting.last; };
        int before = 32;
        while (before == 32 && noting.cell < noting.end) {
            const Offset s = plane(noting.cell);
            before = __popc(__ballot_sync(~0u, noting.cell + lane < noting.end && s < from));
            noting.cell += before;
        }
        noting.next = noting.cell < noting.end ? uniform(Offset(__ldg(noted.cells + 4 * noting.cell))) : noting.last;
        if (noting.next > noting.last) noting.next = noting.last;
        noting.planes = 0;
        bool more = CLOSE;
        #pragma unroll 1
        for (int i = noting.cell; more && i < noting.end; i += 32) {
            const Offset s = plane(i), apart = s - noting.next;
            unsigned long long own = s < noting.last && apart < 64 ? 1ull << apart : 0;
            each<5>([&](auto k) { own |= __shfl_xor_sync(~0u, own, 16 >> k.value); });
            noting.planes |= own;
            more = __all_sync(~0u, apart < 64);
        }
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
        // Cells of a plane follow each other: lanes have one each, until one lies behind.
        bool more = true;
        #pragma unroll 1
        for (int i = noting.cell; more && i < noting.end; i += 32) {
            const bool is_cell = i + lane < noting.end;
            const int* const cell = noted.cells + 4 * (is_cell ? i + lane : i);
            const Offset plane = __ldg(cell), line = __ldg(cell + 1), x = __ldg(cell + 2);
            const int column = __ldg(cell + 3);
            each<FIELDS>([&](auto f) {
                constexpr int F = f.value;
                each<OWN_Y>([&](auto r) {
                    constexpr int R = r.value;
                    const bool is_here = is_cell && plane == q && line == y(R) && column % FIELDS == F;
                    if (!__any_sync(~0u, is_here)) return;
                    // By way of shared memory: which lane has a cell is not known.
                    __syncwarp();
                    store_row(row, cells[F][R], lane);
                    __syncwarp();
                    if (is_here) values[column / FIELDS] = row[place(int(x - x0))];
                    __syncwarp();
                });
            });
            more = __all_sync(~0u, plane <= q);
        }
    }
};

// What a group of stages reads from device memory, where it goes through rings in shared memory: the rows that the stages read in a
// turn were copied some turns before, with what is tapped beyond the tile's sides. The boundary is asked where a row is
// copied, so that a tap finds what a ghost value shows.
//
// A thread copies the same places of all rows. Where each lies is found once for each layout among the group's fields: in a tile
// inside the thread has it, and goes on by a row in each turn; where the boundary may be asked, a table in shared memory has it.

// Of a place in the table: its bits, and where it lies in a row or plane.
constexpr int NEGATED = 1, CONSTANT_PLACE = 2, PLACE_BITS = 2;

// An index within a box. Tiles go beyond what anybody asks for.
__device__ __forceinline__ Offset within(Offset index, Offset low, Offset end)
{
    return index < low ? low : index >= end ? end - 1 : index;
}

// The copies of a block: from the field or temporary in SLOT to the ring at FIRST. TOP is the row, from the front, that is read
// last of all, WINDOW how many rows before it are read in the same turn; TABLE the number of its layout.
template <class S, bool INSIDE>
struct Copies {
    typedef typename S::Turn Turn;

    static constexpr bool MEETS = true;
    static constexpr bool PLANES = S::AXIS == 0;
    static constexpr int WIDE = S::WIDE_Y * S::WIDE_X;
    static constexpr int PLACES = (WIDE + S::THREADS - 1) / S::THREADS;

    const Arguments& arguments;
    real* rings;
    Offset z, y, x;                             // the tile's first index
    Offset places[INSIDE ? S::LAYOUTS * PLACES : 1];    // in the row that is copied next, without a load's TOP

    __device__ __forceinline__ Copies(const Arguments& arguments, real* rings, Offset z, Offset y, Offset x)
        : arguments(arguments), rings(rings), z(z), y(y), x(x)
    {
    }

    // Copies what is read before the first turn, in that turn, and in those up to which copies are ahead: nothing that no turn
    // waits for, which the next tile of the block would find under way.
    __device__ __forceinline__ void begin()
    {
        S::find(*this);
        #pragma unroll 1
        for (Turn turn(S::START - S::WINDOW - AHEAD); turn.front < S::START; turn.next()) {
            if (turn.front + AHEAD < S::END) S::template copy<true>(*this, turn);
            if (turn.front >= S::START - AHEAD) copies_end();
        }
    }

    // Waits for the rows of a turn, and copies those of a later one.
    __device__ __forceinline__ void go_on(const Turn& turn)
    {
        copies_wait<AHEAD - 1>();
        if (turn.front == S::START) {
            #pragma unroll 1
            for (Turn before(S::START - S::WINDOW); before.front < S::START; before.next()) S::sign(*this, before);
        }
        S::sign(*this, turn);
        __syncthreads();
        if (turn.front + AHEAD < S::END) S::template copy<false>(*this, turn);
        copies_end();
    }

    template <class K>
    static constexpr Offset STRIDE = PLANES ? K::STRIDE_Z : K::STRIDE_Y;

    __device__ __forceinline__ int* table(int number) const
    {
        return reinterpret_cast<int*>(rings + S::VALUES) + number * WIDE;
    }
    __device__ __forceinline__ Offset row_of(int i) const { return y + (PLANES ? i / S::WIDE_X - S::COPIED_Y : 0); }
    __device__ __forceinline__ Offset column_of(int i) const { return x + i % S::WIDE_X - S::COPIED_X; }

    // Calls `copy` with the places of a row, of which a thread has every V-th one of as many neighbours: with its own number of each,
    // and whether the row has it.
    template <int V, class Each>
    __device__ __forceinline__ void each(const Each& copy) const
    {
        constexpr int COUNT = (WIDE / V + S::THREADS - 1) / S::THREADS;
        #pragma unroll
        for (int k = 0; k < COUNT; ++k) {
            const int i = (int(threadIdx.x) + k * S::THREADS) * V;
            copy(k, i, (k + 1) * S::THREADS * V <= WIDE || i < WIDE);
        }
    }

    // Calls `copy` with those that the row has.
    template <class Each>
    __device__ __forceinline__ void each_there(const Each& copy) const
    {
        each<1>([&](int, int i, bool is_there) {
            if (is_there) copy(i);
        });
    }

    // Returns how many neighbours are copied at once: those of 16 bytes where they begin at a multiple of these.
    template <class K>
    __device__ static constexpr int neighbours()
    {
        constexpr int V = 16 / sizeof(real);
        constexpr bool aligned = S::WIDE_X % V == 0 && S::TILE_X % V == 0 && K::STRIDE_Y % V == 0 && K::STRIDE_Z % V == 0;
        return aligned && (S::FIRST_X - S::COPIED_X - K::All::LOW_X) % V == 0 ? V : 1;
    }

    // Finds where the places of a layout lie.
    template <class K, int TABLE>
    __device__ __forceinline__ void find()
    {
        if constexpr (INSIDE) {
            const Offset row = (PLANES ? z * K::STRIDE_Z : y * K::STRIDE_Y) + (S::START - S::WINDOW) * STRIDE<K> - K::FIRST;
            each<neighbours<K>()>([&](int k, int i, bool) {
                places[TABLE * PLACES + k] = opaque(row + (PLANES ? row_of(i) * K::STRIDE_Y : 0) + column_of(i));
            });
        } else {
            const real* const s = arguments.scalars;
            typedef typename K::All All;
            each_there([&](int i) {
                const Ghost b = PLANES ? K::ghost_y(s, row_of(i)) : as_it_is(0), c = K::ghost_x(s, column_of(i));
                const Offset row = PLANES ? within(b.index, All::LOW_Y, All::END_Y) * K::STRIDE_Y : 0;
                const int at = int(row + within(c.index, All::LOW_X, All::END_X)) * (1 << PLACE_BITS);
                const bool constant = b.constant || c.constant, negated = b.negated != c.negated;
                table(TABLE)[i] = at + (constant ? CONSTANT_PLACE : 0) + (negated ? NEGATED : 0);
            });
        }
    }

    // Goes on to the next row of a layout.
    template <class K, int TABLE>
    __device__ __forceinline__ void advance()
    {
        if constexpr (INSIDE) each<neighbours<K>()>([&](int k, int, bool) { places[TABLE * PLACES + k] += STRIDE<K>; });
    }

    // The constant that a place shows, the slowest axis first.
    template <class K>
    __device__ __forceinline__ real constant(const Ghost& a, int i) const
    {
        if (a.constant) return a.value;
        const Ghost b = PLANES ? K::ghost_y(arguments.scalars, row_of(i)) : as_it_is(0), c = K::ghost_x(arguments.scalars, column_of(i));
        if (b.constant) return a.negated ? -b.value : b.value;
        return a.negated != b.negated ? -c.value : c.value;
    }

    template <class K>
    __device__ __forceinline__ Ghost along(int row) const
    {
        return PLANES ? K::ghost_z(arguments.scalars, z + row) : K::ghost_y(arguments.scalars, y + row);
    }

    // Copies the row that is read first in the turn so far ahead; of those before the first turn a load's own WINDOW.
    template <bool BEGINS, class K, int SLOT, int FIRST, int ROWS, int TOP, int WINDOW, int TABLE>
    __device__ __forceinline__ void copy(const Turn& turn) const
    {
        const int front = turn.front + AHEAD;
        if (BEGINS && front < S::START - WINDOW) return;
        typedef typename K::All All;
        const int ring = slot<S, ROWS, TOP + AHEAD>(turn);
        if constexpr (INSIDE) {
            constexpr int V = neighbours<K>();
            const real* const from = arguments.values[SLOT] + TOP * STRIDE<K>;
            each<V>([&](int k, int i, bool is_there) {
                copy_async_if<V * sizeof(real)>(is_there, rings + whole(ring * WIDE + i) + FIRST, from + places[TABLE * PLACES + k]);
            });
        } else {
            const Ghost a = along<K>(front + TOP);
            const Offset row = PLANES ? within(a.index, All::LOW_Z, All::END_Z) : within(a.index, All::LOW_Y, All::END_Y);
            const real* const from = arguments.values[SLOT] + (row * STRIDE<K> - K::FIRST);
            real* const to = rings + FIRST + ring * WIDE;
            each_there([&](int i) {
                const int place = table(TABLE)[i];
                if (a.constant || (place & CONSTANT_PLACE)) to[i] = constant<K>(a, i);
                else copy_async<sizeof(real)>(to + i, from + (place >> PLACE_BITS));
            });
        }
    }

    // Gives what has arrived last the sign that the boundary asks for.
    template <class K, int FIRST, int ROWS, int TOP, int WINDOW, int TABLE>
    __device__ __forceinline__ void sign(const Turn& turn) const
    {
        const int front = turn.front;
        if (INSIDE || front < S::START - WINDOW || front >= S::END) return;
        const Ghost a = along<K>(front + TOP);
        real* const to = rings + FIRST + slot<S, ROWS, TOP>(turn) * WIDE;
        each_there([&](int i) {
            const int place = table(TABLE)[i];
            const bool constant = a.constant || (place & CONSTANT_PLACE), negated = a.negated != ((place & NEGATED) != 0);
            if (negated && !constant) to[i] = -to[i];
        });
    }
};

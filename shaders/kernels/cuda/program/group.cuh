// A group of stages (fusion): a block goes over its tile row by row, and in each turn every stage computes the row
// that lies its lag behind the front. Rows that later stages read stay in rings in shared memory: the value of row r
// is in slot r % ROWS. A ring has a slot for each row that is still read and one for the row that is made, so one
// barrier a turn suffices: nobody reads in a turn what another thread writes in it. Values of device memory are read
// where they lie, or copied into rings some turns before (loads.cuh).
//
// Rows are planes where the axis is z. What is counted from the tile's first index is below 0 before the tile.

// An index that no boundary is asked about. All members are named, because NVRTC 12 and 13 leave those undefined that
// a list in braces omits within `?:`.
__device__ __forceinline__ Ghost as_it_is(Offset index) { return {index, false, false, real(0)}; }

// Returns the slot in a ring of the row that is D behind the block's front. A turn has the front, and its remainder by each number of
// rows that no mask gives.
template <class S, int ROWS, int D>
__device__ __forceinline__ int slot(const typename S::Turn& turn)
{
    if constexpr ((ROWS & (ROWS - 1)) == 0) return unsigned(turn.front + S::BIAS + D) & (ROWS - 1);
    constexpr int BEHIND = (D % ROWS + ROWS) % ROWS;
    const int place = turn.template remainder<ROWS>() + BEHIND;
    return place >= ROWS ? place - ROWS : place;
}

// Goes on from one remainder to the next.
template <int ROWS>
__device__ __forceinline__ int next(int remainder) { return remainder == ROWS - 1 ? 0 : remainder + 1; }

// A stage's index in a turn. `Asked` says whether taps may lie beyond their buffers.
template <class S, class Asked>
struct Member : Asked {
    real* rings;
    typename S::Turn turn;
    int row;             // the stage's row, of the tile
    int place, wide;     // its place in a row that stages make, and in one that is copied
    bool is_active;      // whether the stage computes here in this turn
    bool is_next;        // whether it does in the next one
    bool is_owned;       // whether the index is of the tile itself

    static constexpr int VALUES = S::ROW_Y * S::ROW_X, WIDE = S::WIDE_Y * S::WIDE_X;

    __device__ __forceinline__ void forget()
    {
        Asked::forget();
        place = opaque(place);
        wide = opaque(wide);
    }

    template <class B>
    __device__ __forceinline__ bool holds() const
    {
        return Asked::INSIDE || B::holds(this->z, this->y, this->x);
    }

    // Whether a value stays as it was: it is one of All, and the stage does not compute it.
    template <class All, class Own>
    __device__ __forceinline__ bool misses() const
    {
        return !Asked::INSIDE && All::holds(this->z, this->y, this->x) && !Own::holds(this->z, this->y, this->x);
    }

    // Asks for what a tap reads in the next turn, which is longer than memory takes.
    template <class K, int SLOT, int Z, int Y, int X>
    __device__ __forceinline__ void ahead() const
    {
        constexpr int DEEP = Z + (S::AXIS == 0), DOWN = Y + (S::AXIS == 1);
        if (Asked::INSIDE || K::All::holds(this->z + DEEP, this->y + DOWN, this->x + X))
            prefetch(this->template here<K, SLOT>() + (DEEP * K::STRIDE_Z + DOWN * K::STRIDE_Y + X - K::FIRST));
    }

    // Keeps a value in the ring at FIRST, in the row that is D before the front.
    template <int FIRST, int ROWS, int D>
    __device__ __forceinline__ void keep_row(real value) const
    {
        (rings + whole(slot<S, ROWS, D>(turn) * VALUES + place))[FIRST] = value;
    }

    // Returns what has been copied for a tap, from the row that is D before the front.
    template <int FIRST, int ROWS, int D, int Y, int X>
    __device__ __forceinline__ real copied() const
    {
        return (rings + whole(slot<S, ROWS, D>(turn) * WIDE + wide))[FIRST + (S::AXIS == 0 ? Y * S::WIDE_X : 0) + X];
    }

    // Returns what an earlier stage has made, from its ring.
    template <class K, int FIRST, int ROWS, int D, int Z, int Y, int X>
    __device__ __forceinline__ real kept() const
    {
        constexpr int ACROSS = S::AXIS == 0 ? Y * S::ROW_X + X : X;
        if constexpr (Asked::INSIDE) return (rings + whole(slot<S, ROWS, D>(turn) * VALUES + place))[FIRST + ACROSS];
        else return asked<K, FIRST, ROWS, Z, Y, X>();
    }

    // The same where the boundary may have to be asked, the slowest axis first; the first constant decides. What
    // is computed anew beyond the domain is there as it is.
    template <class K, int FIRST, int ROWS, int Z, int Y, int X>
    __device__ __forceinline__ real asked() const
    {
        const real* const s = this->arguments.scalars;
        const Offset z = this->z + Z, y = this->y + Y, x = this->x + X;
        const Ghost a = S::WRAPS_Z ? as_it_is(z) : K::ghost_z(s, z);
        if (a.constant) return a.value;
        const Ghost b = S::WRAPS_Y ? as_it_is(y) : K::ghost_y(s, y);
        if (b.constant) return a.negated ? -b.value : b.value;
        const Ghost c = S::WRAPS_X ? as_it_is(x) : K::ghost_x(s, x);
        const bool across = a.negated != b.negated;
        if (c.constant) return across ? -c.value : c.value;
        const int dz = int(a.index - this->z), dy = int(b.index - this->y), dx = int(c.index - this->x);
        const int down = S::AXIS == 0 ? dz : dy, beside = S::AXIS == 0 ? dy * S::ROW_X + dx : dx;
        const real stored = rings[FIRST + unsigned(row + S::BIAS + down) % ROWS * VALUES + place + beside];
        return across != c.negated ? -stored : stored;
    }

    // Takes a value that no stage computes along to the field's new buffer.
    template <class K, int TO>
    __device__ __forceinline__ void take(real value) const
    {
        if (K::All::holds(this->z, this->y, this->x)) put(this->template here<K, TO>() - K::FIRST, value);
    }
};

// A place across the axis along which a block goes.
template <class S, class Asked>
struct Across {
    const Arguments& arguments;
    real* rings;
    Offset z, y, x;     // there, in the tile's first row
    int across_y, across_x, place, wide;

    template <int LAG, int LOW_Z, int HIGH_Z, int LOW_Y, int HIGH_Y, int LOW_X, int HIGH_X>
    __device__ __forceinline__ Member<S, Asked> member(const typename S::Turn& turn) const
    {
        constexpr bool PLANES = S::AXIS == 0;
        constexpr int LOW = PLANES ? LOW_Z : LOW_Y, HIGH = PLANES ? HIGH_Z : HIGH_Y;
        constexpr int TILE = PLANES ? S::TILE_Z : S::TILE_Y;
        const int row = turn.front - LAG;
        const bool is_across = across_x >= -LOW_X &&
                               across_x < S::TILE_X + HIGH_X &&
                               (!PLANES || (across_y >= -LOW_Y && across_y < S::TILE_Y + HIGH_Y));
        const bool is_active = row >= -LOW && row < TILE + HIGH && is_across;
        const bool is_next = row + 1 >= -LOW && row + 1 < TILE + HIGH && is_across;
        const bool is_owned = row >= 0 && row < TILE && across_x >= 0 && across_x < S::TILE_X &&
                              (!PLANES || (across_y >= 0 && across_y < S::TILE_Y));
        return {{{arguments, z + (PLANES ? row : 0), y + (PLANES ? 0 : row), x}},
                rings, turn, row, place, wide, is_active, is_next, is_owned};
    }
};

// What a block copies where its stages read device memory where it lies.
template <class S, bool INSIDE>
struct NoCopies {
    __device__ __forceinline__ NoCopies(const Arguments&, real*, Offset, Offset, Offset) {}
    __device__ __forceinline__ void begin() const {}
    template <class Turn>
    __device__ __forceinline__ void go_on(const Turn&) const {}
    static constexpr bool MEETS = false;
};

// Takes all turns of a block. After a turn, `R` joins what it has completed of a reduction.
template <class S, class Asked, class R, class Copies>
__device__ __forceinline__ void take_turns(const Arguments& arguments, real* rings, Offset z, Offset y, Offset x)
{
    Copies copies(arguments, rings, z, y, x);
    copies.begin();
    #pragma unroll 1
    for (typename S::Turn turn(S::START); turn.front < S::END; turn.next()) {
        copies.go_on(turn);
        const auto at = [&](int i) {
            const int across_y = i / S::ROW_X - S::BEFORE_Y, across_x = i % S::ROW_X - S::BEFORE_X;
            const int wide = (S::AXIS == 0 ? across_y + S::COPIED_Y : 0) * S::WIDE_X + across_x + S::COPIED_X;
            const Across<S, Asked> there = {arguments, rings, z, y + across_y, x + across_x, across_y, across_x, i, wide};
            if constexpr (Asked::INSIDE) S::turn_inside(there, turn);
            else S::turn_anywhere(there, turn);
        };
        constexpr int ROW = S::ROW_Y * S::ROW_X;
        if constexpr (S::THREADS >= ROW) {
            if (threadIdx.x < ROW) at(threadIdx.x);
        } else {
            #pragma unroll 1
            for (int i = threadIdx.x; i < ROW; i += S::THREADS) at(i);
        }
        if (!Copies::MEETS || R::JOINS) __syncthreads();
        R::template join_rows<S>(arguments, rings, turn.front, z, y, x);
    }
}

// A group without a reduction.
struct NoReduction {
    static constexpr bool JOINS = false;
    template <class S>
    __device__ static __forceinline__ void join_rows(const Arguments&, const real*, int, Offset, Offset, Offset) {}
};

// Computes the stages of a group over a tile.
template <class S, class R, template <class, bool> class Copies>
__device__ __forceinline__ void group(const Arguments& arguments, unsigned tile)
{
    DYNAMIC_SHARED;
    real* const rings = reinterpret_cast<real*>(shared);
    Offset z, y, x;
    corner<S>(tile, z, y, x);
    const bool inside = S::Inner::holds(z, y, x) &&
                        S::Inner::holds(z + S::TILE_Z - 1, y + S::TILE_Y - 1, x + S::TILE_X - 1);
    if (inside) take_turns<S, Inside, R, Copies<S, true>>(arguments, rings, z, y, x);
    else take_turns<S, Edge, R, Copies<S, false>>(arguments, rings, z, y, x);
}

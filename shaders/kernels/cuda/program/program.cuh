// A stage of programs of any kinds of fields, in a launch of its own or as a part of a persistent kernel: where
// values lie, and a stage's values around an index.
//
// The generated text above numbers the boundary kinds and says which value a ghost value shows (`below`,
// `above`, `is_negated`). The generated text below has a struct per kind of field, with its strides and its
// ghost values, and a struct per stage.

// How far a run has come.
struct Progress {
    unsigned long long stopped;     // not 0 where launches do nothing more: the run has ended, is at a mark, or a loop is over
    unsigned long long steps;       // done
    unsigned long long rows;        // of the record that have not been taken yet
    unsigned long long until_due;   // steps to the next row
    double mark;                    // that a scalar reaches next
    unsigned long long turns;       // of the loop that is under way
    unsigned long long arrived;     // blocks of a reduction that have made their leaves
};

// A launch's buffers by their slots, all scalars (first the parameters) as stages of fields read them, the leaves of a
// reduction, how far the run has come, the rows of its record, all scalars in f64, and the matrices of transforms. Where `real`
// is f64, both pointers to scalars are the same.
struct Arguments {
    static constexpr bool CHANGING = PERSISTENT;    // whether the launch may change whatever it reads

    real* values[SLOTS];
    real* scalars;
    real* leaves;
    Progress* progress;
    double* rows;
    double* exact;
    const real* matrices;
};

constexpr int THREADS = THREADS_Z * THREADS_Y * THREADS_X;

// A box of indices: from the low ends up to the high ones.
template <Offset Z0, Offset Y0, Offset X0, Offset Z1, Offset Y1, Offset X1>
struct Box {
    static constexpr Offset LOW_Z = Z0, LOW_Y = Y0, LOW_X = X0, END_Z = Z1, END_Y = Y1, END_X = X1;

    __device__ static __forceinline__ bool holds(Offset z, Offset y, Offset x)
    {
        return z >= Z0 && z < Z1 && y >= Y0 && y < Y1 && x >= X0 && x < X1;
    }
};

// Where the value at an index along an axis is found.
struct Ghost {
    Offset index;    // there, ...
    bool negated;    // ... with the opposite sign
    bool constant;   // or nowhere: the value is ...
    real value;      // ... this one
};

// Asks the boundary until the index is inside. No index that a stage asks for needs more than `FOLDS` turns.
template <int FOLDS, int LOW, int HIGH>
__device__ __forceinline__ Ghost ghost(Offset i, Offset n, real low, real high)
{
    Ghost g = {i, false, false, real(0)};
    #pragma unroll
    for (int fold = 0; fold < FOLDS; ++fold) {
        const bool under = g.index < 0, over = g.index >= n;
        if (under && LOW == CONSTANT) g = {0, false, true, g.negated ? -low : low};
        else if (over && HIGH == CONSTANT) g = {0, false, true, g.negated ? -high : high};
        else if (under || over) {
            g.negated = g.negated != (under ? is_negated(LOW) : is_negated(HIGH));
            // A single value whose sides both mirror it shows itself.
            const bool endless = n == 1 && mirrors_a_value(LOW) && mirrors_a_value(HIGH);
            g.index = endless ? 0 : under ? below(LOW, g.index, n) : above(HIGH, g.index, n);
        }
    }
    return g;
}

// Values that the launch itself may change are not read through the cache of constant data. A field may be stored in a type
// narrower than `real`, of which all its values are.
template <bool CHANGES, class Stored>
__device__ __forceinline__ Stored loaded(const Stored* from)
{
    if constexpr (CHANGES) return *from;
    else return __ldg(from);
}
template <bool CHANGES, class Stored>
__device__ __forceinline__ real read(const Stored* from)
{
    if constexpr (sizeof(Stored) == 2) return real(value_of(Stored{loaded<CHANGES>(&from->bits)}));
    else return real(loaded<CHANGES>(from));
}

// What every formula sees; `A` is `Arguments`, or the same in a launch that may change whatever it reads.
template <class A>
struct SpotOf {
    const A& arguments;
    Offset z, y, x;

    // What is loaded for this place afterwards is not known from before.
    __device__ __forceinline__ void forget() { x = opaque(x); }

    // Returns the place from which offsets count on a grid of so many levels coarser, or finer if below 0.
    template <int LEVELS>
    __device__ __forceinline__ SpotOf moved() const
    {
        const auto index = [](Offset i) { return LEVELS > 0 ? i >> LEVELS : i * (Offset(1) << (LEVELS > 0 ? 0 : -LEVELS)); };
        return {arguments, index(z), index(y), index(x)};
    }

    template <int I>
    __device__ __forceinline__ real parameter() const { return read<A::CHANGING>(arguments.scalars + I); }
    template <int AXIS, class Real = real>
    __device__ __forceinline__ Real coordinate() const { return Real(AXIS == 0 ? z : AXIS == 1 ? y : x); }

    // Returns the first value of a slot's buffer plus the index here: the same sum for all kinds of the same
    // strides.
    template <class K, int SLOT>
    __device__ __forceinline__ typename K::Stored* here() const
    {
        return values<K, SLOT>() + (z * K::STRIDE_Z + y * K::STRIDE_Y + x);
    }
    template <class K, int SLOT>
    __device__ __forceinline__ typename K::Stored* values() const { return reinterpret_cast<typename K::Stored*>(arguments.values[SLOT]); }
};

// An index around which every tap lies inside its buffer, in a tile whose outputs are all computed.
struct Inside : SpotOf<Arguments> {
    static constexpr bool INSIDE = true;

    template <int LEVELS>
    __device__ __forceinline__ Inside on_level() const { return {moved<LEVELS>()}; }
    template <class K, int SLOT, bool CHANGES, int Z, int Y, int X>
    __device__ __forceinline__ real at() const
    {
        return read<CHANGES || PERSISTENT>(here<K, SLOT>() + (Z * K::STRIDE_Z + Y * K::STRIDE_Y + X - K::FIRST));
    }
    template <class K, int SLOT, class Computed>
    __device__ __forceinline__ void store(real value) const { put(here<K, SLOT>() - K::FIRST, value); }
};

// Any other index: taps ask the boundary, the slowest axis first, and the first constant decides.
template <class A>
struct EdgeOf : SpotOf<A> {
    static constexpr bool INSIDE = false;
    using SpotOf<A>::arguments;
    using SpotOf<A>::z;
    using SpotOf<A>::y;
    using SpotOf<A>::x;

    template <int LEVELS>
    __device__ __forceinline__ EdgeOf on_level() const { return {this->template moved<LEVELS>()}; }
    template <class K, int SLOT, bool CHANGES, int Z, int Y, int X>
    __device__ __forceinline__ real at() const
    {
        const real* const s = arguments.scalars;
        const Ghost a = K::ghost_z(s, z + Z), b = K::ghost_y(s, y + Y), c = K::ghost_x(s, x + X);
        const Offset at = a.index * K::STRIDE_Z + b.index * K::STRIDE_Y + c.index - K::FIRST;
        const real stored = read<CHANGES || A::CHANGING>(this->template values<K, SLOT>() + at);
        const bool across = a.negated != b.negated, all = across != c.negated;
        return a.constant ? a.value
             : b.constant ? (a.negated ? -b.value : b.value)
             : c.constant ? (across ? -c.value : c.value)
             : all ? -stored : stored;
    }
    template <class K, int SLOT, class Computed>
    __device__ __forceinline__ void store(real value) const
    {
        if (Computed::holds(z, y, x)) put(this->template here<K, SLOT>() - K::FIRST, value);
    }
    // Takes a value that no stage computes along to the field's new buffer, if that is another one.
    template <class K, int TO, int FROM, class Computed>
    __device__ __forceinline__ void keep() const
    {
        if (arguments.values[TO] == arguments.values[FROM] || Computed::holds(z, y, x)) return;
        if (K::All::holds(z, y, x)) this->template here<K, TO>()[-K::FIRST] = this->template here<K, FROM>()[-K::FIRST];
    }
};

typedef EdgeOf<Arguments> Edge;

// Returns the first index of a tile.
template <class S>
__device__ __forceinline__ void corner(unsigned tile, Offset& z, Offset& y, Offset& x)
{
    const unsigned row = tile / S::BLOCKS_X;
    z = S::FIRST_Z + (S::BLOCKS_Z == 1 ? 0 : Offset(row / S::BLOCKS_Y)) * S::TILE_Z;
    y = S::FIRST_Y + Offset(S::BLOCKS_Z == 1 ? row : row % S::BLOCKS_Y) * S::TILE_Y;
    x = S::FIRST_X + Offset(tile % S::BLOCKS_X) * S::TILE_X;
}

// Computes new values over a tile.
template <class S>
__device__ __forceinline__ void update(const Arguments& arguments, unsigned tile)
{
    Offset z0, y0, x0;
    corner<S>(tile, z0, y0, x0);
    const bool inside = S::Inner::holds(z0, y0, x0) &&
                        S::Inner::holds(z0 + S::TILE_Z - 1, y0 + S::TILE_Y - 1, x0 + S::TILE_X - 1);
    const int tx = threadIdx.x % THREADS_X, row = threadIdx.x / THREADS_X;
    const int ty = THREADS_Z == 1 ? row : row % THREADS_Y, tz = THREADS_Z == 1 ? 0 : row / THREADS_Y;
    #pragma unroll
    for (int dz = 0; dz < S::TILE_Z / THREADS_Z; ++dz) {
        #pragma unroll
        for (int dy = 0; dy < S::TILE_Y; dy += THREADS_Y) {
            #pragma unroll
            for (int dx = 0; dx < S::TILE_X; dx += THREADS_X) {
                const Offset z = z0 + tz * (S::TILE_Z / THREADS_Z) + dz, y = y0 + ty + dy, x = x0 + tx + dx;
                if (inside) {
                    S::compute(Inside{{arguments, z, y, x}});
                } else {
                    const Edge edge = {{arguments, z, y, x}};
                    if (S::Computed::holds(z, y, x)) S::compute(edge);
                    S::keep(edge);
                }
            }
        }
    }
}

// Takes all values of a leaf along to other buffers.
template <class S>
__device__ __forceinline__ void carry(const Arguments& arguments, unsigned tile)
{
    Offset z, y, x;
    corner<S>(tile, z, y, x);
    const int i = threadIdx.x, row = i / LEAF_X;
    S::keep(Edge{{arguments, z + row / LEAF_Y, y + row % LEAF_Y, x + i % LEAF_X}});
}

// Computes new values at a stage's points, a thread for each and as many in a tile as in a leaf.
template <class S>
__device__ __forceinline__ void points(const Arguments& arguments, unsigned tile)
{
    const int i = int(tile) * (LEAF_Z * LEAF_Y * LEAF_X) + int(threadIdx.x);
    if (i >= S::POINTS) return;
    S::compute(Edge{{arguments, S::point(i, 0), S::point(i, 1), S::point(i, 2)}});
}

// The view of a formula of scalars, one of which its own launch writes.
struct Alone {
    const Arguments& arguments;

    template <int I>
    __device__ __forceinline__ double parameter() const { return arguments.exact[I]; }
};

// Sets a scalar: in f64, and rounded once for stages of fields.
__device__ __forceinline__ void set_scalar(const Arguments& arguments, int number, double value)
{
    arguments.exact[number] = value;
    if (sizeof(real) < sizeof(double)) arguments.scalars[number] = real(value);
}

// Reductions over a region, by the tree that all backends share. Its leaves are aligned boxes of indices; in
// a leaf, and then among leaves, blocks of two are joined along the slowest axis, then along the next, then
// along the fastest. What is missing counts as the neutral value.

constexpr int LEAF = LEAF_Z * LEAF_Y * LEAF_X, WARPS = LEAF / WARP;

// Joins the values of a leaf, of which each lane of a warp has one of every row; the result is in the first lane. A leaf of a
// domain of one axis is a single row, several warps long.
template <class S>
__device__ __forceinline__ real join_leaf(real (&v)[WARPS])
{
    constexpr int BY = S::REDUCTION;
    if constexpr (LEAF_Z * LEAF_Y == 1) {
        #pragma unroll
        for (int w = 0; w < WARPS; ++w) v[w] = join_warp<BY>(v[w]);
        join_all<BY, WARPS, 1>(v);
        return v[0];
    }
    #pragma unroll
    for (int y = 0; y < LEAF_Y; ++y) join_all<BY, LEAF_Z, LEAF_Y>(v + y);
    join_all<BY, LEAF_Y, 1>(v);
    return join_warp<BY>(v[0]);
}

// Joins the values of a leaf, of which each warp of a block has a row; the result is in the first thread.
template <class S>
__device__ __forceinline__ real join_leaf_of_block(real value)
{
    typedef real Rows[WARPS][WARP];
    SHARED_VARIABLE(Rows, rows);
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    rows[warp][lane] = value;
    __syncthreads();
    if (warp > 0) return value;
    real v[WARPS];
    #pragma unroll
    for (int w = 0; w < WARPS; ++w) v[w] = rows[w][lane];
    return join_leaf<S>(v);
}

// Reduces the leaves of a tile: value(inside, z, y, x) is that of an index, and holds(z, y, x) whether an index may be one of
// those inside. Of several leaves, which lie side by side, each warp has one or some. Where all indices of these are inside, its
// lanes load all rows at the same time. Where leaves are few, a tile is one, and each warp has a row of it: there are more warps
// then.
template <class S, class Holds, class Value>
__device__ __forceinline__ void reduce_leaves(const Arguments& arguments, unsigned tile, const Holds& holds, const Value& value)
{
    constexpr bool LINE = LEAF_Z * LEAF_Y == 1, ALONE = S::TILE_X == LEAF_X;
    constexpr int EACH = ALONE ? 1 : S::TILE_X / (LEAF_X * WARPS);
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    Offset z, y, x0;
    corner<S>(tile, z, y, x0);
    auto of_row = [&](bool inside, Offset x, int k) { return value(inside, z + (LINE ? 0 : k / LEAF_Y), y + (LINE ? 0 : k % LEAF_Y), x + (LINE ? k * WARP : 0) + lane); };
    auto within = [&](Offset first, Offset last) { return holds(z, y, first) && holds(z + LEAF_Z - 1, y + LEAF_Y - 1, last); };
    auto set = [&](Offset x, real joined) { arguments.leaves[(z / LEAF_Z * S::LEAVES_Y + y / LEAF_Y) * S::LEAVES_X + x / LEAF_X] = joined; };
    if constexpr (ALONE) {
        const real joined = join_leaf_of_block<S>(of_row(within(x0, x0 + LEAF_X - 1), x0, warp));
        if (threadIdx.x == 0) set(x0, joined);
        return;
    }
    auto place = [&](int j) { return x0 + Offset(j * WARPS + warp) * LEAF_X; };
    if (EACH > 1 && (x0 + S::TILE_X) / LEAF_X <= S::LEAVES_X && within(x0, x0 + S::TILE_X - 1)) {
        real v[EACH][WARPS];
        #pragma unroll
        for (int j = 0; j < EACH; ++j) {
            #pragma unroll
            for (int k = 0; k < WARPS; ++k) v[j][k] = of_row(true, place(j), k);
        }
        #pragma unroll
        for (int j = 0; j < EACH; ++j) {
            const real joined = join_leaf<S>(v[j]);
            if (lane == 0) set(place(j), joined);
        }
        return;
    }
    #pragma unroll 1
    for (int j = 0; j < EACH; ++j) {
        const Offset x = place(j);
        if (x / LEAF_X >= S::LEAVES_X) return;
        const bool inside = within(x, x + LEAF_X - 1);
        real v[WARPS];
        #pragma unroll
        for (int k = 0; k < WARPS; ++k) v[k] = of_row(inside, x, k);
        const real joined = join_leaf<S>(v);
        if (lane == 0) set(x, joined);
    }
}

template <class S>
__device__ __forceinline__ bool join_last(const Arguments& arguments);

// Reduces the leaves of a tile. Returns whether this thread has joined all leaves.
template <class S>
__device__ __forceinline__ bool reduce(const Arguments& arguments, unsigned tile)
{
    reduce_leaves<S>(arguments, tile, [](Offset z, Offset y, Offset x) { return S::Inner::holds(z, y, x); }, [&](bool inside, Offset z, Offset y, Offset x) {
        if (inside) return S::value(Inside{{arguments, z, y, x}});
        return S::Computed::holds(z, y, x) ? S::value(Edge{{arguments, z, y, x}}) : S::neutral();
    });
    if constexpr (S::JOINED_WITHIN) return join_last<S>(arguments);
    else return false;
}

// Computes the new values at an index, and returns what a reduction has of them there.
template <class S, class View>
__device__ __forceinline__ real value_made(const View& edge)
{
    const bool counts = S::Region::holds(edge.z, edge.y, edge.x), computed = S::Computed::holds(edge.z, edge.y, edge.x);
    real value = S::neutral();
    if (computed) {
        const real made = S::compute(edge);
        if (counts) value = made;
    }
    S::keep(edge);
    if (counts && !computed) value = S::value_kept(edge);
    return value;
}

// Computes new values over the leaves of a tile, and reduces what they give, as `reduce` does.
template <class S>
__device__ __forceinline__ bool reduce_made(const Arguments& arguments, unsigned tile)
{
    auto holds = [](Offset z, Offset y, Offset x) { return S::Inner::holds(z, y, x) && S::Region::holds(z, y, x); };
    reduce_leaves<S>(arguments, tile, holds, [&](bool inside, Offset z, Offset y, Offset x) {
        return inside ? S::compute(Inside{{arguments, z, y, x}}) : value_made<S>(Edge{{arguments, z, y, x}});
    });
    if constexpr (S::JOINED_WITHIN) return join_last<S>(arguments);
    else return false;
}

// Of a reduction with many leaves, blocks join the rows of the first axis that has several, so many to one each.
constexpr int ROWS_OF_BLOCK = 64;
template <class S>
struct LeafRows {
    static constexpr Offset ROWS = S::LEAVES_Z > 1 ? S::LEAVES_Z : S::LEAVES_Y > 1 ? S::LEAVES_Y : S::LEAVES_X;
    static constexpr Offset WIDTH = Offset(S::LEAVES_Z) * S::LEAVES_Y * S::LEAVES_X / ROWS;
    static constexpr Offset ACROSS = (WIDTH + WARP - 1) / WARP;    // blocks for a row of results
    // Returns how many of an axis's leaves are left.
    __device__ static constexpr Offset left(Offset count, bool first) { return S::ROWS_JOINED && first ? (count + ROWS_OF_BLOCK - 1) / ROWS_OF_BLOCK : count; }
};

// Joins the rows of leaves of a block into the room behind all leaves.
template <class S>
__device__ __forceinline__ void join_rows(const Arguments& arguments, unsigned block)
{
    typedef LeafRows<S> All;
    constexpr int EACH = ROWS_OF_BLOCK / WARPS;
    typedef real Rows[WARPS][WARP];
    SHARED_VARIABLE(Rows, rows);
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const Offset row = Offset(block / All::ACROSS) * WARPS + warp, column = Offset(block % All::ACROSS) * WARP + lane;
    real v[EACH > WARPS ? EACH : WARPS];
    #pragma unroll
    for (int k = 0; k < EACH; ++k) v[k] = row * EACH + k < All::ROWS && column < All::WIDTH ? arguments.leaves[(row * EACH + k) * All::WIDTH + column] : S::neutral();
    join_all<S::REDUCTION, EACH, 1>(v);
    rows[warp][lane] = v[0];
    __syncthreads();
    if (warp > 0 || column >= All::WIDTH) return;
    #pragma unroll
    for (int w = 0; w < WARPS; ++w) v[w] = rows[w][lane];
    join_all<S::REDUCTION, WARPS, 1>(v);
    arguments.leaves[All::ROWS * All::WIDTH + Offset(block / All::ACROSS) * All::WIDTH + column] = v[0];
}

// Joins `COUNT` rows of `WIDTH` values to one row, eight rows a turn, by so many threads; `from` is then that row.
template <class S, Offset COUNT, Offset WIDTH, int THREADS>
__device__ __forceinline__ void join_boxes(real*& from, real*& to)
{
    constexpr int AT_ONCE = 8;
    #pragma unroll 1
    for (Offset count = COUNT; count > 1; count = (count + AT_ONCE - 1) / AT_ONCE) {
        const Offset groups = (count + AT_ONCE - 1) / AT_ONCE;
        for (Offset i = threadIdx.x; i < groups * WIDTH; i += THREADS) {
            const Offset first = i / WIDTH * AT_ONCE, column = i % WIDTH;
            real v[AT_ONCE];
            #pragma unroll
            for (int k = 0; k < AT_ONCE; ++k) {
                v[k] = first + k < count ? from[(first + k) * WIDTH + column] : S::neutral();
            }
            join_all<S::REDUCTION, AT_ONCE, 1>(v);
            to[i] = v[0];
        }
        __syncthreads();
        real* const done = to;
        to = from;
        from = done;
    }
}

// Joins all leaves, or what `join_rows` left of them, to the scalar, by so many threads of a block; leaves have room for as many
// values again behind them.
template <class S, int THREADS = LEAF>
__device__ __forceinline__ void join_leaves(const Arguments& arguments)
{
    typedef LeafRows<S> All;
    constexpr Offset Z = All::left(S::LEAVES_Z, S::LEAVES_Z > 1), Y = All::left(S::LEAVES_Y, S::LEAVES_Z == 1 && S::LEAVES_Y > 1);
    constexpr Offset X = All::left(S::LEAVES_X, S::LEAVES_Z * S::LEAVES_Y == 1);
    real *from = arguments.leaves, *to = from + All::ROWS * All::WIDTH;
    if constexpr (S::ROWS_JOINED) {
        real* const first = from;
        from = to;
        to = first;
    }
    join_boxes<S, Z, Y * X, THREADS>(from, to);
    join_boxes<S, Y, X, THREADS>(from, to);
    join_boxes<S, X, 1, THREADS>(from, to);
    if (threadIdx.x == 0) set_scalar(arguments, S::SCALAR, *from);
}

// Joins all leaves in the block that is the last one of its launch to have made its own. Returns whether this thread has.
template <class S>
__device__ __forceinline__ bool join_last(const Arguments& arguments)
{
    SHARED_VARIABLE(bool, is_last);
    __syncthreads();
    if (threadIdx.x == 0) is_last = add_in_turn(&arguments.progress->arrived, 1) + 1 == (unsigned long long)gridDim.x;
    __syncthreads();
    if (!is_last) return false;
    join_leaves<S>(arguments);
    if (threadIdx.x > 0) return false;
    arguments.progress->arrived = 0;
    return true;
}

// Reductions over a region, by the tree that all backends share. Its leaves are aligned boxes of indices; in
// a leaf, and then among leaves, blocks of two are joined along the slowest axis, then along the next, then
// along the fastest. What is missing counts as the neutral value.

constexpr int LEAF = LEAF_Z * LEAF_Y * LEAF_X, WARPS = LEAF / WARP;

// Joins the values of a block's threads, of which each has one index of a leaf; the result is in the first.
// A warp has a row along the fastest axis, which only a domain of one axis has several of.
template <class S>
__device__ __forceinline__ real join_leaf(real value)
{
    constexpr int BY = S::REDUCTION;
    constexpr bool LINE = LEAF_Z * LEAF_Y == 1;
    typedef real Rows[WARPS][WARP];
    SHARED_VARIABLE(Rows, rows);
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    if (LINE) value = join_warp<BY>(value);
    rows[warp][lane] = value;
    __syncthreads();
    if (warp > 0) return value;
    real v[WARPS];
    #pragma unroll
    for (int w = 0; w < WARPS; ++w) v[w] = rows[w][lane];
    if (LINE) {
        join_all<BY, WARPS, 1>(v);
        return v[0];
    }
    #pragma unroll
    for (int y = 0; y < LEAF_Y; ++y) join_all<BY, LEAF_Z, LEAF_Y>(v + y);
    join_all<BY, LEAF_Y, 1>(v);
    return join_warp<BY>(v[0]);
}

// Reduces a leaf of the region.
template <class S>
__device__ __forceinline__ void reduce(const Arguments& arguments, unsigned tile)
{
    Offset z, y, x;
    corner<S>(tile, z, y, x);
    const bool inside = S::Inner::holds(z, y, x) &&
                        S::Inner::holds(z + LEAF_Z - 1, y + LEAF_Y - 1, x + LEAF_X - 1);
    const int row = threadIdx.x / LEAF_X;
    z += LEAF_Z == 1 ? 0 : row / LEAF_Y;
    y += LEAF_Z == 1 ? row : row % LEAF_Y;
    x += threadIdx.x % LEAF_X;
    real value = S::neutral();
    if (inside) value = S::value(Inside{{arguments, z, y, x}});
    else if (S::Computed::holds(z, y, x)) value = S::value(Edge{{arguments, z, y, x}});
    value = join_leaf<S>(value);
    if (threadIdx.x == 0) arguments.leaves[tile] = value;
}

// Computes new values over a tile, which is a leaf, and reduces what they give.
template <class S>
__device__ __forceinline__ void reduce_made(const Arguments& arguments, unsigned tile)
{
    Offset z, y, x;
    corner<S>(tile, z, y, x);
    const Offset z1 = z + LEAF_Z - 1, y1 = y + LEAF_Y - 1, x1 = x + LEAF_X - 1;
    const bool inside = S::Inner::holds(z, y, x) && S::Inner::holds(z1, y1, x1) && S::Region::holds(z, y, x) && S::Region::holds(z1, y1, x1);
    const int row = threadIdx.x / LEAF_X;
    z += LEAF_Z == 1 ? 0 : row / LEAF_Y;
    y += LEAF_Z == 1 ? row : row % LEAF_Y;
    x += threadIdx.x % LEAF_X;
    real value = S::neutral();
    if (inside) value = S::compute(Inside{{arguments, z, y, x}});
    else {
        const Edge edge = {{arguments, z, y, x}};
        const bool counts = S::Region::holds(z, y, x), computed = S::Computed::holds(z, y, x);
        if (computed) {
            const real made = S::compute(edge);
            if (counts) value = made;
        }
        S::keep(edge);
        if (counts && !computed) value = S::value_kept(edge);
    }
    value = join_leaf<S>(value);
    if (threadIdx.x == 0) arguments.leaves[tile] = value;
}

// Of a reduction with many leaves, blocks join the rows of the first axis that has several, so many to one each.
constexpr int ROWS_OF_BLOCK = 64;
template <class S>
struct LeafRows {
    static constexpr Offset ROWS = S::BLOCKS_Z > 1 ? S::BLOCKS_Z : S::BLOCKS_Y > 1 ? S::BLOCKS_Y : S::BLOCKS_X;
    static constexpr Offset WIDTH = Offset(S::BLOCKS_Z) * S::BLOCKS_Y * S::BLOCKS_X / ROWS;
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

// Joins `COUNT` rows of `WIDTH` values to one row, eight rows a turn; `from` is then that row.
template <class S, Offset COUNT, Offset WIDTH>
__device__ __forceinline__ void join_boxes(real*& from, real*& to)
{
    constexpr int AT_ONCE = 8;
    #pragma unroll 1
    for (Offset count = COUNT; count > 1; count = (count + AT_ONCE - 1) / AT_ONCE) {
        const Offset groups = (count + AT_ONCE - 1) / AT_ONCE;
        for (Offset i = threadIdx.x; i < groups * WIDTH; i += LEAF) {
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

// Joins all leaves, or what `join_rows` left of them, to the scalar; leaves have room for as many values again behind them.
template <class S>
__device__ __forceinline__ void join_leaves(const Arguments& arguments)
{
    typedef LeafRows<S> All;
    constexpr Offset Z = All::left(S::BLOCKS_Z, S::BLOCKS_Z > 1), Y = All::left(S::BLOCKS_Y, S::BLOCKS_Z == 1 && S::BLOCKS_Y > 1);
    constexpr Offset X = All::left(S::BLOCKS_X, S::BLOCKS_Z * S::BLOCKS_Y == 1);
    real *from = arguments.leaves, *to = from + All::ROWS * All::WIDTH;
    if constexpr (S::ROWS_JOINED) {
        real* const first = from;
        from = to;
        to = first;
    }
    join_boxes<S, Z, Y * X>(from, to);
    join_boxes<S, Y, X>(from, to);
    join_boxes<S, X, 1>(from, to);
    if (threadIdx.x == 0) set_scalar(arguments, S::SCALAR, *from);
}

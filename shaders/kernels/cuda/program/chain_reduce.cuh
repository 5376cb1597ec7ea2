// Reductions of a chain.

// Joins the values of each leaf of a reduction, a warp a leaf: value(edge) is that of an index.
template <class S, class Value>
__device__ __forceinline__ void join_box(const Linked& arguments, unsigned thread, unsigned count, const Value& value)
{
    constexpr bool LINE = LEAF_Z * LEAF_Y == 1;
    constexpr unsigned LEAVES = unsigned(S::LEAVES_Z) * S::LEAVES_Y * S::LEAVES_X;
    const int lane = threadIdx.x % WARP;
    #pragma unroll 1
    for (unsigned leaf = thread / WARP; leaf < LEAVES; leaf += count / WARP) {
        const Offset z = Offset(leaf / (S::LEAVES_Y * S::LEAVES_X)) * LEAF_Z, y = Offset(leaf / S::LEAVES_X % S::LEAVES_Y) * LEAF_Y;
        const Offset x = Offset(leaf % S::LEAVES_X) * LEAF_X + lane;
        real v[WARPS];
        #pragma unroll
        for (int k = 0; k < WARPS; ++k) {
            v[k] = value(EdgeOf<Linked>{{arguments, z + (LINE ? 0 : k / LEAF_Y), y + (LINE ? 0 : k % LEAF_Y), x + (LINE ? k * WARP : 0)}});
        }
        const real joined = join_leaf<S>(v);
        if (lane == 0) arguments.leaves[leaf] = joined;
    }
}

// Reduces a region to the leaves.
template <class S>
__device__ __forceinline__ void reduce_box(const Linked& arguments, unsigned thread, unsigned count)
{
    join_box<S>(arguments, thread, count, [](const EdgeOf<Linked>& edge) {
        return S::Computed::holds(edge.z, edge.y, edge.x) ? S::value(edge) : S::neutral();
    });
}

// Computes new values, and reduces what they give to the leaves.
template <class S>
__device__ __forceinline__ void reduce_made_box(const Linked& arguments, unsigned thread, unsigned count)
{
    join_box<S>(arguments, thread, count, [](const EdgeOf<Linked>& edge) { return value_made<S>(edge); });
}

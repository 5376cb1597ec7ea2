// A chain: stages that go over few values each, one after another in one launch of few blocks, which are a cluster where they
// are several. Between two stages all blocks wait for each other; or, where the first block alone does both, its threads do.
//
// The generated text below has the kernels. Each thread computes one index after another, and asks the boundary at each.

// The buffers of all stages by their slots, one stage after another, and what a launch of one stage has besides.
template <int COUNT>
struct ChainArguments {
    real* values[COUNT];
    real* scalars;
    real* leaves;
    Progress* progress;
    double* rows;
    double* exact;
    const real* matrices;
};

// The arguments of one stage. What an earlier stage has made no cache of constant data has seen.
struct Linked : Arguments {
    static constexpr bool CHANGING = true;
};

// Returns those of the stage whose slots are `USED` from `FIRST` on.
template <int FIRST, int USED, int COUNT>
__device__ __forceinline__ Linked linked(const ChainArguments<COUNT>& all)
{
    Linked own;
    #pragma unroll
    for (int slot = 0; slot < SLOTS; ++slot) own.values[slot] = slot < USED ? all.values[FIRST + slot] : nullptr;
    own.scalars = all.scalars;
    own.leaves = all.leaves;
    own.progress = all.progress;
    own.rows = all.rows;
    own.exact = all.exact;
    own.matrices = all.matrices;
    return own;
}

// Waits for all threads of the chain's blocks, or of this one.
template <bool ALL>
__device__ __forceinline__ void meet()
{
    if constexpr (ALL) cluster_barrier();
    else __syncthreads();
}

// Computes new values of a box, or takes them along, by `count` threads of which this is the one of number `thread`.
template <class S, class All>
__device__ __forceinline__ void update_box(const Linked& arguments, unsigned thread, unsigned count)
{
    constexpr unsigned Z = All::END_Z - All::LOW_Z, Y = All::END_Y - All::LOW_Y, X = All::END_X - All::LOW_X;
    #pragma unroll 1
    for (unsigned i = thread; i < Z * Y * X; i += count) {
        const EdgeOf<Linked> edge = {{arguments, All::LOW_Z + Offset(i / (Y * X)), All::LOW_Y + Offset(i / X % Y), All::LOW_X + Offset(i % X)}};
        if (S::Computed::holds(edge.z, edge.y, edge.x)) S::compute(edge);
        S::keep(edge);
    }
}

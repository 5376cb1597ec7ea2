// Directions of conjugate gradients, p = z + beta p, that are made where they are read. Owners publish z with the terms of the
// residual's sum, so nobody waits for p.
//
// OF_BLOCKS: each block has p in shared memory in all rows that it reads. OF_SLABS: the blocks of a slab exchange p, and make that
// of other slabs' rows in the memory that all of them read.

static_assert(RECOMPUTED == NOTHING || (SPACE == GRID && TURNS == 1 && SPREAD == 0));

// OF_BLOCKS: the direction by column.
struct Recomputed {
    unsigned base;

    __device__ __forceinline__ Recomputed(const Team& team) : base(PRODUCT == STENCIL ? team.own.base : 0)
    {
        static_assert(RECOMPUTED != OF_BLOCKS || PLACE[P] == SHARED);
    }

    __device__ __forceinline__ real operator[](unsigned column) const { return shared_at<real>(SHARED_AT[P])[column - base]; }
};

// OF_SLABS: where others publish z.
__device__ __forceinline__ real* residuals(const Team& team) { return team.a.exchanged + team.a.turn; }

// Publishes z of a row.
__device__ __forceinline__ void publish_residual(Team& team, unsigned i, real z)
{
    if constexpr (RECOMPUTED == OF_BLOCKS) team.publish_beyond(i, z);
    if constexpr (RECOMPUTED == OF_SLABS) team.give(residuals(team) + team.own.first + i, i, z);
}

// OF_BLOCKS: gives each of others' rows that the block reads what f(value, old) makes of what was published and of what was there.
template <class F>
__device__ __forceinline__ void remake(const Team& team, const F& f)
{
    const Share& own = team.own;
    real* const p = shared_at<real>(SHARED_AT[P]);
    const real* const published = team.a.exchanged + own.base;
    const unsigned before = own.first - own.base, others = unsigned(own.reach) - own.rows;
    for (unsigned n = threadIdx.x; n < others; n += THREADS) {
        const unsigned at = n < before ? n : n + own.rows;
        p[at] = f(published[at], p[at]);
    }
}

// Before the first product of a launch: takes p from its owners.
template <class V>
__device__ __forceinline__ void begin_remaking(Team& team, const V& p)
{
    team.rows([&](int k, unsigned i) {
        if constexpr (RECOMPUTED == OF_BLOCKS) team.publish_beyond(i, p.get(k, i));
        else team.publish(i, p.get(k, i));
    });
    team.meet();
    if constexpr (RECOMPUTED == OF_BLOCKS) {
        remake(team, [](real value, real) { return value; });
        __syncthreads();                             // others' rows are there
    }
}

// Before each later product: has p in all rows that are read, once its owners have made theirs.
template <class V>
__device__ __forceinline__ void go_on_remaking(Team& team, const V& p, real beta)
{
    if constexpr (RECOMPUTED == OF_BLOCKS) {
        remake(team, [&](real z, real old) { return z + beta * old; });
        __syncthreads();                             // p is made
    } else {
        const Arguments& a = team.a;
        real* const here = a.exchanged;
        team.rows([&](int k, unsigned i) { here[team.own.first + i] = p.get(k, i); });
        for (unsigned n = own_block() * THREADS + threadIdx.x; n < a.low_rows + a.high_rows; n += OWN * THREADS) {
            const unsigned row = n < a.low_rows ? a.low + n : a.high + (n - a.low_rows);
            here[row] = residuals(team)[row] + beta * here[row];
        }
        team.meet_own();
    }
}

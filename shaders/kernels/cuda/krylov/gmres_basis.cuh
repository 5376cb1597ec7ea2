// The basis of a cycle of GMRES, in device memory: RESTART vectors, and room for one more. A thread reads and
// writes its own rows alone, so no thread waits for another's.

struct Basis {
    real* home;                                      // of the block's first row
    unsigned long long stride;

    __device__ __forceinline__ Basis(const Team& team) : home(team.a.basis + team.own.first), stride(team.a.stride) {}

    __device__ __forceinline__ real* at(unsigned k) const { return home + k * stride; }

    // Divides w by its norm; the result is v_k.
    template <class VW>
    __device__ __forceinline__ void append(const Team& team, unsigned k, VW& w, real norm) const
    {
        real* const v = at(k);
        team.rows([&](int row, unsigned i) {
            const real value = w.get(row, i) / norm;
            w.set(row, i, value);
            v[i] = value;
        });
    }

    // Computes products[k] = (v_k, w) for k < count, and products[count] = (w, w): one reduction, with one
    // barrier, however many. The sums of passes 0 and 1 have places of their own.
    template <class VW>
    __device__ __forceinline__ void project(Team& team, const VW& w, unsigned count, unsigned pass, real* products) const
    {
        const unsigned warp = threadIdx.x / WARP;
        if constexpr (SPACE == CLUSTER) {
            real* const runs = shared_at<real>(PROJECTED_AT) + pass * PROJECTED * RUNS;     // [2][PROJECTED][RUNS]
            #pragma unroll 1
            for (unsigned first = 0; first <= count; first += SUMMED) leave_parts(team, w, first, count, runs + first * RUNS);
            team.meet();
            #pragma unroll 1
            for (unsigned k = warp; k <= count; k += WARPS) join_product(team, runs + k * RUNS, products[k]);
        } else {
            // [2][PROJECTED][SLOTS], after the part that other reductions use.
            real* const nodes = team.a.partials + (2 * REDUCED + pass * PROJECTED) * SLOTS;
            real* const parts = shared_at<real>(PARTS_AT);           // [GROUP][RUNS]
            const unsigned node = SPACE == GRID ? Team::node_of(team.a, 0) : 0;
            #pragma unroll 1
            for (unsigned begin = 0; begin <= count; begin += GROUP) {
                const unsigned end = begin + GROUP <= count ? begin + GROUP : count + 1;
                if (begin > 0) __syncthreads();                      // the parts before are read
                #pragma unroll 1
                for (unsigned first = begin; first < end; first += SUMMED) leave_parts(team, w, first, count, parts + (first - begin) * RUNS);
                __syncthreads();
                #pragma unroll 1
                for (unsigned k = begin + warp; k < end; k += WARPS) {
                    if constexpr (SPACE == GRID) Team::call_join_runs(team.a, team.own.first, team.own.rows, parts + (k - begin) * RUNS, node, nodes + k * SLOTS);
                    else join_product(team, parts + (k - begin) * RUNS, products[k]);
                }
            }
            if constexpr (SPACE == GRID) {
                team.meet();
                gather(team, nodes, count, products);
            }
        }
        __syncthreads();
    }

    // One warp, BLOCK or CLUSTER: joins the sums of all runs of a product.
    static __device__ __forceinline__ void join_product(const Team& team, const real* runs, real& product)
    {
        real sum[1];
        team.join_all_runs<1>(runs, sum);
        if (threadIdx.x % WARP == 0) product = sum[0];
    }

    // GRID: joins the nodes of each product's sum.
    __device__ __forceinline__ void gather(const Team& team, real* nodes, unsigned count, real* products) const
    {
        const unsigned lane = threadIdx.x % WARP;
        #pragma unroll 1
        for (unsigned k = threadIdx.x / WARP; k <= count; k += WARPS) {
            real groups = nothing(), sum[1];
            #pragma unroll 1
            for (unsigned group = 0; group < GROUPS; ++group) {
                unsigned chains[WINDOWS];
                team.chains_of(group, chains);
                team.join_windows<1>(chains, Counted{nodes + k * SLOTS}, sum);
                if (GROUPS > 1) sum[0] = __shfl_sync(0xffffffffu, sum[0], 0);
                if (lane == group) groups = sum[0];
            }
            const real all = GROUPS > 1 ? join_warp<SUM>(groups) : sum[0];
            if (lane == 0) products[k] = all;
        }
    }

    // Leaves the terms of SUMMED dot products from `first` on, joined over runs. Products beyond the basis are
    // (w, w), of which at most one is wanted.
    template <class VW>
    __device__ __forceinline__ void leave_parts(const Team& team, const VW& w, unsigned first, unsigned count, real* parts) const
    {
        team.leave_terms<SUMMED>(parts, [&](int k, unsigned i, real (&terms)[SUMMED]) {
            const real value = w.get(k, i);
            #pragma unroll
            for (int n = 0; n < SUMMED; ++n) terms[n] = (first + n < count ? at(first + n)[i] : value) * value;
        });
    }

    // Adds to w SIGN times the sum of c_k v_k, k < count in order.
    template <int SIGN, class VW>
    __device__ __forceinline__ void add(const Team& team, VW& w, const real* c, unsigned count) const
    {
        #pragma unroll 1
        for (unsigned first = 0; first < count; first += TOGETHER) {
            real factors[TOGETHER];
            #pragma unroll
            for (int n = 0; n < TOGETHER; ++n) factors[n] = first + n < count ? real(SIGN) * c[first + n] : real(0);
            team.rows([&](int row, unsigned i) {
                real terms[TOGETHER];
                #pragma unroll
                for (int n = 0; n < TOGETHER; ++n) terms[n] = first + n < count ? at(first + n)[i] : real(0);
                real value = w.get(row, i);
                #pragma unroll
                for (int n = 0; n < TOGETHER; ++n) value += factors[n] * terms[n];
                w.set(row, i, value);
            });
        }
    }
};

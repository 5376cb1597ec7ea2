// The basis of a cycle of GMRES, in device memory: RESTART vectors, and room for one more. A thread reads and
// writes its own rows alone, so no thread waits for another's.

constexpr int GROUP = 32;                            // dot products, by warps, in shared memory at once
// Vectors that one pass over the rows takes: enough loads in flight where few threads have others.
constexpr int TOGETHER = ROWS > 4 || (THREADS > 512 && sizeof(real) == 8) ? 4 : 8;
constexpr int PROJECTED = RESTART + 1;               // the most dot products of one reduction

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

    // Computes products[k] = (v_k, w) for k < count, and products[count] = (w, w): one reduction in a fixed
    // tree, with one barrier, however many. The sums of passes 0 and 1 have places of their own.
    template <class VW>
    __device__ __forceinline__ void project(Team& team, const VW& w, unsigned count, unsigned pass, real* products) const
    {
        const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        // Warps without rows have nothing to add.
        const unsigned active = team.own.rows < THREADS ? (team.own.rows + 31) / 32 : WARPS;
        real* const parts = shared_at<real>(PARTS_AT);               // [GROUP][WARPS]
        // [2][PROJECTED][BLOCKS], after the part that other reductions use.
        real* const sums = SPACE == GRID ? team.a.partials + 2 * REDUCED * BLOCKS : shared_at<real>(PROJECTED_AT);
        #pragma unroll 1
        for (unsigned begin = 0; begin <= count; begin += GROUP) {
            const unsigned end = begin + GROUP <= count ? begin + GROUP : count + 1;
            if (begin > 0) __syncthreads();                          // the parts before are read
            if (warp < active) {
                #pragma unroll 1
                for (unsigned first = begin; first < end; first += TOGETHER) leave_parts(team, w, first, count, parts + (first - begin) * WARPS);
            }
            __syncthreads();
            for (unsigned k = begin + warp; k < end; k += WARPS) {
                const real part[1] = {lane < active ? parts[(k - begin) * WARPS + lane] : real(0)};
                const real sum = warp_sum<1>(part);
                real* const place = sums + ((pass * PROJECTED + k) * BLOCKS + blockIdx.x);
                if constexpr (SPACE == CLUSTER) {
                    if (lane < BLOCKS) store_remote(place, lane, sum);
                } else if (lane == 0) {
                    if constexpr (SPACE == GRID) *place = sum;
                    else products[k] = sum;
                }
            }
        }
        team.meet();
        if constexpr (SPACE != BLOCK) {
            for (unsigned k = warp; k <= count; k += WARPS) {
                const real* const from = sums + (pass * PROJECTED + k) * BLOCKS;
                real part[1] = {real(0)};
                #pragma unroll
                for (int block = 0; block < BLOCKS; block += 32) {
                    if (block + lane >= BLOCKS) continue;
                    if constexpr (SPACE == GRID) part[0] += __ldcg(from + block + lane);
                    else part[0] += from[block + lane];
                }
                const real sum = warp_sum<1>(part);
                if (lane == 0) products[k] = sum;
            }
            __syncthreads();
        }
    }

    // Sums the warp's parts of TOGETHER dot products from `first` on. Products beyond the basis are (w, w),
    // of which at most one is wanted.
    template <class VW>
    __device__ __forceinline__ void leave_parts(const Team& team, const VW& w, unsigned first, unsigned count, real* parts) const
    {
        real sums[TOGETHER];
        #pragma unroll
        for (int n = 0; n < TOGETHER; ++n) sums[n] = real(0);
        team.rows([&](int row, unsigned i) {
            const real value = w.get(row, i);
            #pragma unroll
            for (int n = 0; n < TOGETHER; ++n) sums[n] += (first + n < count ? at(first + n)[i] : value) * value;
        });
        #pragma unroll
        for (int n = 0; n < TOGETHER; n += 4) {
            const real four[4] = {sums[n], sums[n + 1], sums[n + 2], sums[n + 3]};
            const real part = warp_sum<4>(four);
            const int lane = threadIdx.x % 32;
            if (lane % 8 == 0) parts[(n + lane / 8) * WARPS + threadIdx.x / 32] = part;
        }
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

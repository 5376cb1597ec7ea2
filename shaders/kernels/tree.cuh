// The tree of all reductions, of programs and of solvers: blocks of two values are joined, then blocks of
// four, and so on. What is missing counts as the neutral value.

constexpr int WARP = 32;

enum Reduction { LEAST, GREATEST, SUM };

// The sum's neutral value: -0 + x is x for every x.
__device__ __forceinline__ real nothing() { return real(-0.0); }

// NaN wins, and -0 is less than +0: of two zeros, the sum is +0 unless both are -0.
template <int BY>
__device__ __forceinline__ real join(real a, real b)
{
    if (BY == LEAST && a < b) return a;
    if (BY == LEAST && a > b) return b;
    if (BY == LEAST && a == b) return a == real(0) ? -(-a + -b) : a;
    if (BY == GREATEST && a > b) return a;
    if (BY == GREATEST && a < b) return b;
    if (BY == GREATEST && a == b && a != real(0)) return a;
    return a + b;
}

// Joins blocks of two of `COUNT` values that lie `STRIDE` apart, until the first is all of them.
template <int BY, int COUNT, int STRIDE>
__device__ __forceinline__ void join_all(real* v)
{
    #pragma unroll
    for (int step = 1; step < COUNT; step *= 2) {
        #pragma unroll
        for (int i = 0; i < COUNT; i += 2 * step) {
            v[i * STRIDE] = join<BY>(v[i * STRIDE], v[(i + step) * STRIDE]);
        }
    }
}

// Joins neighbouring blocks of `FROM` lanes, then larger ones of fewer than `TO`; each lane ends with its
// block's value.
template <int BY, int FROM = 1, int TO = WARP>
__device__ __forceinline__ real join_warp(real value)
{
    #pragma unroll
    for (int step = FROM; step < TO; step *= 2) {
        value = join<BY>(value, __shfl_xor_sync(0xffffffffu, value, step));
    }
    return value;
}

// Joins neighbouring blocks of `STEP` lanes of two rows at once: the lower block ends with the first row's
// value, the upper one with the second's.
template <int BY, int STEP>
__device__ __forceinline__ real fold(real first, real second)
{
    const bool upper = threadIdx.x & STEP;
    return join<BY>(upper ? second : first, __shfl_xor_sync(0xffffffffu, upper ? first : second, STEP));
}

// Joins neighbouring blocks of fewer than `ROWS` lanes, in K reductions at once, over `ROWS` rows of a warp's
// width each; row(n, v) gives the lane's values of row n. Lane l ends with its blocks of row l % `ROWS`.
template <int BY, int ROWS, int K, class F>
__device__ __forceinline__ void fold_rows(const F& row, int first, real (&v)[K])
{
    if constexpr (ROWS == 1) row(first, v);
    else {
        real other[K];
        fold_rows<BY, ROWS / 2>(row, first, v);
        fold_rows<BY, ROWS / 2>(row, first + ROWS / 2, other);
        #pragma unroll
        for (int k = 0; k < K; ++k) v[k] = fold<BY, ROWS / 2>(v[k], other[k]);
    }
}

// Joins the rows to one value for each of K reductions, in order of the index: lanes, then rows. Lane
// k * `ROWS` ends with the value of reduction k.
template <int BY, int ROWS, int K, class F>
__device__ __forceinline__ real join_rows(const F& row)
{
    static_assert(K <= 4 && ROWS <= 8, "a warp has no more lanes");
    real v[K];
    fold_rows<BY, ROWS>(row, 0, v);
    real all;
    if constexpr (K == 1) all = join_warp<BY, ROWS>(v[0]);
    else if constexpr (K == 2) all = join_warp<BY, 2 * ROWS>(fold<BY, ROWS>(v[0], v[1]));
    else {
        const real low = fold<BY, ROWS>(v[0], v[1]), high = fold<BY, ROWS>(v[2], v[K - 1]);
        all = join_warp<BY, 4 * ROWS>(fold<BY, 2 * ROWS>(low, high));
    }
    return join_warp<BY, 1, ROWS>(all);
}

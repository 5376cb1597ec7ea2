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

// Joins `COUNT` values, which `at(n)` loads, to the same result. Of many values few are loaded at a time, so that they fit in registers.
template <int BY, int COUNT, class F>
__device__ __forceinline__ real join_loaded(const F& at, int first = 0)
{
    constexpr int FEW = 16;
    if constexpr (COUNT <= FEW) {
        real v[COUNT];
        #pragma unroll
        for (int n = 0; n < COUNT; ++n) v[n] = at(first + n);
        join_all<BY, COUNT, 1>(v);
        return v[0];
    } else {
        const real low = join_loaded<BY, COUNT / 2>(at, first);
        return join<BY>(low, join_loaded<BY, COUNT / 2>(at, first + COUNT / 2));
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

// Joins blocks of `TO` lanes, in K reductions side by side; each lane ends with its block's values.
template <int BY, int TO, int K>
__device__ __forceinline__ void join_lanes(real (&values)[K])
{
    #pragma unroll
    for (int step = 1; step < TO; step *= 2) {
        #pragma unroll
        for (int k = 0; k < K; ++k) values[k] = join<BY>(values[k], __shfl_xor_sync(0xffffffffu, values[k], step));
    }
}

// Joins neighbouring blocks of `step` lanes of two rows at once: the lower block ends with the first row's
// value, the upper one with the second's.
template <int BY>
__device__ __forceinline__ real fold(real first, real second, int step)
{
    const bool upper = threadIdx.x & step;
    return join<BY>(upper ? second : first, __shfl_xor_sync(0xffffffffu, upper ? first : second, step));
}

// Joins `ROWS` rows of a warp's width each to one value for each of K reductions, in order of the index:
// lanes, then rows. `v` are the lane's values. Lane k * `ROWS` ends with the value of reduction k.
template <int BY, int ROWS, int K>
__device__ __forceinline__ real join_rows(real (&v)[ROWS][K])
{
    static_assert(K <= 4 && ROWS <= 8, "a warp has no more lanes");
    // Blocks of fewer than `ROWS` lanes: lane l ends with its blocks of row l % `ROWS`.
    #pragma unroll
    for (int step = 1; step < ROWS; step *= 2) {
        #pragma unroll
        for (int n = 0; n < ROWS; n += 2 * step) {
            #pragma unroll
            for (int k = 0; k < K; ++k) v[n][k] = fold<BY>(v[n][k], v[n + step][k], step);
        }
    }
    real all;
    if constexpr (K == 1) all = join_warp<BY, ROWS>(v[0][0]);
    else if constexpr (K == 2) all = join_warp<BY, 2 * ROWS>(fold<BY>(v[0][0], v[0][1], ROWS));
    else {
        const real low = fold<BY>(v[0][0], v[0][1], ROWS), high = fold<BY>(v[0][2], v[0][K - 1], ROWS);
        all = join_warp<BY, 4 * ROWS>(fold<BY>(low, high, 2 * ROWS));
    }
    return join_warp<BY, 1, ROWS>(all);
}

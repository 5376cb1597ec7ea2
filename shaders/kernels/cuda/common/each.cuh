// Applies a function to values, again and again: for tests of its bits and for its rate.

struct Each {
    const real* x;
    const real* y;
    real* to;
    unsigned long long count, repeats;
};

template <class F>
__device__ __forceinline__ void each_of(const Each& each, const F& function)
{
    const unsigned long long i = blockIdx.x * 256ull + threadIdx.x;
    if (i >= each.count) return;
    const real x = each.x[i], y = each.y[i];
    // No compiler knows that the factor is 0, which keeps every turn behind the one before.
    const real none = real(each.count >> 62);
    real value = function(x, y);
    // In f32 the loop's own instructions would count.
#pragma unroll (sizeof(real) == 4 ? 4 : 1)
    for (unsigned long long turn = 1; turn < each.repeats; ++turn) value = function(fma(value, none, x), y);
    each.to[i] = value;
}

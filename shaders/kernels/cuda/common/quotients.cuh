// Quotients and square roots of a formula. The compiler's own test their operands and branch, so that those of a formula wait for
// each other. Here they are computed without a branch, with the same bits where operands are of ordinary size; one test for
// the whole formula finds any other operand, and the formula is then computed again by the compiler's operations.
//
// With y = 1 / b rounded once (`reciprocal`), q = a y is within 1.5 units of the last place of a / b. The remainder q b - a is
// exact, and q - (q b - a) y rounds to the quotient (Markstein, 1990), if nothing on the way is subnormal or infinite.

// Whether a dividend or divisor is of a size at which the above may be off. Zero divided by anything of ordinary size is zero.
__device__ __forceinline__ bool is_zero(float a) { return a == 0.0f; }
__device__ __forceinline__ bool is_odd_dividend(float a)
{
    const float size = fabsf(a);
    return (size > 1.8446744073709552e19f) | ((size < 5.421010862427522e-20f) & !is_zero(a));    // 2^64, 2^-64
}
__device__ __forceinline__ bool is_odd_divisor(float b)
{
    const float size = fabsf(b);
    return (size > 1.152921504606847e18f) | (size < 8.673617379884035e-19f);    // 2^60, 2^-60
}
__device__ __forceinline__ float infinity_of(float zero) { return __uint_as_float(__float_as_uint(zero) | 0x7f800000u); }

// In f64 both are from 2^-256 to 2^256. The high word without its sign, less that of 2^-256, has then none of its two highest bits,
// so that those of all operands are joined by `or` and asked once.
constexpr unsigned ODD_BITS = 3u << 30;
__device__ __forceinline__ bool is_zero(double a) { return ((unsigned(__double2hiint(a)) << 1) | unsigned(__double2loint(a))) == 0; }
__device__ __forceinline__ unsigned size_of(double a) { return unsigned(__double2hiint(a)) * 2 - (767u << 21); }
__device__ __forceinline__ double infinity_of(double zero) { return __hiloint2double(__double2hiint(zero) | 0x7ff00000, 0); }

// The quotient from the divisor's reciprocal; that of zero has the product's sign.
template <class Number>
__device__ __forceinline__ Number quotient(Number a, Number b, Number y)
{
    const Number q = a * y, rest = fma(q, b, -a), corrected = fma(-rest, y, q);
    return is_zero(a) ? q : corrected;
}

// Square roots as the compiler computes them, without its test: a step of Newton's, whose remainder is exact, from y, which is nearly
// 1 / sqrt(a).
template <class Number>
__device__ __forceinline__ Number root_from(Number a, Number y)
{
    const Number s = a * y, corrected = fma(fma(-s, s, a), Number(0.5) * y, s);
    return is_zero(a) ? a : corrected;
}

__device__ __forceinline__ bool is_odd_square(float a) { return (__float_as_uint(a) - 0x0d000000u > 0x727fffffu) & (a != 0.0f); }
__device__ __forceinline__ float root(float a) { return root_from(a, near_inverse_root(a)); }

__device__ __forceinline__ bool is_odd_square(double a)
{
    const int high = __double2hiint(a);
    return (unsigned(high) - 0x3500000u >= 0x7ca00000u) & (((high & 0x7fffffff) | __double2loint(a)) != 0);
}
__device__ __forceinline__ double root(double a)
{
    // The approximation has a high word alone; the compiler's low word is this.
    const double near = __hiloint2double(__double2hiint(near_inverse_root(a)), __double2hiint(a) - 0x3500000);
    const double off = fma(a, -(near * near), 1.0);
    return root_from(a, fma(fma(off, 0.375, 0.5), off * near, near));
}

// How a formula computes its quotients and roots: all at once, ...
struct AtOnce {
    bool odd = false;        // whether any operand of f32 is, or any that a root is taken of
    unsigned sizes = 0;      // the sizes of those of f64

    __device__ __forceinline__ bool is_odd() const { return odd | ((sizes & ODD_BITS) != 0); }

    __device__ __forceinline__ void ask_dividend(float a) { odd |= is_odd_dividend(a); }
    __device__ __forceinline__ void ask_dividend(double a) { sizes |= is_zero(a) ? 0 : size_of(a); }
    __device__ __forceinline__ void ask_divisor(float b) { odd |= is_odd_divisor(b); }
    __device__ __forceinline__ void ask_divisor(double b) { sizes |= size_of(b); }

    template <class Number>
    __device__ __forceinline__ Number divide(Number a, Number b)
    {
        ask_dividend(a);
        ask_divisor(b);
        return quotient(a, b, reciprocal(b));
    }
    // By a number that a choice of the formula asks about: it may be zero in all cells in which another value is chosen.
    template <class Number>
    __device__ __forceinline__ Number divide_asked(Number a, Number b)
    {
        const bool by_zero = b == Number(0);
        const Number some = chosen(by_zero, Number(1), b);
        return chosen(by_zero, a * infinity_of(b), divide(a, some));
    }
    // By a constant, whose reciprocal is known.
    template <class Number>
    __device__ __forceinline__ Number divide(Number a, Number b, Number y)
    {
        ask_dividend(a);
        return quotient(a, b, y);
    }
    template <class Number>
    __device__ __forceinline__ Number root(Number a)
    {
        odd |= is_odd_square(a);
        return ::root(a);
    }
};

// ... or one by one.
struct OneByOne {
    template <class Number>
    __device__ __forceinline__ Number divide(Number a, Number b) { return a / b; }
    template <class Number>
    __device__ __forceinline__ Number divide_asked(Number a, Number b) { return a / b; }
    template <class Number>
    __device__ __forceinline__ Number divide(Number a, Number b, Number) { return a / b; }
    template <class Number>
    __device__ __forceinline__ Number root(Number a) { return sqrt(a); }
};

// The values of a formula.
template <int COUNT>
struct Values {
    real v[COUNT];
};

// Evaluates a formula at a place. What it has loaded is loaded again for the second time: nothing has to stay in registers for that.
template <class View, class Formula>
__device__ __forceinline__ auto evaluate(const View& u, const Formula& formula)
{
    AtOnce at_once;
    auto values = formula(u, at_once);
    if (__builtin_expect(at_once.is_odd(), false)) {
        OneByOne one_by_one;
        View anew = u;
        anew.forget();
        values = formula(anew, one_by_one);
    }
    return values;
}

// The operations of elementary functions' formulas, each exact or rounded once; `real` is either type.

__device__ __forceinline__ float residue(float a, float b, float product) { return fma(a, b, -product); }
__device__ __forceinline__ double residue(double a, double b, double product) { return fma(a, b, -product); }

// x - a * b where that is a number of the type.
__device__ __forceinline__ float minus_exactly(float x, float a, float b) { return fma(-a, b, x); }
__device__ __forceinline__ double minus_exactly(double x, double a, double b) { return fma(-a, b, x); }

// The whole number nearest to a product, as what is added to 1.5 * 2^23, or 1.5 * 2^52: its low bits are the number.
__device__ __forceinline__ float anchored(float x, float factor) { return fma(x, factor, 12582912.0f); }
__device__ __forceinline__ double anchored(double x, double factor) { return fma(x, factor, 6755399441055744.0); }

__device__ __forceinline__ float whole(float anchor) { return anchor - 12582912.0f; }
__device__ __forceinline__ double whole(double anchor) { return anchor - 6755399441055744.0; }

__device__ __forceinline__ bool has_bit(float anchor, unsigned bit) { return __float_as_uint(anchor) >> bit & 1u; }
__device__ __forceinline__ bool has_bit(double anchor, unsigned bit) { return unsigned(__double2loint(anchor)) >> bit & 1u; }

// x, or -x where the whole number of an anchor has a bit.
__device__ __forceinline__ float negated(float x, float anchor, unsigned bit)
{
    return __uint_as_float(__float_as_uint(x) ^ (__float_as_uint(anchor) << (31u - bit) & 0x80000000u));
}

__device__ __forceinline__ double negated(double x, double anchor, unsigned bit)
{
    const unsigned sign = unsigned(__double2loint(anchor)) << (31u - bit) & 0x80000000u;
    return __hiloint2double(__double2hiint(x) ^ sign, __double2loint(x));
}

// x * 2^n and x * 2^-n of a normal number and an anchor of n, where the result is normal too.
__device__ __forceinline__ float raised(float x, float anchor)
{
    return __uint_as_float(__float_as_uint(x) + (__float_as_uint(anchor) << 23));
}

__device__ __forceinline__ double raised(double x, double anchor)
{
    return __hiloint2double(__double2hiint(x) + (unsigned(__double2loint(anchor)) << 20), __double2loint(x));
}

__device__ __forceinline__ float lowered(float x, float anchor)
{
    return __uint_as_float(__float_as_uint(x) - (__float_as_uint(anchor) << 23));
}

__device__ __forceinline__ double lowered(double x, double anchor)
{
    return __hiloint2double(__double2hiint(x) - (unsigned(__double2loint(anchor)) << 20), __double2loint(x));
}

// m, -n and 2^-n of a positive normal number m * 2^n: the bits above those of the lowest m are n and where m lies. Of f64
// the words are the high ones.
__device__ __forceinline__ float significand(float x, unsigned lowest)
{
    return __uint_as_float(((__float_as_uint(x) - lowest) & 0x7fffffu) + lowest);
}

__device__ __forceinline__ double significand(double x, unsigned lowest)
{
    return __hiloint2double(((unsigned(__double2hiint(x)) - lowest) & 0xfffffu) + lowest, __double2loint(x));
}

__device__ __forceinline__ float inverse_exponent(float x, unsigned lowest)
{
    return 12583039.0f - __uint_as_float(0x4b400000u + ((__float_as_uint(x) - lowest + 0x3f800000u) >> 23));
}

__device__ __forceinline__ double inverse_exponent(double x, unsigned lowest)
{
    return 4503599627371519.0 - __hiloint2double(0x43300000, (unsigned(__double2hiint(x)) - lowest + 0x3ff00000u) >> 20);
}

__device__ __forceinline__ float inverse_power(float x, unsigned lowest)
{
    return __uint_as_float(0x3f800000u - ((__float_as_uint(x) - lowest) & 0xff800000u));
}

__device__ __forceinline__ double inverse_power(double x, unsigned lowest)
{
    return __hiloint2double(0x3ff00000u - ((unsigned(__double2hiint(x)) - lowest) & 0xfff00000u), 0);
}

// 1 / x where both are normal, rounded once: what the compiler makes of a division, without its test for other numbers. The
// approximation's remainder is exact, so that the last sum is rounded as the quotient would be (Markstein).
__device__ __forceinline__ float reciprocal(float x)
{
    const float near = near_reciprocal(x);
    return fma(near, -fma(x, near, -1.0f), near);
}

__device__ __forceinline__ double reciprocal(double x)
{
    // The approximation has a high word alone; the compiler's low word is this.
    double near = __hiloint2double(__double2hiint(near_reciprocal(x)), __double2hiint(x) + 0x300402);
    const double off = fma(-x, near, 1.0);
    near = fma(near, fma(off, off, off), near);
    return fma(near, fma(-x, near, 1.0), near);
}

// x^(-1/3) of a normal number within 4 hundredths, with its sign: the bits of a number are about its logarithm.
__device__ __forceinline__ unsigned near_inverse_cube_root(unsigned high, unsigned one)
{
    return one - __umulhi(high & 0x7fffffffu, 0x55555556u) | high & 0x80000000u;
}

__device__ __forceinline__ float near_inverse_cube_root(float x)
{
    return __uint_as_float(near_inverse_cube_root(__float_as_uint(x), 0x54a1f800u));
}

__device__ __forceinline__ double near_inverse_cube_root(double x)
{
    return __hiloint2double(near_inverse_cube_root(unsigned(__double2hiint(x)), 0x553ee900u), 0);
}

// Conditions that NaN fulfils, and in f64 from 2^1017 on what compares high words: as f32, which have the same order.
__device__ __forceinline__ bool is_beyond(float x, float limit) { return !(fabs(x) < limit); }
__device__ __forceinline__ bool is_within(float x, float limit) { return !(fabs(x) >= limit); }
__device__ __forceinline__ bool is_outside(float x, float low, float high) { return !(low < x & x < high); }

__device__ __forceinline__ float high_word(double x) { return __int_as_float(__double2hiint(x)); }
__device__ __forceinline__ bool is_beyond(double x, double limit) { return is_beyond(high_word(x), high_word(limit)); }
__device__ __forceinline__ bool is_within(double x, double limit) { return !(fabs(x) >= limit); }
__device__ __forceinline__ bool is_outside(double x, double low, double high)
{
    return is_outside(high_word(x), high_word(low), high_word(high));
}

// The operations of elementary functions' formulas, each exact or rounded once; `real` is either type.

__device__ __forceinline__ float residue(float a, float b, float product) { return fma(a, b, -product); }
__device__ __forceinline__ double residue(double a, double b, double product) { return fma(a, b, -product); }

// The whole number nearest to a product: what is added to 1.5 * 2^23, or 1.5 * 2^52, is rounded to one.
__device__ __forceinline__ float nearest(float x, float factor) { return fma(x, factor, 12582912.0f) - 12582912.0f; }
__device__ __forceinline__ double nearest(double x, double factor) { return fma(x, factor, 6755399441055744.0) - 6755399441055744.0; }

// x * 2^n of a normal number, where the result is one too: the low bits of the sum are n.
__device__ __forceinline__ float shifted(float x, float n)
{
    return __uint_as_float(__float_as_uint(x) + (__float_as_uint(n + 12582912.0f) << 23));
}

__device__ __forceinline__ double shifted(double x, double n)
{
    const unsigned high = __double2hiint(x), by = __double2loint(n + 6755399441055744.0);
    return __hiloint2double(high + (by << 20), __double2loint(x));
}

// m and n of a positive normal number m * 2^n: the bits above those of the lowest m are n and where m lies.
__device__ __forceinline__ float significand(float x)
{
    return __uint_as_float(((__float_as_uint(x) - 0x3f2aaaabu) & 0x7fffffu) + 0x3f2aaaabu);
}

__device__ __forceinline__ double significand(double x)
{
    const unsigned high = __double2hiint(x);
    return __hiloint2double(((high - 0x3fe6a09eu) & 0xfffffu) + 0x3fe6a09eu, __double2loint(x));
}

__device__ __forceinline__ float exponent(float x)
{
    const unsigned biased = (__float_as_uint(x) - 0x3f2aaaabu + 0x3f800000u) >> 23;
    return __uint_as_float(0x4b400000u + biased) - 12583039.0f;
}

__device__ __forceinline__ double exponent(double x)
{
    const unsigned biased = (unsigned(__double2hiint(x)) - 0x3fe6a09eu + 0x3ff00000u) >> 20;
    return __hiloint2double(0x43300000, biased) - 4503599627371519.0;
}

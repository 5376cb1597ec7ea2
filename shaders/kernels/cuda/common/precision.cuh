
// Types of stored values narrower than those that are computed with, and how numbers are rounded to them: to nearest, ties to even.
// An f64 is rounded to f32 first.

struct Half { unsigned short bits; };
struct Bfloat { unsigned short bits; };

__device__ __forceinline__ unsigned short bfloat_bits(float value)
{
    const unsigned bits = __float_as_uint(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (unsigned short)(bits >> 16 | 0x40u);
    return (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

__device__ __forceinline__ float value_of(Half stored) { return float_of_half(stored.bits); }
__device__ __forceinline__ float value_of(Bfloat stored) { return __uint_as_float(unsigned(stored.bits) << 16); }

template <class Real>
__device__ __forceinline__ Real round_f32(Real value) { return Real(float(value)); }
template <class Real>
__device__ __forceinline__ Real round_f16(Real value) { return Real(float_of_half(half_bits(float(value)))); }
template <class Real>
__device__ __forceinline__ Real round_bf16(Real value) { return Real(value_of(Bfloat{bfloat_bits(float(value))})); }

// Stores a value, which is one of the stored type.
template <class Stored, class Real>
__device__ __forceinline__ void put(Stored* to, Real value) { *to = Stored(value); }
template <class Real>
__device__ __forceinline__ void put(Half* to, Real value) { to->bits = half_bits(float(value)); }
template <class Real>
__device__ __forceinline__ void put(Bfloat* to, Real value) { to->bits = bfloat_bits(float(value)); }

// The words of CUDA that the kernels use, for a C++ compiler.

#include <bit>
#include <cmath>

#define __CUDA_ARCH__ ARCHITECTURE
#define __device__
#define __host__
#define __global__
#define __shared__
#define __constant__ static const
#define __grid_constant__
#define __forceinline__ inline
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)

using std::copysign;
using std::fabs;
using std::fma;
using std::sqrt;

inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline unsigned __double2hiint(double x) { return std::bit_cast<unsigned long long>(x) >> 32; }
inline unsigned __double2loint(double x) { return std::bit_cast<unsigned long long>(x); }
inline double __hiloint2double(unsigned high, unsigned low) { return std::bit_cast<double>((unsigned long long)high << 32 | low); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned long long)a * b >> 32; }

namespace emulated {
// 1 / x as a device approximates it: one of the two numbers around it, of f64 in the high word alone. Of a significand of
// ones the nearer, without which no step of Newton's is rounded right.
template <class Bits, class Real>
Real near_reciprocal(Real x)
{
    const Real nearest = 1 / x;
    Bits bits = std::bit_cast<Bits>(nearest);
    const Bits of = std::bit_cast<Bits>(x), ones = sizeof(Real) == 4 ? 0x7fffff : ~Bits(0) >> 12;
    const Real off = fma(nearest, x, Real(-1));
    if (of % 3 == 0 && (of & ones) != ones && off != 0) bits += (off < 0) == (x > 0) ? 1 : -1;
    if (sizeof(Real) == 8) bits &= ~Bits(0) << 16 << 16;
    return std::bit_cast<Real>(bits);
}
}

inline float __int_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline double __longlong_as_double(unsigned long long x) { return std::bit_cast<double>(x); }

struct Dimension { int x; };
Dimension threadIdx, blockIdx;           // of the lane that runs

struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) double2 { double x, y; };

inline void __syncwarp() { emulated::meet_warp("__syncwarp"); }
inline void __syncthreads() { emulated::meet_block("__syncthreads"); }

// Kernels name all lanes of the warp in the mask. A lane whose source is not in its segment gets its own
// value.
template <class T>
T __shfl_up_sync(unsigned, T value, int by, int width = emulated::WARP)
{
    const int lane = threadIdx.x % width;
    return emulated::exchange(value, emulated::current - (lane >= by ? by : 0), "__shfl_up_sync");
}

template <class T>
T __shfl_down_sync(unsigned, T value, int by, int width = emulated::WARP)
{
    const int lane = threadIdx.x % width;
    return emulated::exchange(value, emulated::current + (lane + by < width ? by : 0), "__shfl_down_sync");
}

template <class T>
T __shfl_sync(unsigned, T value, int lane)
{
    const int first = emulated::current / emulated::WARP * emulated::WARP;
    return emulated::exchange(value, first + lane, "__shfl_sync");
}

template <class T>
T __shfl_xor_sync(unsigned, T value, int by)
{
    return emulated::exchange(value, emulated::current ^ by, "__shfl_xor_sync");
}

inline bool __any_sync(unsigned, bool vote)
{
    const int first = emulated::current / emulated::WARP * emulated::WARP;
    emulated::lanes[emulated::current].shown[0] = vote;
    emulated::meet_warp("__any_sync");
    bool any = false;
    for (int lane = first; lane < first + emulated::WARP; ++lane) any = any || emulated::lanes[lane].shown[0];
    emulated::meet_warp("__any_sync");
    return any;
}

inline bool __all_sync(unsigned mask, bool vote) { return !__any_sync(mask, !vote); }

template <class T> T __ldcg(const T* from) { return *from; }
template <class T> void __stcg(T* to, T value) { *to = value; }

inline void __threadfence() {}
inline unsigned atomicAdd(unsigned* to, unsigned value)
{
    const unsigned before = *to;
    *to += value;
    return before;
}

// The words of CUDA that the kernels use, for a C++ compiler.

#pragma once

#include "lanes.h"

#define __CUDA_ARCH__ ARCHITECTURE
#define __device__
#define __host__
#define __global__
#define __constant__ static const
#define __grid_constant__
#define __forceinline__ inline
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __noinline__
#define memcpy emulated::copy_bytes

using std::copysign;
using std::fabs;
using std::fma;
using std::max;
using std::min;
using std::sqrt;

inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline unsigned __double2hiint(double x) { return std::bit_cast<unsigned long long>(x) >> 32; }
inline unsigned __double2loint(double x) { return std::bit_cast<unsigned long long>(x); }
inline double __hiloint2double(unsigned high, unsigned low) { return std::bit_cast<double>((unsigned long long)high << 32 | low); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned long long)a * b >> 32; }

inline float __int_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline double __longlong_as_double(unsigned long long x) { return std::bit_cast<double>(x); }

struct Dimension { int x; };
Dimension threadIdx, blockIdx;           // of the lane that runs
Dimension gridDim = {BLOCKS_LAUNCHED};

struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(16) double2 { double x, y; };

// What the lanes have stored is then seen by all that meet.
inline void __syncwarp()
{
    emulated::publish(emulated::OF_WARP);
    emulated::meet_warp("__syncwarp");
}

inline void __syncthreads()
{
    emulated::publish(emulated::OF_BLOCK);
    emulated::meet_block("__syncthreads");
}

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

inline unsigned __ballot_sync(unsigned, bool vote)
{
    const int first = emulated::current / emulated::WARP * emulated::WARP;
    emulated::lanes[emulated::current].shown[0] = vote;
    emulated::meet_warp("a vote");
    unsigned votes = 0;
    for (int lane = 0; lane < emulated::WARP; ++lane) votes |= unsigned(emulated::lanes[first + lane].shown[0] != 0) << lane;
    emulated::meet_warp("a vote");
    return votes;
}

inline bool __any_sync(unsigned mask, bool vote) { return __ballot_sync(mask, vote) != 0; }
inline bool __all_sync(unsigned mask, bool vote) { return !__any_sync(mask, !vote); }

inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __clzll(long long bits) { return bits == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(bits)); }

template <class T> T __ldcg(const T* from) { return *from; }
template <class T> T __ldcs(const T* from) { return *from; }
template <class T> void __stcg(T* to, T value) { *to = value; }

#ifdef CONSTANT_CACHE
namespace emulated {
// What the cache of constant data has: it does not see what is stored during a launch.
template <class T>
std::map<const T*, T> cached[BLOCKS_LAUNCHED];
}

template <class T>
T __ldg(const T* from)
{
    return emulated::cached<T>[emulated::block()].try_emplace(from, *from).first->second;
}
#else
template <class T> T __ldg(const T* from) { return *from; }
#endif

inline void __threadfence() { emulated::release(false); }
inline unsigned atomicAdd(unsigned* to, unsigned value) { return emulated::add_in_memory(to, value); }
inline unsigned long long atomicAdd(unsigned long long* to, unsigned long long value) { return emulated::add_in_memory(to, value); }

// Waits are bounded here by the turns of all lanes, not by time.
inline long long clock64() { return 0; }

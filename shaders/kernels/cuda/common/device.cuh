// What kernels ask of the device beyond CUDA C++: PTX, which is nowhere else in their text, and shared memory. The emulator,
// which defines ABIDE_EMULATED, has the same functions for a CPU: emulator/include/device.h.

#ifndef ABIDE_EMULATED

// Shared memory whose size the launch gives, and a variable of the block.
#define DYNAMIC_SHARED extern __shared__ __align__(16) unsigned char shared[]
#define SHARED_VARIABLE(type, name) __shared__ type name

// Numbers in device memory by which blocks wait for each other. Who loads a number sees what was stored before it was
// stored or added to.
__device__ __forceinline__ unsigned load_acquire(const unsigned* p)
{
    unsigned v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

__device__ __forceinline__ void store_release(unsigned* p, unsigned v)
{
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

__device__ __forceinline__ void add_release(unsigned* p, unsigned v)
{
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

// Adds to a number, and returns what it was. Who finds what others have added sees what they stored before.
__device__ __forceinline__ unsigned long long add_in_turn(unsigned long long* p, unsigned long long v)
{
    unsigned long long before;
    asm volatile("atom.acq_rel.gpu.global.add.u64 %0, [%1], %2;" : "=l"(before) : "l"(p), "l"(v) : "memory");
    return before;
}

// Adds the products of a warp's 16 by 4 and 4 by 8 values to its 16 by 8 results, each by a chain of fused multiply-adds in ascending
// order. A lane has the left values of its fourth and of the one 8 behind, at its place there, the right one of its place and its
// fourth, and two neighbours of each of its rows.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
constexpr bool HAS_PRODUCTS = true;
__device__ __forceinline__ void add_products(double (&low)[2], double (&high)[2], const double (&left)[2], double right)
{
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+d"(low[0]), "+d"(low[1]), "+d"(high[0]), "+d"(high[1])
        : "d"(left[0]), "d"(left[1]), "d"(right));
#else
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};" : "+d"(low[0]), "+d"(low[1]) : "d"(left[0]), "d"(right));
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};" : "+d"(high[0]), "+d"(high[1]) : "d"(left[1]), "d"(right));
#endif
}
#else
constexpr bool HAS_PRODUCTS = false;
__device__ __forceinline__ void add_products(double (&)[2], double (&)[2], const double (&)[2], double) {}
#endif

// Between kernels of several devices, which see each other's memory: orders what the block has stored into any device's
// memory before what this thread stores next.
__device__ __forceinline__ void fence_devices() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

// Loads a number that blocks of other devices change; what they stored before is then there.
__device__ __forceinline__ unsigned load_devices(const unsigned* p)
{
    unsigned v;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

__device__ __forceinline__ void store_devices(unsigned* p, unsigned v)
{
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

// Adds to a number of any device; orders nothing.
__device__ __forceinline__ void add_devices(unsigned* p, unsigned v)
{
    asm volatile("red.relaxed.sys.global.add.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

// Store and load one or two words. Each word is stored and loaded as a whole; both words together are not.
template <int N>
__device__ __forceinline__ void store_words(unsigned long long* to, const unsigned long long (&word)[N])
{
    if constexpr (N == 2) asm volatile("st.relaxed.gpu.global.v2.b64 [%0], {%1, %2};" ::"l"(to), "l"(word[0]), "l"(word[N - 1]) : "memory");
    else asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(to), "l"(word[0]) : "memory");
}

template <int N>
__device__ __forceinline__ void load_words(unsigned long long (&word)[N], const unsigned long long* from)
{
    if constexpr (N == 2) asm volatile("ld.relaxed.gpu.global.v2.b64 {%0, %1}, [%2];" : "=l"(word[0]), "=l"(word[N - 1]) : "l"(from) : "memory");
    else asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(word[0]) : "l"(from) : "memory");
}

template <int N>
__device__ __forceinline__ void store_words_devices(unsigned long long* to, const unsigned long long (&word)[N])
{
    if constexpr (N == 2) asm volatile("st.relaxed.sys.global.v2.b64 [%0], {%1, %2};" ::"l"(to), "l"(word[0]), "l"(word[N - 1]) : "memory");
    else asm volatile("st.relaxed.sys.global.b64 [%0], %1;" ::"l"(to), "l"(word[0]) : "memory");
}

template <int N>
__device__ __forceinline__ void load_words_devices(unsigned long long (&word)[N], const unsigned long long* from)
{
    if constexpr (N == 2) asm volatile("ld.relaxed.sys.global.v2.b64 {%0, %1}, [%2];" : "=l"(word[0]), "=l"(word[N - 1]) : "l"(from) : "memory");
    else asm volatile("ld.relaxed.sys.global.b64 %0, [%1];" : "=l"(word[0]) : "l"(from) : "memory");
}

// The bits of a binary16 nearest to a number, ties to even, and the number of such bits.
__device__ __forceinline__ unsigned short half_bits(float value)
{
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

__device__ __forceinline__ float float_of_half(unsigned short bits)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}

// Asks for a value of device memory, which a later turn will read, to come into the last-level cache.
template <class T>
__device__ __forceinline__ void prefetch(const T* from)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(from));
}

// Copies from device memory to shared memory that go on while the thread does something else: in groups, of which all but
// the last N are waited for.
template <int BYTES>
__device__ __forceinline__ void copy_to_shared(void* to, const void* from)
{
    const unsigned address = unsigned(__cvta_generic_to_shared(to));
    if constexpr (BYTES == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
    else asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(from), "n"(BYTES) : "memory");
}

// The same where it is asked for; the addresses are computed in any case, for all copies together.
template <int BYTES>
__device__ __forceinline__ void copy_to_shared_if(bool asked, void* to, const void* from)
{
    const unsigned address = unsigned(__cvta_generic_to_shared(to));
    if constexpr (BYTES == 16) asm volatile("{.reg .pred p; setp.ne.s32 p, %2, 0; @p cp.async.cg.shared.global [%0], [%1], 16;}" ::"r"(address), "l"(from), "r"(int(asked)) : "memory");
    else asm volatile("{.reg .pred p; setp.ne.s32 p, %3, 0; @p cp.async.ca.shared.global [%0], [%1], %2;}" ::"r"(address), "l"(from), "n"(BYTES), "r"(int(asked)) : "memory");
}

__device__ __forceinline__ void copies_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int N>
__device__ __forceinline__ void copies_await() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

// Waits for all threads of the cluster. All of them then see what each wrote before, in distributed shared
// memory too.
__device__ __forceinline__ void cluster_barrier()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Writes into the shared memory of another block of the cluster, at the place of `at` in this one's.
template <class T>
__device__ __forceinline__ void store_remote(T* at, unsigned rank, T value)
{
    const unsigned address = unsigned(__cvta_generic_to_shared(at));
    unsigned remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(rank));
    if constexpr (sizeof(T) == 8) asm volatile("st.shared::cluster.f64 [%0], %1;" ::"r"(remote), "d"(value) : "memory");
    else asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(remote), "f"(value) : "memory");
}

// Returns a number of which the compiler knows nothing.
__device__ __forceinline__ int opaque(int number)
{
    asm volatile("" : "+r"(number));
    return number;
}

__device__ __forceinline__ long long opaque(long long number)
{
    asm volatile("" : "+l"(number));
    return number;
}

// Returns the number as the compiler has computed it, which it then adds nothing to: constants beside it go into addresses.
__device__ __forceinline__ int whole(int number)
{
    asm("" : "+r"(number));
    return number;
}

__device__ __forceinline__ long long whole(long long number)
{
    asm("" : "+l"(number));
    return number;
}

// condition ? yes : no, both of which are computed in any case.
__device__ __forceinline__ float chosen(bool condition, float yes, float no)
{
    float either;
    asm("{.reg .pred p; setp.ne.s32 p, %3, 0; selp.f32 %0, %1, %2, p;}" : "=f"(either) : "f"(yes), "f"(no), "r"(int(condition)));
    return either;
}

__device__ __forceinline__ double chosen(bool condition, double yes, double no)
{
    double either;
    asm("{.reg .pred p; setp.ne.s32 p, %3, 0; selp.f64 %0, %1, %2, p;}" : "=d"(either) : "d"(yes), "d"(no), "r"(int(condition)));
    return either;
}

// 1 / x of a normal number, nearly: in f64 the high word alone.
__device__ __forceinline__ float near_reciprocal(float x)
{
    float near;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(near) : "f"(x));
    return near;
}

__device__ __forceinline__ double near_reciprocal(double x)
{
    double near;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(near) : "d"(x));
    return near;
}

// 1 / sqrt(x) of a normal number, nearly: in f64 the high word alone.
__device__ __forceinline__ float near_inverse_root(float x)
{
    float near;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(near) : "f"(x));
    return near;
}

__device__ __forceinline__ double near_inverse_root(double x)
{
    double near;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(near) : "d"(x));
    return near;
}

__device__ __forceinline__ unsigned long long nanoseconds()
{
    unsigned long long v;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(v));
    return v;
}

__device__ __forceinline__ void end_thread() { asm volatile("exit;"); }

#endif

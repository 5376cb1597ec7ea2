// The functions of shaders/kernels/cuda/common/device.cuh for a CPU: what they do to the memory, and where other lanes may
// come between.
#pragma once

#include "cuda.h"

#define ABIDE_EMULATED

#define DYNAMIC_SHARED unsigned char* const shared = emulated::shared_memory()
#define SHARED_VARIABLE(type, name) auto& name = emulated::shared_variable<type>([] {})

namespace emulated {

// Returns the block's variable of a declaration, whose lambda no other declaration has.
template <class T, class Declaration>
T& shared_variable(Declaration)
{
    static T all[BLOCKS_LAUNCHED];
    return all[block()];
}

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

// 1 / sqrt(x) as a device approximates it: one of the numbers beside it, of f64 in the high word alone.
template <class Bits, class Real>
Real near_inverse_root(Real x)
{
    Bits bits = std::bit_cast<Bits>(1 / std::sqrt(x));
    const Bits of = std::bit_cast<Bits>(x);
    if (of % 3 == 0 && of << 1 != 0) bits += of % 2 == 0 ? 1 : -1;
    if (sizeof(Real) == 8) bits &= ~Bits(0) << 16 << 16;
    return std::bit_cast<Real>(bits);
}

template <class T>
T polled(const T* from)
{
    pause();
    return *from;
}

// A store that is seen no later than what was stored before.
inline void store_released(unsigned* to, unsigned value, bool devices)
{
    release(devices);
    *to = value;
    release(devices);
}

inline void add_released(unsigned* to, unsigned value)
{
    release(false);
    add_in_memory(to, value);
}

}  // namespace emulated

// The bits of a binary16 nearest to a number, ties to even: rounded where its last bit stands, below 2^-14 at 2^-24.
inline unsigned short half_bits(float value)
{
    const unsigned bits = std::bit_cast<unsigned>(value), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return sign | 0x7e00u;
    if (magnitude >= 0x477ff000u) return sign | 0x7c00u;
    if (magnitude < 0x38800000u) return sign | unsigned(std::nearbyint(std::ldexp(std::bit_cast<float>(magnitude), 24)));
    return sign | ((magnitude + 0xfffu + (magnitude >> 13 & 1u) - 0x38000000u) >> 13);
}

inline float float_of_half(unsigned short bits)
{
    const unsigned exponent = bits >> 10 & 31u, rest = bits & 0x3ffu;
    const float magnitude = exponent == 31 ? (rest ? NAN : INFINITY) : exponent == 0 ? std::ldexp(float(rest), -24) : std::ldexp(float(rest | 0x400u), int(exponent) - 25);
    return bits & 0x8000u ? -magnitude : magnitude;
}

inline unsigned load_acquire(const unsigned* p) { return emulated::polled(p); }
inline void store_release(unsigned* p, unsigned v) { emulated::store_released(p, v, false); }
inline void add_release(unsigned* p, unsigned v) { emulated::add_released(p, v); }

inline unsigned long long add_in_turn(unsigned long long* p, unsigned long long v)
{
    emulated::release(false);
    return emulated::add_in_memory(p, v);
}

inline void fence_devices()
{
    emulated::release(true);
    emulated::sometimes();
}

inline unsigned load_devices(const unsigned* p) { return emulated::polled(p); }
inline void store_devices(unsigned* p, unsigned v) { emulated::store_released(p, v, true); }
inline void add_devices(unsigned* p, unsigned v) { emulated::add_in_memory(p, v); }

// The words of an access come and go one by one.
template <int N>
void store_words(unsigned long long* to, const unsigned long long (&word)[N])
{
    emulated::aligned(to, 8 * N);
    for (int i = 0; i < N; ++i) {
        if (i > 0) emulated::sometimes();
        to[i] = word[i];
    }
}

template <int N>
void load_words(unsigned long long (&word)[N], const unsigned long long* from)
{
    for (int i = 0; i < N; ++i) {
        emulated::sometimes();
        word[i] = from[i];
    }
}

template <int N>
void store_words_devices(unsigned long long* to, const unsigned long long (&word)[N]) { store_words(to, word); }

template <int N>
void load_words_devices(unsigned long long (&word)[N], const unsigned long long* from)
{
    emulated::pause();
    load_words(word, from);
}

template <class T>
void prefetch(const T* from) { emulated::prefetched(from); }

template <int BYTES>
void copy_to_shared(void* to, const void* from) { emulated::copy(to, from, BYTES); }

template <int BYTES>
void copy_to_shared_if(bool asked, void* to, const void* from)
{
    if (asked) copy_to_shared<BYTES>(to, from);
}
inline void copies_commit() { emulated::copies_commit(); }
template <int N>
void copies_await() { emulated::copies_await(N); }

// The launch is one cluster.
inline void cluster_barrier()
{
    emulated::release(true);
    emulated::meet_cluster("cluster_barrier");
}

template <class T>
void store_remote(T* at, unsigned rank, T value) { *emulated::remote(at, rank) = value; }

constexpr bool HAS_PRODUCTS = ARCHITECTURE >= 800;
inline void add_products(double (&low)[2], double (&high)[2], const double (&left)[2], double right)
{
    const int lane = threadIdx.x % emulated::WARP, row = lane / 4 * 4, column = lane % 4 * 8;
    for (int k = 0; k < 4; ++k) {
        const double weights[] = {__shfl_sync(~0u, left[0], row + k), __shfl_sync(~0u, left[1], row + k)};
        for (int e = 0; e < 2; ++e) {
            const double value = __shfl_sync(~0u, right, column + 4 * e + k);
            low[e] = fma(weights[0], value, low[e]);
            high[e] = fma(weights[1], value, high[e]);
        }
    }
}

inline int opaque(int number) { return number; }
inline int whole(int number) { return number; }
inline long long whole(long long number) { return number; }
inline long long opaque(long long number) { return number; }
inline float near_reciprocal(float x) { return emulated::near_reciprocal<unsigned>(x); }
inline double near_reciprocal(double x) { return emulated::near_reciprocal<unsigned long long>(x); }
inline float chosen(bool condition, float yes, float no) { return condition ? yes : no; }
inline double chosen(bool condition, double yes, double no) { return condition ? yes : no; }
inline float near_inverse_root(float x) { return emulated::near_inverse_root<unsigned>(x); }
inline double near_inverse_root(double x) { return emulated::near_inverse_root<unsigned long long>(x); }
inline unsigned long long nanoseconds() { return 0; }

// Only where a wait was given up.
inline void end_thread() { emulated::fail("a wait was given up"); }

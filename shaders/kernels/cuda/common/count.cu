// Counts the values of a field that are NaN or infinite.

constexpr int THREADS = 256, PER_THREAD = 8, SPAN = THREADS * PER_THREAD;

// Rows of values that begin a pitch apart, and where their count goes. Each row has some spans of values, the
// last of which may be shorter.
struct Values {
    const void* first;
    unsigned long long* count;
    unsigned long long rows, width, pitch, spans, blocks;
};

// Only what is finite is 0 less itself; of 16 bits, not all those of the exponent are set.
__device__ __forceinline__ bool is_finite(float value) { return value - value == 0.0f; }
__device__ __forceinline__ bool is_finite(double value) { return value - value == 0.0; }
template <unsigned short EXPONENT>
struct Narrow { unsigned short bits; };
template <unsigned short EXPONENT>
__device__ __forceinline__ bool is_finite(Narrow<EXPONENT> value) { return (value.bits & EXPONENT) != EXPONENT; }

// The order of integer sums does not matter, and a block adds only where there is something to count.
template <class T>
__device__ __forceinline__ void count(const Values& values)
{
    const T* const first = static_cast<const T*>(values.first);
    unsigned long long found = 0;
    for (unsigned long long span = blockIdx.x; span < values.rows * values.spans; span += values.blocks) {
        const unsigned long long row = span / values.spans, from = span % values.spans * SPAN;
        for (int i = 0; i < PER_THREAD; ++i) {
            const unsigned long long x = from + i * THREADS + threadIdx.x;
            if (x >= values.width) break;
            found += !is_finite(first[row * values.pitch + x]);
        }
    }
    if (found) atomicAdd(values.count, found);
}

extern "C" __global__ void __launch_bounds__(THREADS) count_f32(const __grid_constant__ Values values)
{
    count<float>(values);
}

extern "C" __global__ void __launch_bounds__(THREADS) count_f64(const __grid_constant__ Values values)
{
    count<double>(values);
}

extern "C" __global__ void __launch_bounds__(THREADS) count_f16(const __grid_constant__ Values values)
{
    count<Narrow<0x7c00>>(values);
}

extern "C" __global__ void __launch_bounds__(THREADS) count_bf16(const __grid_constant__ Values values)
{
    count<Narrow<0x7f80>>(values);
}

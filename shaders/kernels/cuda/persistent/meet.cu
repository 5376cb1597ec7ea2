// Blocks that do little but wait for each other, so that a host can time what waiting costs, and a kernel that does
// nothing. What the blocks pass on shows whether they waited.

constexpr int THREADS = 256, FLAG_STRIDE = 32;

// Two halves of words, THREADS of each block; counters of 0, a line apart; and how often blocks meet.
struct Rendezvous {
    unsigned* words;
    unsigned* counters;
    unsigned passes;
};

// Words stay long enough to be read: who writes the half of pass p again has waited in pass p + 1, which its readers
// began after they had read.
template <bool ALL>
__device__ __forceinline__ void meet(const Rendezvous& rendezvous)
{
    const unsigned blocks = gridDim.x, here = blockIdx.x;
    const unsigned beside[2] = {(here + blocks - 1) % blocks, (here + 1) % blocks};
    unsigned value = here * THREADS + threadIdx.x;
    for (unsigned pass = 1; pass <= rendezvous.passes; ++pass) {
        unsigned* const words = rendezvous.words + (pass & 1) * blocks * THREADS + threadIdx.x;
        words[here * THREADS] = value;
        __syncthreads();                 // all words of the block are there
        if (threadIdx.x == 0) add_release(rendezvous.counters + (ALL ? 0 : here * FLAG_STRIDE), 1u);
        if constexpr (ALL) {
            if (threadIdx.x == 0)
                while (load_acquire(rendezvous.counters) < pass * blocks) {}
        } else if (threadIdx.x < 2)
            while (load_acquire(rendezvous.counters + beside[threadIdx.x] * FLAG_STRIDE) < pass) {}
        __syncthreads();                 // those that are awaited have arrived
        value += words[beside[0] * THREADS] + 3 * words[beside[1] * THREADS];
    }
    rendezvous.words[(~rendezvous.passes & 1) * blocks * THREADS + here * THREADS + threadIdx.x] = value;
}

extern "C" __global__ void __launch_bounds__(THREADS) meet_all(const __grid_constant__ Rendezvous rendezvous)
{
    meet<true>(rendezvous);
}

extern "C" __global__ void __launch_bounds__(THREADS) meet_beside(const __grid_constant__ Rendezvous rendezvous)
{
    meet<false>(rendezvous);
}

extern "C" __global__ void __launch_bounds__(THREADS) idle() {}

// An exchange of planes with ranks of other devices: each device stores its own into the others' memory. It is one launch in
// order with the steps before and behind it, and the host sees none of it.
//
// A rank tells its neighbours where their planes go (`ready`): no earlier, because by then its own steps have ended, which read
// what is there. Theirs are stored as soon as they have told, and then they are told so (`arrived`). The kernel ends when all that
// it gets has arrived. Where nothing is stored it is a meeting: it ends when the neighbours have come as far. No block waits for another of its own device but at the end, for those that it counts, so they need not be
// on the device at once.

constexpr int THREADS = 512, WAYS = 2, PIECES = 32;

// What a neighbour stores into a rank's memory beside planes. Numbers of exchanges have a line each.
struct Post {
    unsigned long long places[PIECES];   // where a rank's planes go, in the neighbour's memory
    unsigned ready, gap[31];             // the exchange for which the places are
    unsigned arrived, space[31];         // the exchange whose planes are all there
};

// What goes to and comes from one neighbour: as many pieces each, in the order of which both know.
struct Way {
    Post* own;                           // in the rank's memory
    Post* theirs;                        // in the neighbour's
    unsigned* stored;                    // the blocks that have stored; 0 between launches
    unsigned sends, receives;
    unsigned long long sent[PIECES], bytes[PIECES], places[PIECES];
};

struct Exchange {
    Way ways[WAYS];
    unsigned count;                      // neighbours, each served by as many blocks
    unsigned round;                      // the number of the exchange, from 1 on
    unsigned long long deadline;         // nanoseconds
    unsigned* word;                      // in the host's memory: GIVEN_UP by the host, or LATE by the kernel
};

constexpr unsigned GIVEN_UP = 1, LATE = 2, LOOKS = 1024;

// Waits for the number of an exchange; returns whether it came. Numbers go round.
__device__ __forceinline__ bool comes(const unsigned* number, const Exchange& e)
{
    unsigned long long begun = 0;
    for (unsigned looks = 1; int(load_devices(number) - e.round) < 0; ++looks) {
        if (looks % LOOKS != 0) continue;
        if (load_devices(e.word) != 0) return false;
        const unsigned long long now = nanoseconds();
        if (begun == 0) begun = now;
        if (now - begun > e.deadline) {
            store_devices(e.word, LATE);
            return false;
        }
    }
    return true;
}

// Copies bytes, a multiple of 4, as one of so many threads.
template <class T>
__device__ __forceinline__ void copied(unsigned long long to, unsigned long long from, unsigned long long bytes, unsigned thread, unsigned threads)
{
    constexpr int TOGETHER = 4;          // loads on their way
    T* const out = reinterpret_cast<T*>(to);
    const T* const in = reinterpret_cast<const T*>(from);
    const unsigned long long all = bytes / sizeof(T);
    for (unsigned long long first = thread; first < all; first += TOGETHER * (unsigned long long)threads) {
        T values[TOGETHER];
#pragma unroll
        for (int i = 0; i < TOGETHER; ++i)
            if (first + i * (unsigned long long)threads < all) values[i] = in[first + i * (unsigned long long)threads];
#pragma unroll
        for (int i = 0; i < TOGETHER; ++i)
            if (first + i * (unsigned long long)threads < all) out[first + i * (unsigned long long)threads] = values[i];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) stores(const __grid_constant__ Exchange e)
{
    const unsigned here = threadIdx.x;
    const Way& way = e.ways[blockIdx.x % e.count];
    const unsigned block = blockIdx.x / e.count, blocks = gridDim.x / e.count;
    if (block == 0) {
        if (here < way.receives) way.theirs->places[here] = way.places[here];
        __syncthreads();                 // all places are told
        if (here == 0) {
            fence_devices();
            store_devices(&way.theirs->ready, e.round);
        }
    }
    SHARED_VARIABLE(bool, is_told);
    if (here == 0) is_told = comes(&way.own->ready, e);
    if (way.sends + way.receives == 0) return;
    __syncthreads();                     // the neighbour's places are there
    if (is_told)
        for (unsigned piece = 0; piece < way.sends; ++piece) {
            const unsigned long long from = way.sent[piece], bytes = way.bytes[piece];
            const unsigned long long to = *(volatile unsigned long long*)&way.own->places[piece];
            const unsigned thread = block * THREADS + here, threads = blocks * THREADS;
            if ((from | to | bytes) % sizeof(uint4) == 0)
                copied<uint4>(to, from, bytes, thread, threads);
            else
                copied<unsigned>(to, from, bytes, thread, threads);
        }
    __syncthreads();                     // the block has stored all of its part
    if (here == 0) {
        fence_devices();
        if (atomicAdd(way.stored, 1u) + 1 == blocks) {
            *way.stored = 0;
            fence_devices();             // after what the other blocks have stored before they counted
            if (is_told) store_devices(&way.theirs->arrived, e.round);
            comes(&way.own->arrived, e);
        }
    }
}

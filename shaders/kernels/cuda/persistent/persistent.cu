// Persistent kernel: the time loop is inside, and a block owns a tile of the domain for the whole run.
//
// A tile is swept plane by plane along S. Each plane has a place where it stays between steps (registers,
// shared memory or device memory), and is updated there in place. Around the plane being computed, a window
// of planes slides along in registers. Cells that other threads own reach it through a ring in shared memory,
// with a barrier per `CHUNK` planes. The rim of the tile is also written to device memory at its natural
// place, in one of two buffers by turns, and from there neighbouring blocks read their halo. See
// docs/internals/barrier.md for why that is safe.

// Waits until the blocks that this one exchanges cells with (or all) have finished stage number `done` of the
// launch.
__device__ __forceinline__ void wait(unsigned* flags, unsigned done)
{
    __syncthreads();
    if constexpr (BLOCKS == 1) return;
    if constexpr (NEIGHBOURS) {
        if (threadIdx.x == 0) store_release(flags + blockIdx.x * 32, done);
        const int block = blockIdx.x, other = tile_beside(block / (TILES_Y * TILES_X), block / TILES_X % TILES_Y, block % TILES_X, threadIdx.x);
        if (other >= 0 && other != block)
            while (load_acquire(flags + other * 32) < done) {}
    } else if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(flags, 1u);
        while (load_acquire(flags) < done * unsigned(BLOCKS)) {}
        __threadfence();
    }
    __syncthreads();
}

template <class S, class Kept>
__device__ __forceinline__ void stage(Block& block, Kept& kept, unsigned* flags, unsigned& done)
{
    if constexpr (ROUNDS > 1) {
        block.enter(blockIdx.x);
    }
    {
        Sweep<S, true, Kept> sweep(block, kept);
        sweep.run();
    }
    if constexpr (ROUNDS > 1) {
        // Tiles beyond the resident blocks stay in device memory.
        #pragma unroll 1
        for (int tile = blockIdx.x + BLOCKS; tile < TILE_COUNT; tile += BLOCKS) {
            block.enter(tile);
            Sweep<S, false, Kept> sweep(block, kept);
            sweep.run();
        }
        block.enter(blockIdx.x);
    }
    each<S::WRITES>([&](auto o) {
        constexpr int F = S::writes(o.value);
        real* swap = block.in[F];
        block.in[F] = block.out[F];
        block.out[F] = swap;
    });
    wait(flags, ++done);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_MULTIPROCESSOR)
persistent(const __grid_constant__ Buffers buffers, const __grid_constant__ Parameters parameters, unsigned* flags, unsigned steps)
{
    DYNAMIC_SHARED;
    Block block;
    each<FIELDS>([&](auto f) {
        block.in[f.value] = buffers.current[f.value];
        block.out[f.value] = buffers.next[f.value];
    });
    block.planes = reinterpret_cast<real*>(shared);
    block.ring = block.planes + FIELDS * PLANES_SHARED * TILE_Y * TILE_X;
    block.half = 0;
    block.tid = threadIdx.x;
    block.ty = threadIdx.x / THREADS_X;
    block.tx = threadIdx.x % THREADS_X;
    block.parameters = &parameters;
    block.varying = varying_of(parameters);
    block.enter(blockIdx.x);
    real kept[FIELDS][PLANES_REGISTERS > 0 ? PLANES_REGISTERS : 1][OWN_Y][OWN_X];
    block.load_tile<true>(kept);
    unsigned done = 0;
    #pragma unroll 1
    for (unsigned step = 0; step < steps; ++step) {
        //@step
        block.varying += STAGE_COUNT * VARYING;
    }
    block.store_tile(kept);
}

// A persistent kernel: all steps of a launch, in blocks that are all on the device at once. What would be launches are
// tasks, which each block goes through in order. The tiles of a task are shared out in order too, so that a block's
// tiles of all tasks lie in the same part of the domain.
//
// Before its part of a task a block waits for those blocks that have made what it reads, or read what it overwrites, and
// for no others: `waits` has them for each task and block. A task of one tile, such as the join of a reduction's leaves,
// is one block's, and the others go on until they need its result.
//
// The generated text above has `perform`, which does one tile of a task.

struct Task {
    unsigned kernel;    // in `perform`
    unsigned tiles;
};

// Another block, and how many tasks ago it did the one that has to be done.
struct Wait {
    unsigned block, back;
};

struct TaskSchedule {
    const Task* tasks;                        // of a round; after the last comes the first again
    const unsigned long long* arguments;      // of each task, as words
    const unsigned* first;                    // of each task and block, its first wait; and the end of the last
    const Wait* waits;
    unsigned* flags;                          // of each block, on a line of its own: tasks of this launch that it has behind it
    unsigned round, begin, count;             // tasks of the round, the first one of this launch, and how many this launch does
};

constexpr int WORDS = sizeof(Arguments) / sizeof(unsigned long long);

// Returns the first of a block's tiles.
__device__ __forceinline__ unsigned share(unsigned block, unsigned tiles)
{
    return unsigned((unsigned long long)block * tiles / BLOCKS);
}

// Waits for what a task needs of other blocks, of which none is asked for what was done before this launch.
__device__ __forceinline__ void await(const TaskSchedule& schedule, unsigned place, unsigned done)
{
    const unsigned* const first = schedule.first + place * BLOCKS + blockIdx.x;
    for (unsigned i = first[0] + threadIdx.x; i < first[1]; i += THREADS) {
        const Wait wait = schedule.waits[i];
        if (wait.back > done) continue;
        while (load_acquire(schedule.flags + wait.block * 32) < done + 1 - wait.back) {}
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_MULTIPROCESSOR)
program_steps(const __grid_constant__ TaskSchedule schedule)
{
    SHARED_VARIABLE(Arguments, arguments);
    unsigned place = schedule.begin;
    #pragma unroll 1
    for (unsigned done = 0; done < schedule.count; ++done) {
        const Task task = schedule.tasks[place];
        unsigned tile = share(blockIdx.x, task.tiles);
        const unsigned last = share(blockIdx.x + 1, task.tiles);
        if (tile < last) {
            for (int i = threadIdx.x; i < WORDS; i += THREADS) {
                reinterpret_cast<unsigned long long*>(&arguments)[i] = schedule.arguments[place * WORDS + i];
            }
            await(schedule, place, done);
            // All blocks find the same, because the block that sets it waits for all that have asked before.
            if (task.kernel == STEP_BEGINS) {
                if (arguments.progress->stopped) return;
            } else {
                #pragma unroll 1
                for (; tile < last; ++tile) perform(task.kernel, arguments, tile);
            }
            __syncthreads();
            if (threadIdx.x == 0) store_release(schedule.flags + blockIdx.x * 32, done + 1);
        }
        if (++place == schedule.round) place = 0;
    }
}

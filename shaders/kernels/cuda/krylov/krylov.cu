// The whole solve: the loop is in the kernel, and ends by convergence, by an error, or at the launch's share
// of iterations.

__device__ __forceinline__ void run(const Arguments& arguments)
{
    long long begun = 0;
    if constexpr (SLABS > 1) begun = clock64();
    Team team(arguments);
    StopTest stop_test(arguments);
    keep_matrix(team);
    solve(team, stop_test);
    // Other blocks may write into this block's shared memory until all are done.
    if constexpr (SPACE == CLUSTER) cluster_barrier();
    if constexpr (SLABS > 1)
        if (StopTest::tells()) atomicAdd(arguments.clocks + 1, (unsigned long long)(clock64() - begun));
}

// The arguments of each slab that the device has.
struct Here {
    Arguments of[HERE];
};

extern "C" __global__ void CLUSTERED __launch_bounds__(THREADS, 1) krylov(const __grid_constant__ Here here)
{
    if constexpr (BATCHED) {
        // One block per system; systems that were done in earlier launches are left alone.
        const unsigned long long system = blockIdx.x;
        Arguments own = here.of[0];
        own.state += system;
        if (own.state->status != RUNNING) return;
        own.values += system * own.entries;
        own.inverse += system * own.inverses;
        own.b += system * own.stride;
        own.homes += system * VECTORS * own.stride;
        own.history += system * own.histories;
        own.threshold = own.thresholds[system];
        run(own);
    } else run(here.of[HERE > 1 ? blockIdx.x / OWN : 0]);
}

// The whole solve: the loop is in the kernel, and ends by convergence, by an error, or at the launch's share of iterations.

extern "C" __global__ void CLUSTERED __launch_bounds__(THREADS, 1) krylov(const __grid_constant__ Arguments arguments)
{
    Team team(arguments);
    Course course(arguments);
    keep_matrix(team);
    solve(team, course);
    // Shared memory of others may be written until all are done.
    if constexpr (SPACE == CLUSTER) cluster_barrier();
}

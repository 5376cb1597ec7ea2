// Jacobi's method, damped (Saad, 2nd ed., section 4.1). An iteration: z where it is not computed on the way,
// relax, residual, test.

// x += weight z.
@compute @workgroup_size(THREADS)
fn relax(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if state.status != call.when { return; }
    for (var i = group.x * THREADS + thread; i < task.rows; i += task.groups * THREADS) {
        x[i] += task.weight * preconditioned(i, r[i]);
    }
}

@compute @workgroup_size(THREADS)
fn test(@builtin(local_invocation_index) thread: u32) {
    gather(thread, 1u, task.product_groups);
    if thread != 0u || stop_test.status != RUNNING { return; }
    goes_on(total(0u));
}

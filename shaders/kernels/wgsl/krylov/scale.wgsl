// Jacobi's preconditioner: made = D^-1 given.
@compute @workgroup_size(THREADS)
fn scale(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if state.status != call.when { return; }
    for (var i = group.x * THREADS + thread; i < task.rows; i += task.groups * THREADS) {
        made[i] = inverse[i] * given[i];
    }
}

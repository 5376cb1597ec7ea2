// Block-Jacobi: made = the inverse of each block of rows on the diagonal, times given; one thread per row.
@compute @workgroup_size(THREADS)
fn blocks(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if state.status != call.when { return; }
    for (var i = group.x * THREADS + thread; i < task.rows; i += task.groups * THREADS) {
        let first = i / task.size * task.size;
        let columns = min(task.size, task.rows - first);
        var sum: real;
        for (var k = 0u; k < columns; k++) { sum += inverses[i * task.size + k] * given[first + k]; }
        made[i] = sum;
    }
}

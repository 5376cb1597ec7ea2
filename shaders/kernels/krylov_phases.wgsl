// The products that all methods have.

// made = b - A gathered, and its square.
@compute @workgroup_size(THREADS)
fn residual(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if state.status != call.when { return; }
    var square: real;
    for (var base = group.x * ROWS; base < task.rows; base += task.product_groups * ROWS) {
        let product = product(base, thread);
        let row = base + thread;
        if thread < ROWS && row < task.rows {
            let value = b[row] - product;
            made[row] = value;
            square += value * value;
        }
    }
    parts[thread] = square;
    leave(group.x, thread, 1u);
}

// made = A gathered.
@compute @workgroup_size(THREADS)
fn multiply(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if state.status != call.when { return; }
    for (var base = group.x * ROWS; base < task.rows; base += task.product_groups * ROWS) {
        let product = product(base, thread);
        let row = base + thread;
        if thread < ROWS && row < task.rows { made[row] = product; }
    }
}

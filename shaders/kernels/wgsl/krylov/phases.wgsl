// The products that all methods have.

// made = b - A gathered, and its square.
@compute @workgroup_size(THREADS)
fn residual(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if state.status != call.when { return; }
    let first = group.x * task.product_share;
    let end = min(task.rows, first + task.product_share);
    for (var at = 0u; first + at < end; at += ROWS) {
        let base = first + at;
        clear();
        let product = product(base, thread);
        let row = base + thread;
        if thread < ROWS && row < task.rows {
            let value = b[row] - product;
            made[row] = value;
            terms[0] = value * value;
        }
        enter(at, ROWS, first + at + ROWS >= end, thread, 1u);
    }
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

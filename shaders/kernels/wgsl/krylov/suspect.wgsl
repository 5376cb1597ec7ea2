// A recurred (p, A p) that is not positive means that the matrix is not definite, or that rounding has spoilt
// the recurrence; so the product is computed afresh.

// p = M^-1 r + beta p.
@compute @workgroup_size(THREADS)
fn suspect(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if state.status != call.when { return; }
    for (var i = group.x * THREADS + thread; i < task.rows; i += task.groups * THREADS) {
        p[i] = preconditioned(i, r[i]) + state.beta * p[i];
    }
}

// (p, A p).
@compute @workgroup_size(THREADS)
fn afresh(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if state.status != call.when { return; }
    let first = group.x * task.product_share;
    let end = min(task.rows, first + task.product_share);
    for (var at = 0u; first + at < end; at += ROWS) {
        let base = first + at;
        clear();
        let product = product(base, thread);
        let row = base + thread;
        if thread < ROWS && row < task.rows { terms[0] = gathered[row] * product; }
        enter(at, ROWS, first + at + ROWS >= end, thread, 1u);
    }
    leave(group.x, thread, 1u);
}

@compute @workgroup_size(THREADS)
fn verdict(@builtin(local_invocation_index) thread: u32) {
    gather(thread, 1u, task.product_groups);
    if thread != 0u || stop_test.status != SUSPECT { return; }
    if positive(OF_CURVATURE, total(0u)) { stop_test.status = RENEW; }
}

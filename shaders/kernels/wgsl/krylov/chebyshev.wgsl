// Chebyshev iteration (Saad, 2nd ed., algorithm 12.1). Its factors are known beforehand: those of iteration k
// are the k-th pair, or the last pair, once they no longer change. An iteration: z where it is not computed
// on the way, advance, deduct, test.

// d = keep d + add z, x += d; d is p here.
@compute @workgroup_size(THREADS)
fn advance(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if state.status != call.when { return; }
    for (var i = group.x * THREADS + thread; i < task.rows; i += task.groups * THREADS) {
        let direction = state.beta * p[i] + state.alpha * preconditioned(i, r[i]);
        p[i] = direction;
        x[i] += direction;
    }
}

// r -= A d, and (r, r).
@compute @workgroup_size(THREADS)
fn deduct(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if state.status != call.when { return; }
    let first = group.x * task.product_share;
    let end = min(task.rows, first + task.product_share);
    for (var at = 0u; first + at < end; at += ROWS) {
        let base = first + at;
        clear();
        let product = product(base, thread);
        let row = base + thread;
        if thread < ROWS && row < task.rows {
            let value = r[row] - product;
            r[row] = value;
            terms[0] = value * value;
        }
        enter(at, ROWS, first + at + ROWS >= end, thread, 1u);
    }
    leave(group.x, thread, 1u);
}

@compute @workgroup_size(THREADS)
fn test(@builtin(local_invocation_index) thread: u32) {
    gather(thread, 1u, task.product_groups);
    if thread != 0u || stop_test.status != RUNNING { return; }
    let pair = min(stop_test.length, task.factors - 1u);
    if goes_on(total(0u)) {
        stop_test.beta = factors[2u * pair];
        stop_test.alpha = factors[2u * pair + 1u];
    }
}

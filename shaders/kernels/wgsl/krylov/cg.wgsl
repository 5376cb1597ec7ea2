// Conjugate gradients (Hestenes and Stiefel 1952). An iteration: direction, curvature, step_length, step,
// then z and squares where z is not computed on the way, test.

// p = z + beta p.
@compute @workgroup_size(THREADS)
fn direction(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if state.status != call.when { return; }
    for (var i = group.x * THREADS + thread; i < task.rows; i += task.groups * THREADS) {
        p[i] = preconditioned(i, r[i]) + state.beta * p[i];
    }
}

// q = A p, and (p, q).
@compute @workgroup_size(THREADS)
fn curvature(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if state.status != call.when { return; }
    let first = group.x * task.product_share;
    let end = min(task.rows, first + task.product_share);
    for (var at = 0u; first + at < end; at += ROWS) {
        let base = first + at;
        clear();
        let product = product(base, thread);
        let row = base + thread;
        if thread < ROWS && row < task.rows {
            q[row] = product;
            terms[0] = gathered[row] * product;
        }
        enter(at, ROWS, first + at + ROWS >= end, thread, 1u);
    }
    leave(group.x, thread, 1u);
}

@compute @workgroup_size(THREADS)
fn step_length(@builtin(local_invocation_index) thread: u32) {
    gather(thread, 1u, task.product_groups);
    if thread != 0u || stop_test.status != RUNNING { return; }
    if positive(OF_CURVATURE, total(0u)) { stop_test.alpha = stop_test.rho / total(0u); }
}

// x += alpha p, r -= alpha q; where z is computed on the way, (r, z) and (r, r) too.
@compute @workgroup_size(THREADS)
fn step(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if state.status != call.when { return; }
    let alpha = state.alpha;
    let first = group.x * task.share;
    for (var at = 0u; at < task.share && first + at < task.rows; at += THREADS) {
        let i = first + at + thread;
        clear();
        if i < task.rows {
            let value = r[i] - alpha * q[i];
            x[i] += alpha * p[i];
            r[i] = value;
            if POINTWISE {
                terms[0] = value * preconditioned(i, value);
                terms[1] = value * value;
            }
        }
        if POINTWISE { enter(at, THREADS, false, thread, 2u); }
    }
    if POINTWISE { leave(group.x, thread, 2u); }
}

// (r, z) and (r, r).
@compute @workgroup_size(THREADS)
fn squares(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if state.status != call.when { return; }
    let first = group.x * task.share;
    for (var at = 0u; at < task.share && first + at < task.rows; at += THREADS) {
        let i = first + at + thread;
        clear();
        if i < task.rows {
            let value = r[i];
            terms[0] = value * preconditioned(i, value);
            terms[1] = value * value;
        }
        enter(at, THREADS, false, thread, 2u);
    }
    leave(group.x, thread, 2u);
}

@compute @workgroup_size(THREADS)
fn test(@builtin(local_invocation_index) thread: u32) {
    gather(thread, 2u, task.groups);
    if thread != 0u || stop_test.status != RUNNING { return; }
    let rho = total(0u);
    let is_first = stop_test.length == 0u;
    if !is_first { gained(stop_test.alpha * stop_test.rho); }
    if goes_on(total(1u)) && positive(OF_RHO, rho) {
        stop_test.beta = select(rho / stop_test.rho, ZERO, is_first);
        stop_test.rho = rho;
    }
}

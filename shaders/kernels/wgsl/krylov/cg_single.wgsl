// Conjugate gradients with one reduction per iteration (Chronopoulos and Gear 1989); z is the papers' u =
// M^-1 r. An iteration: step, z, products, test. Where the recurred (p, A p) is not positive, which may be
// rounding, the product is computed afresh (suspect.wgsl), then resume.

// p = z + beta p, s = w + beta s, x += alpha p, r -= alpha s.
@compute @workgroup_size(THREADS)
fn step(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if state.status != call.when { return; }
    for (var i = group.x * THREADS + thread; i < task.rows; i += task.groups * THREADS) {
        let direction = preconditioned(i, r[i]) + state.beta * p[i];
        let product = w[i] + state.beta * s[i];
        p[i] = direction;
        s[i] = product;
        x[i] += state.alpha * direction;
        r[i] -= state.alpha * product;
    }
}

// w = A z, and (r, z), (w, z), (r, r).
@compute @workgroup_size(THREADS)
fn products(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if state.status != call.when { return; }
    let first = group.x * task.product_share;
    let end = min(task.rows, first + task.product_share);
    for (var at = 0u; first + at < end; at += ROWS) {
        let base = first + at;
        clear();
        let product = product(base, thread);
        let row = base + thread;
        if thread < ROWS && row < task.rows {
            let z = gathered[row];
            let value = residual_at(row);
            w[row] = product;
            terms[0] = value * z;
            terms[1] = product * z;
            terms[2] = value * value;
        }
        enter(at, ROWS, first + at + ROWS >= end, thread, 3u);
    }
    leave(group.x, thread, 3u);
}

@compute @workgroup_size(THREADS)
fn test(@builtin(local_invocation_index) thread: u32) {
    gather(thread, 3u, task.product_groups);
    if thread != 0u || stop_test.status != RUNNING { return; }
    let rho = total(0u);
    let delta = total(1u);
    let is_first = stop_test.length == 0u;
    if !is_first { gained(stop_test.alpha * stop_test.rho); }
    if !goes_on(total(2u)) || !positive(OF_RHO, rho) || !positive(OF_FORM, delta) { return; }
    let beta = select(rho / stop_test.rho, ZERO, is_first);
    let correction = select(beta * rho / stop_test.alpha, ZERO, is_first);
    let curvature = delta - correction;
    stop_test.beta = beta;
    stop_test.rho = rho;
    stop_test.delta = delta;
    stop_test.alpha = rho / curvature;
    if curvature <= ZERO { stop_test.status = SUSPECT; }
}

// The suspected failure was rounding: the run continues from a new first direction.
@compute @workgroup_size(THREADS)
fn resume(@builtin(local_invocation_index) thread: u32) {
    if thread != 0u || stop_test.status != RENEW { return; }
    stop_test.status = RUNNING;
    stop_test.beta = ZERO;
    stop_test.alpha = stop_test.rho / stop_test.delta;
}

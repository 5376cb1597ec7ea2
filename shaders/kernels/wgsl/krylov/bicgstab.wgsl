// BiCGStab with right preconditioning (van der Vorst 1992). p_hat = M^-1 p and s_hat = M^-1 s; from `half` to
// `advance` r is the paper's s. An iteration: p_hat, project, first, half, s_hat, stabilise, second, advance,
// test, direction.

// shadow = p = r.
@compute @workgroup_size(THREADS)
fn begin(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if state.status != call.when { return; }
    for (var i = group.x * THREADS + thread; i < task.rows; i += task.groups * THREADS) {
        shadow[i] = r[i];
        p[i] = r[i];
    }
}

@compute @workgroup_size(THREADS)
fn begin_test(@builtin(local_invocation_index) thread: u32) {
    gather(thread, 1u, task.product_groups);
    if thread != 0u || stop_test.status != RUNNING { return; }
    stop_test.rho = total(0u);
    if goes_on(stop_test.rho) { nonzero(OF_SHADOW, stop_test.rho); }
}

// v = A p_hat, and (shadow, v).
@compute @workgroup_size(THREADS)
fn project(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if state.status != call.when { return; }
    let first = group.x * task.product_share;
    let end = min(task.rows, first + task.product_share);
    for (var at = 0u; first + at < end; at += ROWS) {
        let base = first + at;
        clear();
        let product = product(base, thread);
        let row = base + thread;
        if thread < ROWS && row < task.rows {
            v[row] = product;
            terms[0] = shadow[row] * product;
        }
        enter(at, ROWS, first + at + ROWS >= end, thread, 1u);
    }
    leave(group.x, thread, 1u);
}

@compute @workgroup_size(THREADS)
fn first(@builtin(local_invocation_index) thread: u32) {
    gather(thread, 1u, task.product_groups);
    if thread != 0u || stop_test.status != RUNNING { return; }
    if nonzero(OF_SHADOW_PRODUCT, total(0u)) { stop_test.alpha = stop_test.rho / total(0u); }
}

// r -= alpha v.
@compute @workgroup_size(THREADS)
fn half(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if state.status != call.when { return; }
    for (var i = group.x * THREADS + thread; i < task.rows; i += task.groups * THREADS) {
        r[i] -= state.alpha * v[i];
    }
}

// t = A s_hat, and (t, r), (t, t), (r, r).
@compute @workgroup_size(THREADS)
fn stabilise(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if state.status != call.when { return; }
    let first = group.x * task.product_share;
    let end = min(task.rows, first + task.product_share);
    for (var at = 0u; first + at < end; at += ROWS) {
        let base = first + at;
        clear();
        let product = product(base, thread);
        let row = base + thread;
        if thread < ROWS && row < task.rows {
            let s = residual_at(row);
            t[row] = product;
            terms[0] = product * s;
            terms[1] = product * product;
            terms[2] = s * s;
        }
        enter(at, ROWS, first + at + ROWS >= end, thread, 3u);
    }
    leave(group.x, thread, 3u);
}

// Where s is small enough already, half a step is left to do: the flag says so.
@compute @workgroup_size(THREADS)
fn second(@builtin(local_invocation_index) thread: u32) {
    gather(thread, 3u, task.product_groups);
    if thread != 0u || stop_test.status != RUNNING { return; }
    stop_test.delta = total(2u);
    stop_test.flag = select(0u, 1u, stop_test.delta <= task.limit);
    if stop_test.flag == 0u && nonzero(OF_SQUARE, total(1u)) { stop_test.omega = total(0u) / total(1u); }
}

// x += alpha p_hat + omega s_hat, r -= omega t, and (shadow, r), (r, r).
@compute @workgroup_size(THREADS)
fn advance(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if state.status != call.when { return; }
    let is_half = state.flag != 0u;
    let first = group.x * task.share;
    for (var at = 0u; at < task.share && first + at < task.rows; at += THREADS) {
        let i = first + at + thread;
        clear();
        if i < task.rows {
            if is_half {
                x[i] += state.alpha * p_hat[i];
            } else {
                let s = r[i];
                let value = s - state.omega * t[i];
                x[i] += state.alpha * p_hat[i] + state.omega * preconditioned(i, s);
                r[i] = value;
                terms[0] = shadow[i] * value;
                terms[1] = value * value;
            }
        }
        enter(at, THREADS, false, thread, 2u);
    }
    leave(group.x, thread, 2u);
}

@compute @workgroup_size(THREADS)
fn test(@builtin(local_invocation_index) thread: u32) {
    gather(thread, 2u, task.groups);
    if thread != 0u || stop_test.status != RUNNING { return; }
    let square = select(total(1u), stop_test.delta, stop_test.flag != 0u);
    if goes_on(square) && nonzero(OF_OMEGA, stop_test.omega) {
        let next = total(0u);
        stop_test.beta = (next / stop_test.rho) * (stop_test.alpha / stop_test.omega);
        stop_test.rho = next;
        nonzero(OF_SHADOW, next);
    }
}

// p = r + beta (p - omega v).
@compute @workgroup_size(THREADS)
fn direction(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if state.status != call.when { return; }
    for (var i = group.x * THREADS + thread; i < task.rows; i += task.groups * THREADS) {
        p[i] = r[i] + state.beta * (p[i] - state.omega * v[i]);
    }
}

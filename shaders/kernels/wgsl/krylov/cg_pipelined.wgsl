// Pipelined conjugate gradients (Ghysels and Vanroose 2014, algorithm 4): u = M^-1 r, w = A u, m = M^-1 w, n
// = A m; s = A p, q = M^-1 s, z = A q. An iteration: squares, test, m, n, products, directions. Where the
// recurrences give impossible values, which may be rounding, (p, A p) is computed afresh
// (suspect.wgsl), and they start anew from x: residual, u, w, restart. They also start anew where
// their residual is small enough and the true one far from it: residual, confirm.

// (r, u), (w, u), (r, r).
fn squares(i: u32) {
    let value = r[i];
    let u = preconditioned(i, value);
    terms[0] = value * u;
    terms[1] = w[i] * u;
    terms[2] = value * value;
}

// The flag says that r, u and w are recurred, not computed, and that there is a direction before.
fn test() {
    let rho = total(0u);
    let delta = total(1u);
    let is_recurred = stop_test.flag != 0u;
    if is_recurred { gained(stop_test.alpha * stop_test.rho); }
    if is_recurred && total(2u) <= task.limit {
        stop_test.status = CONFIRM;
        stop_test.omega = total(2u);
        return;
    }
    if !goes_on(total(2u)) { return; }
    let beta = select(ZERO, rho / stop_test.rho, is_recurred);
    let correction = select(ZERO, beta * rho / stop_test.alpha, is_recurred);
    let curvature = delta - correction;
    stop_test.beta = beta;
    if is_recurred && (rho <= ZERO || delta <= ZERO || curvature <= ZERO) {
        stop_test.status = SUSPECT;
        return;
    }
    if positive(OF_RHO, rho) && positive(OF_CURVATURE, curvature) {
        stop_test.flag = 1u;
        stop_test.rho = rho;
        stop_test.alpha = rho / curvature;
    }
}

// s = w + beta s, z = n + beta z, w -= alpha z.
fn products(i: u32) {
    let product = n[i] + state.beta * z[i];
    s[i] = w[i] + state.beta * s[i];
    z[i] = product;
    w[i] -= state.alpha * product;
}

// Checks whether the true residual bears out the recurred one; else the true one replaces it in the history.
fn confirm() {
    let square = total(0u);
    stop_test.status = RUNNING;
    if !goes_on(select(square, stop_test.omega, square <= task.near)) { return; }
    // A start that has not halved the true residual was the last one.
    stop_test.status = select(RENEW, STAGNATION, square > 0.25 * stop_test.least);
    stop_test.least = square;
}

fn restart() {
    stop_test.status = RUNNING;
    stop_test.flag = 0u;
}

// Conjugate gradients (Hestenes and Stiefel 1952). An iteration: direction, curvature, step_length, then
// step where z is computed on the way, or else advance, z and squares; test.

// p = z + beta p.
fn direction(i: u32) {
    p[i] = preconditioned(i, r[i]) + state.beta * p[i];
}

// q = A p, and (p, q).
fn curvature(i: u32, product: real) {
    q[i] = product;
    terms[0] = gathered[i] * product;
}

fn step_length() {
    if positive(OF_CURVATURE, total(0u)) { stop_test.alpha = stop_test.rho / total(0u); }
}

// x += alpha p, r -= alpha q.
fn advance(i: u32) {
    x[i] += state.alpha * p[i];
    r[i] -= state.alpha * q[i];
}

// (r, z) and (r, r).
fn squares(i: u32) {
    let value = r[i];
    terms[0] = value * preconditioned(i, value);
    terms[1] = value * value;
}

// Both at once.
fn step(i: u32) {
    let value = r[i] - state.alpha * q[i];
    x[i] += state.alpha * p[i];
    r[i] = value;
    terms[0] = value * preconditioned(i, value);
    terms[1] = value * value;
}

fn test() {
    let rho = total(0u);
    let is_first = stop_test.length == 0u;
    if !is_first { gained(stop_test.alpha * stop_test.rho); }
    if goes_on(total(1u)) && positive(OF_RHO, rho) {
        stop_test.beta = select(rho / stop_test.rho, ZERO, is_first);
        stop_test.rho = rho;
    }
}

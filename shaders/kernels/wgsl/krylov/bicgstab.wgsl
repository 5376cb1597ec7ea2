// BiCGStab with right preconditioning (van der Vorst 1992). p_hat = M^-1 p and s_hat = M^-1 s; from `half` to
// `advance` r is the paper's s. An iteration: p_hat, project, first, half, s_hat, stabilise, second, advance,
// test, direction.

// shadow = p = r.
fn begin(i: u32) {
    shadow[i] = r[i];
    p[i] = r[i];
}

fn begin_test() {
    stop_test.rho = total(0u);
    if goes_on(stop_test.rho) { nonzero(OF_SHADOW, stop_test.rho); }
}

// v = A p_hat, and (shadow, v).
fn project(i: u32, product: real) {
    v[i] = product;
    terms[0] = shadow[i] * product;
}

fn first() {
    if nonzero(OF_SHADOW_PRODUCT, total(0u)) { stop_test.alpha = stop_test.rho / total(0u); }
}

// r -= alpha v.
fn half(i: u32) {
    r[i] -= state.alpha * v[i];
}

// t = A s_hat, and (t, r), (t, t), (r, r).
fn stabilise(i: u32, product: real) {
    let s = residual_at(i);
    t[i] = product;
    terms[0] = product * s;
    terms[1] = product * product;
    terms[2] = s * s;
}

// Where s is small enough already, half a step is left to do: the flag says so.
fn second() {
    stop_test.delta = total(2u);
    stop_test.flag = select(0u, 1u, stop_test.delta <= task.limit);
    if stop_test.flag == 0u && nonzero(OF_SQUARE, total(1u)) { stop_test.omega = total(0u) / total(1u); }
}

// x += alpha p_hat + omega s_hat, r -= omega t, and (shadow, r), (r, r).
fn advance(i: u32) {
    if state.flag != 0u {
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

fn test() {
    let square = select(total(1u), stop_test.delta, stop_test.flag != 0u);
    if goes_on(square) && nonzero(OF_OMEGA, stop_test.omega) {
        let next = total(0u);
        stop_test.beta = (next / stop_test.rho) * (stop_test.alpha / stop_test.omega);
        stop_test.rho = next;
        nonzero(OF_SHADOW, next);
    }
}

// p = r + beta (p - omega v).
fn direction(i: u32) {
    p[i] = r[i] + state.beta * (p[i] - state.omega * v[i]);
}

// Conjugate gradients with one reduction per iteration (Chronopoulos and Gear 1989); z is the papers' u =
// M^-1 r. An iteration: step, z, products, test. Where the recurred (p, A p) is not positive, which may be
// rounding, the product is computed afresh (suspect.wgsl), then resume.

// p = z + beta p, s = w + beta s, x += alpha p, r -= alpha s.
fn step(i: u32) {
    let direction = preconditioned(i, r[i]) + state.beta * p[i];
    let product = w[i] + state.beta * s[i];
    p[i] = direction;
    s[i] = product;
    x[i] += state.alpha * direction;
    r[i] -= state.alpha * product;
}

// w = A z, and (r, z), (w, z), (r, r).
fn products(i: u32, product: real) {
    let z = gathered[i];
    let value = residual_at(i);
    w[i] = product;
    terms[0] = value * z;
    terms[1] = product * z;
    terms[2] = value * value;
}

fn test() {
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
fn resume() {
    stop_test.status = RUNNING;
    stop_test.beta = ZERO;
    stop_test.alpha = stop_test.rho / stop_test.delta;
}

// A recurred (p, A p) that is not positive means that the matrix is not definite, or that rounding has spoilt
// the recurrence; so the product is computed afresh.

// p = M^-1 r + beta p.
fn suspect(i: u32) {
    p[i] = preconditioned(i, r[i]) + state.beta * p[i];
}

// (p, A p).
fn afresh(i: u32, product: real) {
    terms[0] = gathered[i] * product;
}

fn verdict() {
    if positive(OF_CURVATURE, total(0u)) { stop_test.status = RENEW; }
}

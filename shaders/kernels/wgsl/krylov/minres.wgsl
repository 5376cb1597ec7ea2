// MINRES (Paige and Saunders 1975). p and t are Lanczos' vector and the one before, w and s the direction and the one before. An
// iteration: form, lanczos, advance, z, squares, rotate, follow, test.

fn begin(i: u32) {
    p[i] = r[i];
    t[i] = ZERO;
    w[i] = ZERO;
    s[i] = ZERO;
}

// (p, z), (r, p) and (p, p).
fn squares(i: u32) {
    let value = p[i];
    terms[0] = value * preconditioned(i, value);
    terms[1] = r[i] * value;
    terms[2] = value * value;
}

// Returns whether M may be positive definite; else the run ends.
fn is_whole(square: real) -> bool {
    if square >= ZERO && finite(square) { return true; }
    return positive(OF_RHO, square);
}

fn begin_test() {
    if !is_whole(total(0u)) { return; }
    let gamma = sqrt(total(0u));
    stop_test.gamma = gamma;
    stop_test.gamma_before = ONE;
    stop_test.eta = gamma;
    stop_test.above = gamma;
    stop_test.beyond = ZERO;
    stop_test.cosine = ONE;
    stop_test.sine = ZERO;
    stop_test.rho = total(2u);
    test();
}

// q = A z, and (z, q).
fn form(i: u32, product: real) {
    q[i] = product;
    terms[0] = gathered[i] * product;
}

fn lanczos() {
    let gamma = stop_test.gamma;
    let delta = total(0u) / (gamma * gamma);
    stop_test.inverse = ONE / gamma;
    stop_test.alpha = delta / gamma;
    stop_test.beta = gamma / stop_test.gamma_before;
    stop_test.delta = stop_test.cosine * delta - stop_test.sine * stop_test.above;
    stop_test.omega = stop_test.sine * delta + stop_test.cosine * stop_test.above;
}

// The next vector of Lanczos' method, and the direction but for its length.
fn advance(i: u32) {
    let value = p[i];
    let direction = w[i];
    w[i] = (preconditioned(i, value) * state.inverse - state.beyond * s[i]) - state.omega * direction;
    s[i] = direction;
    p[i] = (q[i] * state.inverse - state.alpha * value) - state.beta * t[i];
    t[i] = value;
}

fn rotate() {
    let square = total(0u);
    if !is_whole(square) { return; }
    let diagonal = stop_test.delta;
    let squares = diagonal * diagonal + square;
    if !nonzero(OF_DETERMINANT, squares) { return; }
    let one = ONE / sqrt(squares);
    let gamma = sqrt(square);
    let cosine = diagonal * one;
    let sine = gamma * one;
    let length = cosine * stop_test.eta;
    let kept = sine * sine;
    let taken = length * one;
    let rest = (kept * kept * stop_test.rho - (ONE + ONE) * kept * taken * total(1u)) + taken * taken * total(2u);
    // What rounding leaves of nothing.
    stop_test.rho = select(rest, ZERO, rest < ZERO);
    stop_test.inverse = one;
    stop_test.length_of_step = length;
    stop_test.above = stop_test.cosine * gamma;
    stop_test.beyond = stop_test.sine * gamma;
    stop_test.cosine = cosine;
    stop_test.sine = sine;
    stop_test.gamma_before = stop_test.gamma;
    stop_test.gamma = gamma;
    stop_test.eta = -(sine * stop_test.eta);
}

// x and r follow.
fn follow(i: u32) {
    let direction = w[i] * state.inverse;
    w[i] = direction;
    x[i] += state.length_of_step * direction;
    r[i] = state.sine * state.sine * r[i] - state.length_of_step * state.inverse * p[i];
}

fn test() {
    if goes_on(stop_test.rho) { nonzero(OF_NEXT, stop_test.gamma); }
}

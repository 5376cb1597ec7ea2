// Chebyshev iteration (Saad, 2nd ed., algorithm 12.1). Its factors are known beforehand: those of iteration k
// are the k-th pair, or the last pair, once they no longer change. An iteration: z where it is not computed
// on the way, advance, deduct, test.

// d = keep d + add z, x += d; d is p here.
fn advance(i: u32) {
    let direction = state.beta * p[i] + state.alpha * preconditioned(i, r[i]);
    p[i] = direction;
    x[i] += direction;
}

// r -= A d, and (r, r).
fn deduct(i: u32, product: real) {
    let value = r[i] - product;
    r[i] = value;
    terms[0] = value * value;
}

fn test() {
    let pair = min(stop_test.length, task.factors - 1u);
    if goes_on(total(0u)) {
        stop_test.beta = factors[2u * pair];
        stop_test.alpha = factors[2u * pair + 1u];
    }
}

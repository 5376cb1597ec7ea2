// The products that all methods have, and the test of a solution.

// made = b - A gathered, and its square.
fn residual(i: u32, product: real) {
    let value = b[i] - product;
    made[i] = value;
    terms[0] = value * value;
}

// made = A gathered.
fn multiply(i: u32, product: real) {
    made[i] = product;
}

// After a solution was found: the square of its true residual.
fn check() {
    stop_test.true_square = total(0u);
}

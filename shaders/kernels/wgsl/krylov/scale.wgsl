// Jacobi's preconditioner: made = D^-1 given.
fn scale(i: u32) {
    made[i] = inverse[i] * given[i];
}

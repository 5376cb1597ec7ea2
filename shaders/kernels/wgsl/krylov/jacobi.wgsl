// Jacobi's method, damped (Saad, 2nd ed., section 4.1). An iteration: z where it is not computed on the way,
// relax, residual, test.

// x += weight z.
fn relax(i: u32) {
    x[i] += task.weight * preconditioned(i, r[i]);
}

fn test() {
    goes_on(total(0u));
}

// GMRES(m) with right preconditioning (Saad and Schultz 1986), vectors made orthogonal by classical
// Gram-Schmidt done twice. An iteration: normalise, z, multiply; then twice project, collect and subtract;
// then rotate. The end of a cycle, once the run stands at CLOSING: minimise, combine, z, correct, residual,
// close. `state.flag` counts the iterations of the cycle.

// v = w / |w|, the next vector of the basis.
fn normalise(i: u32) {
    let value = w[i] / state.beta;
    v[i] = value;
    basis[state.flag * task.rows + i] = value;
}

// (v_k, w) for each vector of the basis.
fn project(i: u32, k: u32) {
    terms[0] = basis[k * task.rows + i] * w[i];
}

// w -= the sum of h_k v_k, and (w, w).
fn subtract(i: u32) {
    var value = w[i];
    for (var k = 0u; k <= state.flag; k++) { value -= coefficients[projection(k)] * basis[k * task.rows + i]; }
    w[i] = value;
    terms[0] = value * value;
}

// w = the sum of y_k v_k.
fn combine(i: u32) {
    var value: real;
    for (var k = 0u; k < state.flag; k++) { value += coefficients[minimiser(k)] * basis[k * task.rows + i]; }
    w[i] = value;
}

// x += M^-1 w.
fn correct(i: u32) {
    x[i] += given[i];
}

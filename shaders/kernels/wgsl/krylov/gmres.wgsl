// GMRES(m) with right preconditioning (Saad and Schultz 1986), vectors made orthogonal by classical
// Gram-Schmidt done twice. An iteration: normalise, z, multiply; then twice project, collect and subtract;
// then rotate. The end of a cycle, once the run stands at CLOSING: minimise, combine, z, correct, residual,
// close. `state.flag` counts the iterations of the cycle.

// v = w / |w|, the next vector of the basis.
@compute @workgroup_size(THREADS)
fn normalise(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if state.status != call.when { return; }
    let first = state.flag * task.rows;
    for (var i = group.x * THREADS + thread; i < task.rows; i += task.groups * THREADS) {
        let value = w[i] / state.beta;
        v[i] = value;
        basis[first + i] = value;
    }
}

// (v_k, w) for each vector of the basis.
@compute @workgroup_size(THREADS)
fn project(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if state.status != call.when { return; }
    let first = group.x * task.share;
    for (var k = 0u; k <= state.flag; k++) {
        for (var at = 0u; at < task.share && first + at < task.rows; at += THREADS) {
            let i = first + at + thread;
            clear();
            if i < task.rows { terms[0] = basis[k * task.rows + i] * w[i]; }
            enter(at, THREADS, false, thread, 1u);
        }
        if thread == 0u { partials[k * MOST_GROUPS + group.x] = kept(); }
    }
}

// w -= the sum of h_k v_k, and (w, w).
@compute @workgroup_size(THREADS)
fn subtract(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if state.status != call.when { return; }
    let first = group.x * task.share;
    for (var at = 0u; at < task.share && first + at < task.rows; at += THREADS) {
        let i = first + at + thread;
        clear();
        if i < task.rows {
            var value = w[i];
            for (var k = 0u; k <= state.flag; k++) { value -= coefficients[projection(k)] * basis[k * task.rows + i]; }
            w[i] = value;
            terms[0] = value * value;
        }
        enter(at, THREADS, false, thread, 1u);
    }
    leave(group.x, thread, 1u);
}

// w = the sum of y_k v_k.
@compute @workgroup_size(THREADS)
fn combine(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if state.status != call.when { return; }
    for (var i = group.x * THREADS + thread; i < task.rows; i += task.groups * THREADS) {
        var value: real;
        for (var k = 0u; k < state.flag; k++) { value += coefficients[minimiser(k)] * basis[k * task.rows + i]; }
        w[i] = value;
    }
}

// x += M^-1 w.
@compute @workgroup_size(THREADS)
fn correct(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if state.status != call.when { return; }
    for (var i = group.x * THREADS + thread; i < task.rows; i += task.groups * THREADS) { x[i] += given[i]; }
}

// The Chebyshev polynomial in D^-1 A (Saad, 2nd ed., section 12.3.2): steps of Chebyshev iteration from 0,
// with factors known beforehand. Directions lie in two vectors by turns, because a step reads the old one at
// other rows while it writes the new one.

@compute @workgroup_size(THREADS)
fn polynomial_begin(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if state.status != call.when { return; }
    for (var i = group.x * THREADS + thread; i < task.rows; i += task.groups * THREADS) {
        let direction = call.add * (inverse[i] * given[i]);
        residue[i] = given[i];
        next[i] = direction;
        made[i] = direction;
    }
}

@compute @workgroup_size(THREADS)
fn polynomial_step(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if state.status != call.when { return; }
    for (var base = group.x * ROWS; base < task.rows; base += task.product_groups * ROWS) {
        let product = product(base, thread);
        let row = base + thread;
        if thread < ROWS && row < task.rows {
            let left = residue[row] - product;
            let direction = call.keep * gathered[row] + call.add * (inverse[row] * left);
            residue[row] = left;
            next[row] = direction;
            made[row] += direction;
        }
    }
}

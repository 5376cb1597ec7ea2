// Without a preconditioner, where u is r, m is w and q is s: p = r + beta p, x += alpha p, r -= alpha s.
@compute @workgroup_size(THREADS)
fn directions(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if state.status != call.when { return; }
    for (var i = group.x * THREADS + thread; i < task.rows; i += task.groups * THREADS) {
        let value = r[i];
        let direction = value + state.beta * p[i];
        p[i] = direction;
        x[i] += state.alpha * direction;
        r[i] = value - state.alpha * s[i];
    }
}

// p = u + beta p, q = m + beta q, x += alpha p, r -= alpha s, u -= alpha q.
@compute @workgroup_size(THREADS)
fn directions(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if state.status != call.when { return; }
    for (var i = group.x * THREADS + thread; i < task.rows; i += task.groups * THREADS) {
        let direction = u[i] + state.beta * p[i];
        let scaled = m[i] + state.beta * q[i];
        p[i] = direction;
        q[i] = scaled;
        x[i] += state.alpha * direction;
        r[i] -= state.alpha * s[i];
        u[i] -= state.alpha * scaled;
    }
}

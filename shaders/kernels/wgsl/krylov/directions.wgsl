// p = u + beta p, q = m + beta q, x += alpha p, r -= alpha s, u -= alpha q.
fn directions(i: u32) {
    let direction = u[i] + state.beta * p[i];
    let scaled = m[i] + state.beta * q[i];
    p[i] = direction;
    q[i] = scaled;
    x[i] += state.alpha * direction;
    r[i] -= state.alpha * s[i];
    u[i] -= state.alpha * scaled;
}

// Without a preconditioner, where u is r, m is w and q is s: p = r + beta p, x += alpha p, r -= alpha s.
fn directions(i: u32) {
    let value = r[i];
    let direction = value + state.beta * p[i];
    p[i] = direction;
    x[i] += state.alpha * direction;
    r[i] = value - state.alpha * s[i];
}

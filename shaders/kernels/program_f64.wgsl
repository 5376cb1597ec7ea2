// Comparisons of f64, whose bits WGSL does not show. NaN wins where a compiler does not assume that there is
// none, and -0 is less than +0: of two zeros, the sum is +0 unless both are -0.
fn is_nan(x: real) -> bool {
    return x != x;
}

fn least(a: real, b: real) -> real {
    if a < b { return a; }
    if b < a { return b; }
    if a == b { return select(a, -(-a + -b), a == 0.0); }
    return a + b;
}

fn greatest(a: real, b: real) -> real {
    if a > b { return a; }
    if b > a { return b; }
    if a == b { return select(a, a + b, a == 0.0); }
    return a + b;
}

// Comparisons of f32 by its bits, because WGSL lets a compiler assume that no number is NaN. -0 is less than
// +0, and NaN wins.
fn is_nan(x: real) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

// Returns an integer that grows with the number.
fn order(x: real) -> i32 {
    let bits = bitcast<i32>(x);
    return select(bits, bits ^ 0x7fffffff, bits < 0);
}

fn least(a: real, b: real) -> real {
    if is_nan(a) { return a; }
    if is_nan(b) { return b; }
    return select(b, a, order(a) < order(b));
}

fn greatest(a: real, b: real) -> real {
    if is_nan(a) { return a; }
    if is_nan(b) { return b; }
    return select(b, a, order(a) > order(b));
}

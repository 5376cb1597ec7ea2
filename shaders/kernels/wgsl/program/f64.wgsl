// Comparisons of f64 that do not trust a compiler with NaN and the signs of zeros. WGSL shows no bits of an f64,
// but an f32 made of it is NaN where it is, and has its sign. -0 is less than +0, and NaN wins.
fn bits(x: real) -> u32 {
    return bitcast<u32>(f32(x));
}

fn is_nan(x: real) -> bool {
    return (bits(x) & 0x7fffffffu) > 0x7f800000u;
}

fn least(a: real, b: real) -> real {
    if is_nan(a) { return a; }
    if is_nan(b) { return b; }
    if a == b { return select(b, a, bits(a) >= 0x80000000u); }
    return select(b, a, a < b);
}

fn greatest(a: real, b: real) -> real {
    if is_nan(a) { return a; }
    if is_nan(b) { return b; }
    if a == b { return select(a, b, bits(a) >= 0x80000000u); }
    return select(b, a, a > b);
}

// WGSL's pow is exp2(y · log2(x)): it has no negative bases, and no value for 0 to the power of 0.
fn power(x: real, y: real) -> real {
    if y == 0.0 || x == 1.0 { return 1.0; }
    let size = pow(abs(x), y);
    if x >= 0.0 { return size; }
    if floor(y) != y { return parameters.nan; }
    let odd = 2.0 * floor(0.5 * y) != y;
    return select(size, -size, odd);
}

// The operations of elementary functions' formulas in f32, by its bits: WGSL lets a compiler assume that there are
// no infinities and no NaN, and round a fused multiply-add twice.
var<private> infinity_bits: u32 = 0x7f800000u;

fn infinity() -> real {
    return bitcast<f32>(infinity_bits);
}

fn no_number() -> real {
    return bitcast<f32>(infinity_bits | 0x400000u);
}

fn is_no_number(x: real) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

fn with_sign_of(x: real, sign: real) -> real {
    return bitcast<f32>((bitcast<u32>(x) & 0x7fffffffu) | (bitcast<u32>(sign) & 0x80000000u));
}

// Returns a * b - product, which is rounded: products of halves are exact.
fn residue(a: real, b: real, product: real) -> real {
    let high_a = bitcast<f32>(bitcast<u32>(a) & 0xfffff000u);
    let high_b = bitcast<f32>(bitcast<u32>(b) & 0xfffff000u);
    let low_a = a - high_a;
    let low_b = b - high_b;
    return ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b;
}

fn nearest(x: real, factor: real) -> real {
    return floor(x * factor + 0.5f);
}

// Returns x * 2^n of a normal number, where the result is one too.
fn shifted(x: real, n: real) -> real {
    return bitcast<f32>(bitcast<i32>(x) + (i32(n) << 23u));
}

// m and n of a positive normal number m * 2^n, m in 2/3..4/3.
fn significand(x: real) -> real {
    return bitcast<f32>(((bitcast<u32>(x) - 0x3f2aaaabu) & 0x7fffffu) + 0x3f2aaaabu);
}

fn exponent(x: real) -> real {
    return f32((bitcast<i32>(x) - 0x3f2aaaab) >> 23u);
}

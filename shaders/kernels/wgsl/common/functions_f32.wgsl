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

// Returns x - a * b, which is a number of the type, for a whole number a of 12 bits. A driver may round a product or
// fuse it into the sum that follows: here both are the same, for the products are exact.
fn minus_exactly(x: real, a: real, b: real) -> real {
    let high_b = bitcast<f32>(bitcast<u32>(b) & 0xfffff000u);
    return (x - a * high_b) - a * (b - high_b);
}

// Anchors of whole numbers are these themselves.
fn anchored(x: real, factor: real) -> real {
    return floor(x * factor + 0.5f);
}

fn whole(anchor: real) -> real {
    return anchor;
}

fn has_bit(anchor: real, bit: u32) -> bool {
    return ((u32(i32(anchor)) >> bit) & 1u) != 0u;
}

// Returns x, or -x where the whole number has a bit.
fn negated(x: real, anchor: real, bit: u32) -> real {
    return bitcast<f32>(bitcast<u32>(x) ^ (((u32(i32(anchor)) >> bit) & 1u) << 31u));
}

// Returns x * 2^n and x * 2^-n of a normal number, where the result is one too.
fn raised(x: real, anchor: real) -> real {
    return bitcast<f32>(bitcast<i32>(x) + (i32(anchor) << 23u));
}

fn lowered(x: real, anchor: real) -> real {
    return bitcast<f32>(bitcast<i32>(x) - (i32(anchor) << 23u));
}

// m, -n and 2^-n of a positive normal number m * 2^n, from the bits of the lowest m.
fn significand(x: real, lowest: u32) -> real {
    return bitcast<f32>(((bitcast<u32>(x) - lowest) & 0x7fffffu) + lowest);
}

fn inverse_exponent(x: real, lowest: u32) -> real {
    return 0.0f - f32((bitcast<i32>(x) - i32(lowest)) >> 23u);
}

fn inverse_power(x: real, lowest: u32) -> real {
    return bitcast<f32>(0x3f800000u - ((bitcast<u32>(x) - lowest) & 0xff800000u));
}

fn reciprocal(x: real) -> real {
    return 1.0f / x;
}

// Returns x^(-1/3) of a normal number within 4 hundredths, with its sign.
fn near_inverse_cube_root(x: real) -> real {
    return with_sign_of(bitcast<f32>(0x54a1f800u - (bitcast<u32>(x) & 0x7fffffffu) / 3u), x);
}

// Conditions that NaN fulfils.
fn is_beyond(x: real, limit: real) -> bool {
    return is_no_number(x) || abs(x) >= limit;
}

fn is_within(x: real, limit: real) -> bool {
    return is_no_number(x) || abs(x) < limit;
}

fn is_outside(x: real, low: real, high: real) -> bool {
    return is_no_number(x) || x <= low || x >= high;
}

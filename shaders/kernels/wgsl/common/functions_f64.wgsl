// The operations of elementary functions' formulas in f64. WGSL shows no bits of an f64: powers of two are made in
// f32, which holds them exactly, and multiplied. A driver may round a fused multiply-add twice.
var<private> infinity_bits: u32 = 0x7f800000u;

fn infinity() -> real {
    return real(bitcast<f32>(infinity_bits));
}

fn no_number() -> real {
    return real(bitcast<f32>(infinity_bits | 0x400000u));
}

// An f32 made of a number is NaN where it is, and has its sign.
fn is_no_number(x: real) -> bool {
    return (bitcast<u32>(f32(x)) & 0x7fffffffu) > 0x7f800000u;
}

fn with_sign_of(x: real, sign: real) -> real {
    return select(abs(x), -abs(x), bitcast<u32>(f32(sign)) >= 0x80000000u);
}

// Returns a * b - product, which is rounded: products with the first 24 bits are exact.
fn residue(a: real, b: real, product: real) -> real {
    let high_a = real(f32(a));
    let high_b = real(f32(b));
    let low_a = a - high_a;
    let low_b = b - high_b;
    return ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b;
}

// Returns x - a * b, which is a number of the type, for a whole number a of 18 bits. A driver may round a product or
// fuse it into the sum that follows: here both are the same, for the products are exact.
fn minus_exactly(x: real, a: real, b: real) -> real {
    let high_b = real(f32(b));
    return (x - a * high_b) - a * (b - high_b);
}

// Anchors of whole numbers are these themselves.
fn anchored(x: real, factor: real) -> real {
    return floor(x * factor + 0.5lf);
}

fn whole(anchor: real) -> real {
    return anchor;
}

fn has_bit(anchor: real, bit: u32) -> bool {
    return ((u32(i32(anchor)) >> bit) & 1u) != 0u;
}

// Returns x, or -x where the whole number has a bit.
fn negated(x: real, anchor: real, bit: u32) -> real {
    return select(x, -x, has_bit(anchor, bit));
}

// Returns 2^n for |n| of at most 1000.
fn power_of_two(n: i32) -> real {
    let eighth = real(bitcast<f32>(((n >> 3u) + 127) << 23u));
    let fourth = eighth * eighth;
    let half = fourth * fourth;
    return half * half * real(1u << u32(n & 7));
}

// Returns x * 2^n and x * 2^-n of a normal number, where the result is one too.
fn raised(x: real, anchor: real) -> real {
    let all = i32(anchor);
    let first = all / 2;
    return x * power_of_two(first) * power_of_two(all - first);
}

fn lowered(x: real, anchor: real) -> real {
    return raised(x, -anchor);
}

// -n, m and 2^-n of a positive normal number m * 2^n, m from a number of which the bits in f32 are given: it is brought
// into the range of f32 first.
fn inverse_exponent(x: real, lowest: u32) -> real {
    var near = x;
    var n = 0;
    for (var by = 512; by >= 64; by >>= 1u) {
        let power = power_of_two(by);
        if near >= power {
            near /= power;
            n += by;
        } else if near * power < 1.0lf {
            near *= power;
            n -= by;
        }
    }
    return 0.0lf - real(n + ((bitcast<i32>(f32(near)) - i32(lowest)) >> 23u));
}

fn significand(x: real, lowest: u32) -> real {
    return raised(x, inverse_exponent(x, lowest));
}

fn inverse_power(x: real, lowest: u32) -> real {
    return raised(1.0lf, inverse_exponent(x, lowest));
}

fn reciprocal(x: real) -> real {
    return 1.0lf / x;
}

// Returns x^(-1/3) of a normal number within 4 hundredths, with its sign: by the bits of an f32 from 1 to 8.
fn near_inverse_cube_root(x: real) -> real {
    let size = abs(x);
    let n = -i32(inverse_exponent(size, 0x3f800000u));
    let third = (n + 3000) / 3 - 1000;
    let near = f32(raised(size, real(-3 * third)));
    return with_sign_of(raised(real(bitcast<f32>(0x54a1f800u - bitcast<u32>(near) / 3u)), real(-third)), x);
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

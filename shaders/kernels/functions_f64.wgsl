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

fn nearest(x: real, factor: real) -> real {
    return floor(x * factor + 0.5lf);
}

// Returns 2^n for |n| of at most 1000.
fn power_of_two(n: i32) -> real {
    let eighth = real(bitcast<f32>(((n >> 3u) + 127) << 23u));
    let fourth = eighth * eighth;
    let half = fourth * fourth;
    return half * half * real(1u << u32(n & 7));
}

// Returns x * 2^n of a normal number, where the result is one too.
fn shifted(x: real, n: real) -> real {
    let all = i32(n);
    let first = all / 2;
    return x * power_of_two(first) * power_of_two(all - first);
}

// m and n of a positive normal number m * 2^n, m in √½..√2: it is brought into the range of f32 first.
fn exponent(x: real) -> real {
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
    return real(n + ((bitcast<i32>(f32(near)) - 0x3f3504f3) >> 23u));
}

fn significand(x: real) -> real {
    return shifted(x, -exponent(x));
}

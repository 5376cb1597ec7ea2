// How numbers are rounded to narrower types: to nearest, ties to even. An f64 is rounded to f32 first.

fn round_f32(value: real) -> real { return real(f32(value)); }

// Rounds the bits of a magnitude where its lowest `count` bits end.
fn rounded_bits(magnitude: u32, count: u32) -> u32 {
    let kept = magnitude + (1u << (count - 1u)) - 1u + ((magnitude >> count) & 1u);
    return (kept >> count) << count;
}

fn round_f16(value: real) -> real {
    let bits = bitcast<u32>(f32(value));
    let magnitude = bits & 0x7fffffffu;
    if magnitude > 0x7f800000u { return value; }
    var rounded = rounded_bits(magnitude, 13u);
    // From 65520 on the nearest is infinite.
    if magnitude >= 0x477ff000u { rounded = 0x7f800000u; }
    // Below 2^-14 the last bit stands at 2^-24.
    if magnitude < 0x38800000u {
        let below = 126u - (magnitude >> 23u);
        var count = 0u;
        if below <= 24u { count = rounded_bits((magnitude & 0x7fffffu) | 0x800000u, below) >> below; }
        rounded = bitcast<u32>(f32(count) * 5.9604644775390625e-8);
    }
    return real(bitcast<f32>(rounded | (bits & 0x80000000u)));
}

fn round_bf16(value: real) -> real {
    let bits = bitcast<u32>(f32(value));
    if (bits & 0x7fffffffu) > 0x7f800000u { return value; }
    return real(bitcast<f32>(rounded_bits(bits & 0x7fffffffu, 16u) | (bits & 0x80000000u)));
}


// Random numbers of cells: Philox 4x32 with ten rounds of a cell's indices and the step by the seed and the stream, as
// core/src/expr/draw.rs has it.

fn word(whole: real) -> u32 { return u32(i32(whole)); }

// The high word of a product.
fn high_product(a: u32, b: u32) -> u32 {
    let low = (a & 0xffffu) * (b & 0xffffu);
    let first = (a >> 16u) * (b & 0xffffu);
    let second = (a & 0xffffu) * (b >> 16u);
    let middle = (low >> 16u) + (first & 0xffffu) + (second & 0xffffu);
    return (a >> 16u) * (b >> 16u) + (first >> 16u) + (second >> 16u) + (middle >> 16u);
}

fn drawn(z: real, y: real, x: real, seed: real, step: real, turn: real, stream: u32, part: u32) -> real {
    var counter = vec4<u32>(word(x), word(y), word(z), word(step));
    var key = vec2<u32>(word(seed), stream | (word(turn) << 16u));
    for (var round = 0; round < 10; round++) {
        let left = vec2<u32>(high_product(0xd2511f53u, counter.x), 0xd2511f53u * counter.x);
        let right = vec2<u32>(high_product(0xcd9e8d57u, counter.z), 0xcd9e8d57u * counter.z);
        counter = vec4<u32>(right.x ^ counter.y ^ key.x, right.y, left.x ^ counter.w ^ key.y, left.y);
        key += vec2<u32>(0x9e3779b9u, 0xbb67ae85u);
    }
    return fraction_of(counter, part);
}

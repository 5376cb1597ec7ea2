
// 24 bits of one word.
fn fraction_of(words: vec4<u32>, part: u32) -> real {
    return real(select(words.y, words.x, part == 0u) >> 8u) * 5.9604644775390625e-8f;
}

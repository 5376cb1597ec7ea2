
// 53 bits of two words.
fn fraction_of(words: vec4<u32>, part: u32) -> real {
    let own = select(words.zw, words.xy, part == 0u);
    return (real(own.x >> 5u) * 67108864.0lf + real(own.y >> 6u)) * 1.1102230246251565e-16lf;
}

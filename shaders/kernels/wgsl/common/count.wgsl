// Counts the values of a buffer that are NaN or infinite. Their bits are asked, because a driver may take for
// granted that values are finite.
@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read_write> count: atomic<u32>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    var found = 0u;
    for (var i = id.x; i < arrayLength(&words) / WORDS; i += groups.x * 256u) {
        // The last word of a value holds its exponent.
        if (words[i * WORDS + WORDS - 1u] & EXPONENT) == EXPONENT { found += 1u; }
    }
    if found > 0u { atomicAdd(&count, found); }
}

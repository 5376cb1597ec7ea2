// Copies 16 bytes per thread at a time, to measure the bandwidth of device memory.
@group(0) @binding(0) var<storage, read> old: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> copied: array<vec4<u32>>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    for (var i = id.x; i < arrayLength(&old); i += groups.x * 256u) {
        copied[i] = old[i];
    }
}

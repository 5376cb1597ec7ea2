// Stepwise, without staging: each tap reads its field in device memory, through the boundary.
//@domain

//@taps

@compute @workgroup_size(THREADS)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    // Tiles are counted through, because a grid of workgroups is limited along each axis.
    let block = i32(group.y * groups.x + group.x);
    if block >= BLOCKS { return; }
    let z0 = block / (BLOCKS_Y * BLOCKS_X) * TILE_Z;
    let y0 = block / BLOCKS_X % BLOCKS_Y * TILE_Y;
    let x0 = block % BLOCKS_X * TILE_X;

    let tx = i32(thread) % THREADS_X;
    let ty = i32(thread) / THREADS_X % THREADS_Y;
    let tz = i32(thread) / (THREADS_X * THREADS_Y);
    for (var dz = tz; dz < TILE_Z; dz += THREADS_Z) {
        for (var dy = ty; dy < TILE_Y; dy += THREADS_Y) {
            for (var dx = tx; dx < TILE_X; dx += THREADS_X) {
                let z = z0 + dz;
                let y = y0 + dy;
                let x = x0 + dx;
                if !in_domain(z, y, x) { continue; }
                let at = (z * EXTENT_Y + y) * EXTENT_X + x;
                if computed(z, y, x) {
                    //@formula
                } else {
                    //@keep
                }
            }
        }
    }
}

// A stage of new values over a workgroup's tile.
@compute @workgroup_size(THREADS)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    //@ended
    // Tiles are counted through, because a grid of workgroups is limited along each axis.
    let block = i32(group.y * groups.x + group.x);
    if block >= BLOCKS { return; }
    let z0 = FIRST_Z + block / (BLOCKS_Y * BLOCKS_X) * TILE_Z;
    let y0 = FIRST_Y + block / BLOCKS_X % BLOCKS_Y * TILE_Y;
    let x0 = FIRST_X + block % BLOCKS_X * TILE_X;
    // No index of the tile needs to ask the boundary.
    let inside = is_inner(z0, y0, x0) && is_inner(z0 + TILE_Z - 1, y0 + TILE_Y - 1, x0 + TILE_X - 1);

    let tx = i32(thread) % THREADS_X;
    let ty = i32(thread) / THREADS_X % THREADS_Y;
    let tz = i32(thread) / (THREADS_X * THREADS_Y);
    for (var dz = tz; dz < TILE_Z; dz += THREADS_Z) {
        for (var dy = ty; dy < TILE_Y; dy += THREADS_Y) {
            for (var dx = tx; dx < TILE_X; dx += THREADS_X) {
                let z = z0 + dz;
                let y = y0 + dy;
                let x = x0 + dx;
                //@places
                if inside {
                    //@inside
                    continue;
                }
                if is_computed(z, y, x) {
                    //@edge
                }
                //@keep
            }
        }
    }
}

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
    let s0 = block / (BLOCKS_Y * BLOCKS_X) * TILE_S;
    let y0 = block / BLOCKS_X % BLOCKS_Y * TILE_Y;
    let x0 = block % BLOCKS_X * TILE_X;

    let tx = i32(thread) % THREADS_X;
    let ty = i32(thread) / THREADS_X % THREADS_Y;
    let ts = i32(thread) / (THREADS_X * THREADS_Y);
    for (var ds = ts; ds < TILE_S; ds += THREADS_S) {
        for (var dy = ty; dy < TILE_Y; dy += THREADS_Y) {
            for (var dx = tx; dx < TILE_X; dx += THREADS_X) {
                let s = s0 + ds;
                let y = y0 + dy;
                let x = x0 + dx;
                if !in_domain(s, y, x) { continue; }
                let at = (s * EXTENT_Y + y) * EXTENT_X + x;
                if computed(s, y, x) {
                    //@formula
                } else {
                    //@keep
                }
            }
        }
    }
}

// A leaf of a reduction, by the tree that all backends share. Its leaves are aligned boxes of indices; in a
// leaf, and then among leaves, blocks of two are joined along the slowest axis, then along the next, then
// along the fastest. What is missing counts as the neutral value.
var<workgroup> joined: array<real, THREADS>;

// Joins blocks of two of `count` values that lie `stride` apart, until the first is all of them.
fn join_along(thread: i32, count: i32, stride: i32) {
    for (var step = stride; step < count * stride; step *= 2) {
        workgroupBarrier();
        if thread < count * stride && thread % (2 * step) < stride {
            joined[thread] = join(joined[thread], joined[thread + step]);
        }
    }
}

@compute @workgroup_size(THREADS)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
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

    let thread = i32(local);
    let z = z0 + thread / (TILE_X * TILE_Y);
    let y = y0 + thread / TILE_X % TILE_Y;
    let x = x0 + thread % TILE_X;
    var value = neutral();
    //@places
    if inside {
        //@inside
    } else if is_computed(z, y, x) {
        //@edge
    }
    joined[thread] = value;
    join_along(thread, TILE_Z, TILE_Y * TILE_X);
    join_along(thread, TILE_Y, TILE_X);
    join_along(thread, TILE_X, 1);
    if thread == 0 { leaves[block] = joined[0]; }
}

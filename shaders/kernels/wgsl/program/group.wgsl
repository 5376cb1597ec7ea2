// A group of stages (fusion): a workgroup goes over its tile row by row, and in each turn every stage computes the
// row that lies its lag behind the front. Rows that later stages read stay in rings: row r is in slot r % rows. A ring
// has a slot for each row that is still read and one for the row that is made, so one barrier a turn suffices:
// nobody reads in a turn what another invocation writes in it.
//
// Rows are planes where the domain has three axes. What is counted from the tile's first index is below 0 before it.
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
    // No index that a stage computes for the tile needs to ask the boundary.
    let inside = is_inner(z0, y0, x0) && is_inner(z0 + TILE_Z - 1, y0 + TILE_Y - 1, x0 + TILE_X - 1);

    for (var front = START; front < END; front++) {
        for (var i = i32(local); i < ROW; i += THREADS) {
            let across_y = i / ROW_X - BEFORE_Y;
            let across_x = i % ROW_X - BEFORE_X;
            //@passed
            if inside {
                //@inside
                continue;
            }
            //@edge
        }
        workgroupBarrier();
        //@joined
    }
}

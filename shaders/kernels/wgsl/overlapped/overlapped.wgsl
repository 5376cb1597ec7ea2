// Overlapped tiling: several steps per dispatch. Each workgroup holds a window of the domain, a tile with the
// halo around it, in the registers of its threads, a block of cells per thread. Threads give each other the
// cells that they need of their blocks through slots in workgroup memory. With each step, cells near the
// window's sides go wrong by the reach of a step; the halo is wide enough for all of them.
//@domain

//@functions

@compute @workgroup_size(THREADS)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    // Tiles are counted through, because a grid of workgroups is limited along each axis.
    let block = i32(group.y * groups.x + group.x);
    if block >= BLOCKS { return; }
    let tile_s = block / (BLOCKS_Y * BLOCKS_X) * TILE_S;
    let tile_y = block / BLOCKS_X % BLOCKS_Y * TILE_Y;
    let tile_x = block % BLOCKS_X * TILE_X;

    // The window's first cell, and the thread's first cell.
    let first_s = tile_s - HALO_S;
    let first_y = tile_y - HALO_Y;
    let first_x = tile_x - HALO_X;
    let t = i32(thread);
    let s = first_s + t / (THREADS_Y * THREADS_X) * CELLS_S;
    let y = first_y + t / THREADS_X % THREADS_Y * CELLS_Y;
    let x = first_x + t % THREADS_X * CELLS_X;

    //@load
    //@steps
    //@store
}

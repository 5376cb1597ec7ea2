// 2.5-D streaming (2.5-D temporal blocking): several steps per dispatch, through which planes stream. A
// workgroup owns a window of rows (Y) and columns (X) across the swept axis (S), and a share of the planes;
// each of its threads has a block of a plane's cells. The stages of several steps stand behind one another as
// levels. Each level turns the plane that arrives at it into a plane of its result, and carries partial
// sums. Levels run from the last to the first, and each takes the plane that the level before it made a plane
// ago, so that one barrier per plane serves all. Where a window is a subgroup whose threads shuffle cells,
// levels run from the first to the last instead, and each takes the plane just made, without any barrier.
// Cells near the window's sides go wrong by the reach of a stage per level, and are not stored.
//@domain

// Returns whether a level must give an index its value beside what it computes: held cells, and ghost cells
// that are tapped.
fn held(index: i32, first: i32, end: i32, low: i32, high: i32) -> bool {
    return (index < first && index >= low) || (index >= end && index < high);
}

//@functions

@compute @workgroup_size(THREADS)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    //@thread
) {
    // Windows are counted through, because a grid of workgroups is limited along each axis. Windows side by
    // side go through the same planes at the same time. Windows at a side come first, with smaller shares.
    let number = i32(group.y * groups.x + group.x);
    if number >= WORKGROUPS { return; }
    //@which

    // The planes whose result is stored, of which the first shares have one more; the first row and column of
    // the window and of the thread.
    let first = share * (EXTENT_S / shares) + min(share, EXTENT_S % shares);
    let last = first + EXTENT_S / shares + select(0, 1, share < EXTENT_S % shares);
    let first_y = window_y * TILE_Y - LEAD_Y;
    let first_x = window_x * TILE_X - LEAD_X;
    let t = i32(thread);
    let y = first_y + t / THREADS_X * CELLS_Y;
    let x = first_x + t % THREADS_X * CELLS_X;

    // The plane that arrives, and the end of the planes that must arrive.
    var p = max(first - MARGIN_S, -LEAD_S);
    let end = last + BEHIND;
    //@begin
    //@run
}

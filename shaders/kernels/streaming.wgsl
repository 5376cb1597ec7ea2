// Several steps per dispatch: planes stream through. A workgroup owns a window of rows (R) and columns (C)
// across the swept axis (S), its threads a block of a plane's cells each, and a share of the planes. Stages
// of several steps stand behind one another as levels; each turns the plane that arrives at it into one of
// its result, and carries partial sums. Levels take what the one before them made a plane ago, from the last
// to the first, so that one barrier a plane serves all; or, where a window is a subgroup whose threads
// shuffle cells, what it has just made, from the first to the last, without any. Cells near the window's
// sides go wrong by the reach of a stage a level, and are not stored.
//@domain

// Whether a level must give an index its value beside what it computes: cells that are held, ghost cells that
// are tapped.
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
    // Windows are counted through, for a grid of workgroups is limited along each axis; those side by side go
    // through the same planes at the same time. Those at a side come first, and have smaller shares.
    let number = i32(group.y * groups.x + group.x);
    if number >= WORKGROUPS { return; }
    //@which

    // The planes whose result is stored, the first shares have one more; the window's first row and column,
    // and the thread's.
    let first = share * (EXTENT_S / shares) + min(share, EXTENT_S % shares);
    let last = first + EXTENT_S / shares + select(0, 1, share < EXTENT_S % shares);
    let first_r = window_r * TILE_R - LEAD_R;
    let first_c = window_c * TILE_C - LEAD_C;
    let t = i32(thread);
    let r = first_r + t / THREADS_C * CELLS_R;
    let c = first_c + t % THREADS_C * CELLS_C;

    // The plane that arrives, and the end of those that must.
    var p = max(first - MARGIN_S, -LEAD_S);
    let end = last + BEHIND;
    //@begin
    //@run
}

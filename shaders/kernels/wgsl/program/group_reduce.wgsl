// A reduction at the end of a group, by the tree that all backends share. Each invocation joins the rows of its own
// places as they come, blocks of two of them once both are there; the last level has whole leaves' rows.

// Joins a row's value with those of its leaf before it that make a whole block of two, four and so on.
fn add_row(row: i32, place: i32, value: real) {
    var all = value;
    var level = 0;
    for (var rows = row % LEAF_ROWS; rows % 2 == 1; rows /= 2) {
        all = join(rings[JOINED + level * COLUMNS + place], all);
        level++;
    }
    rings[JOINED + level * COLUMNS + place] = all;
}

// Joins along a row of planes and then along a row: blocks of two of `count` places, `stride` apart.
fn join_along(thread: i32, count: i32, stride: i32) {
    for (var step = 1; step < count; step *= 2) {
        for (var place = thread; place < COLUMNS; place += THREADS) {
            let along = select(place % TILE_X, place / TILE_X, stride > 1);
            if along % (2 * step) == 0 {
                rings[TOP + place] = join(rings[TOP + place], rings[TOP + place + step * stride]);
            }
        }
        workgroupBarrier();
    }
}

// Joins the leaves that end with a row.
fn join_leaves(thread: i32, row: i32, z0: i32, y0: i32, x0: i32) {
    join_along(thread, LEAF_ACROSS, TILE_X);
    join_along(thread, LEAF_X, 1);
    for (var place = thread; place < COLUMNS; place += THREADS) {
        let y = place / TILE_X;
        let x = place % TILE_X;
        if y % LEAF_ACROSS != 0 || x % LEAF_X != 0 { continue; }
        let leaf_z = (z0 + select(0, row, ALONG_Z)) / LEAF_Z;
        let leaf_y = (y0 + select(row, y, ALONG_Z)) / LEAF_Y;
        let leaf_x = (x0 + x) / LEAF_X;
        if leaf_z < LEAVES_Z && leaf_y < LEAVES_Y && leaf_x < LEAVES_X {
            leaves[(leaf_z * LEAVES_Y + leaf_y) * LEAVES_X + leaf_x] = rings[TOP + place];
        }
    }
}

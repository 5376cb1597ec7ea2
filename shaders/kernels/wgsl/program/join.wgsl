// Joins all leaves of a reduction to its scalar, by one workgroup. The leaves have room for as many values
// again behind them.

// Returns the value of a row and column of those that begin at `start`; the neutral one where there is no row.
fn leaf(start: i32, row: i32, rows: i32, column: i32, columns: i32) -> real {
    if row >= rows { return neutral(); }
    return leaves[start + row * columns + column];
}

// Joins rows to one row, eight a turn, and returns the place where that row begins.
fn join_rows(first: i32, count: i32, columns: i32, thread: i32) -> i32 {
    var start = first;
    for (var rows = count; rows > 1; rows = (rows + 7) / 8) {
        let to = BLOCKS - start;
        for (var i = thread; i < (rows + 7) / 8 * columns; i += THREADS) {
            let row = i / columns * 8;
            let column = i % columns;
            var pairs: array<real, 4>;
            for (var k = 0; k < 4; k++) {
                let upper = leaf(start, row + 2 * k, rows, column, columns);
                pairs[k] = join(upper, leaf(start, row + 2 * k + 1, rows, column, columns));
            }
            leaves[to + i] = join(join(pairs[0], pairs[1]), join(pairs[2], pairs[3]));
        }
        storageBarrier();
        start = to;
    }
    return start;
}

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) local: u32) {
    let thread = i32(local);
    let planes = join_rows(0, BLOCKS_Z, BLOCKS_Y * BLOCKS_X, thread);
    let rows = join_rows(planes, BLOCKS_Y, BLOCKS_X, thread);
    let all = join_rows(rows, BLOCKS_X, 1, thread);
    if thread == 0 {
        //@ended
        let value = leaves[all];
        //@store
    }
}

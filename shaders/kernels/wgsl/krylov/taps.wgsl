// The product of `gathered` with a stencil that is never stored: one thread per cell; the boundary is a rule
// of where to read.
//@domain

const ROWS: u32 = THREADS;

fn tap(s: i32, y: i32, x: i32) -> real {
    let at = place(s, y, x);
    if at < 0 { return ZERO; }
    return gathered[at];
}

// Returns the product of row base + thread.
fn product(base: u32, thread: u32) -> real {
    if base + thread >= task.rows { return ZERO; }
    let at = i32(base + thread);
    let s = at / (EXTENT_Y * EXTENT_X);
    let y = at / EXTENT_X % EXTENT_Y;
    let x = at % EXTENT_X;
    if !computed(s, y, x) { return gathered[at]; }
    let inside = s >= RADIUS_S && s < EXTENT_S - RADIUS_S
        && y >= RADIUS_Y && y < EXTENT_Y - RADIUS_Y
        && x >= RADIUS_X && x < EXTENT_X - RADIUS_X;
    var sum: real;
    if inside {
        //@inside
    } else {
        //@outside
    }
    return sum;
}

// Returns the place along an axis of the value at `index`; -1 where a constant stands. A periodic axis
// repeats. On other axes no computed cell taps cells farther out than one extent; these are clamped, so that
// every access stays inside its array. The generated text above says which cell a ghost cell shows (`below`,
// `above`).
fn source(index: i32, extent: i32, low: i32, high: i32) -> i32 {
    var at = index;
    if index < 0 {
        if low == CONSTANT { return -1; }
        at = below(low, select(index, -1 - (-1 - index) % extent, low == PERIODIC), extent);
    }
    if index >= extent {
        if high == CONSTANT { return -1; }
        at = above(high, select(index, extent + index % extent, high == PERIODIC), extent);
    }
    return clamp(at, 0, extent - 1);
}

// Returns the index in a field's array of the cell that a tap at (s, y, x) reads; -1 where a constant stands.
// Cells lie in this order where a square is swept along s too, because its planes have one row.
fn place(s: i32, y: i32, x: i32) -> i32 {
    let at_s = source(s, EXTENT_S, LOW_S, HIGH_S);
    let at_y = source(y, EXTENT_Y, LOW_Y, HIGH_Y);
    let at_x = source(x, EXTENT_X, LOW_X, HIGH_X);
    if at_s < 0 || at_y < 0 || at_x < 0 { return -1; }
    return (at_s * EXTENT_Y + at_y) * EXTENT_X + at_x;
}

// Returns the constant beyond the domain at (s, y, x): axes are asked from the slowest on.
fn ghost(s: i32, y: i32, x: i32) -> real {
    if s < 0 && LOW_S == CONSTANT { return LOW_VALUE_S; }
    if s >= EXTENT_S && HIGH_S == CONSTANT { return HIGH_VALUE_S; }
    if y < 0 && LOW_Y == CONSTANT { return LOW_VALUE_Y; }
    if y >= EXTENT_Y && HIGH_Y == CONSTANT { return HIGH_VALUE_Y; }
    if x < 0 && LOW_X == CONSTANT { return LOW_VALUE_X; }
    return HIGH_VALUE_X;
}

fn in_domain(s: i32, y: i32, x: i32) -> bool {
    return s < EXTENT_S && y < EXTENT_Y && x < EXTENT_X;
}

// Returns whether the cell is computed: the outermost cells at a fixed side keep their values.
fn computed(s: i32, y: i32, x: i32) -> bool {
    return s >= FIRST_S && s < END_S && y >= FIRST_Y && y < END_Y && x >= FIRST_X && x < END_X;
}

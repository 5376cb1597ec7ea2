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

// Returns the index in a field's array of the cell that a tap at (z, y, x) reads; -1 where a constant stands.
fn place(z: i32, y: i32, x: i32) -> i32 {
    let at_z = source(z, EXTENT_Z, LOW_Z, HIGH_Z);
    let at_y = source(y, EXTENT_Y, LOW_Y, HIGH_Y);
    let at_x = source(x, EXTENT_X, LOW_X, HIGH_X);
    if at_z < 0 || at_y < 0 || at_x < 0 { return -1; }
    return (at_z * EXTENT_Y + at_y) * EXTENT_X + at_x;
}

// Returns the constant beyond the domain at (z, y, x): axes are asked from the slowest on.
fn ghost(z: i32, y: i32, x: i32) -> real {
    if z < 0 && LOW_Z == CONSTANT { return LOW_VALUE_Z; }
    if z >= EXTENT_Z && HIGH_Z == CONSTANT { return HIGH_VALUE_Z; }
    if y < 0 && LOW_Y == CONSTANT { return LOW_VALUE_Y; }
    if y >= EXTENT_Y && HIGH_Y == CONSTANT { return HIGH_VALUE_Y; }
    if x < 0 && LOW_X == CONSTANT { return LOW_VALUE_X; }
    return HIGH_VALUE_X;
}

fn in_domain(z: i32, y: i32, x: i32) -> bool {
    return z < EXTENT_Z && y < EXTENT_Y && x < EXTENT_X;
}

// Returns whether the cell is computed: the outermost cells at a fixed side keep their values.
fn computed(z: i32, y: i32, x: i32) -> bool {
    return z >= FIRST_Z && z < END_Z && y >= FIRST_Y && y < END_Y && x >= FIRST_X && x < END_X;
}

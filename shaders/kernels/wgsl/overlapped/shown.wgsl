// Returns the place along an axis of the cell that an index shows, in a window with or without images of the
// other side.
fn seen(index: i32, extent: i32, low: i32, high: i32, images: bool) -> i32 {
    if images { return index; }
    return source(index, extent, low, high);
}

// Returns the slot of the cell that the ghost cell at (s, y, x) shows, from the first thread's first slot on;
// -1 for any other cell.
fn shown(first_s: i32, first_y: i32, first_x: i32, s: i32, y: i32, x: i32) -> i32 {
    let from_s = seen(s, EXTENT_S, LOW_S, HIGH_S, IMAGES_S);
    let from_y = seen(y, EXTENT_Y, LOW_Y, HIGH_Y, IMAGES_Y);
    let from_x = seen(x, EXTENT_X, LOW_X, HIGH_X, IMAGES_X);
    if from_s < 0 && !IMAGES_S || from_y < 0 && !IMAGES_Y || from_x < 0 && !IMAGES_X { return -1; }
    if from_s == s && from_y == y && from_x == x { return -1; }
    // Ghost cells that show a cell beyond the window are tapped only by cells that have gone wrong already.
    let at_s = clamp(from_s - first_s, 0, WINDOW_S - 1);
    let at_y = clamp(from_y - first_y, 0, WINDOW_Y - 1);
    let at_x = clamp(from_x - first_x, 0, WINDOW_X - 1);
    let owner = (at_s / CELLS_S * THREADS_Y + at_y / CELLS_Y) * THREADS_X + at_x / CELLS_X;
    let cell = (at_s % CELLS_S * CELLS_Y + at_y % CELLS_Y) * CELLS_X + at_x % CELLS_X;
    return cell * THREADS + owner;
}

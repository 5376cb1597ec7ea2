// Counts a turn of a loop, unless the condition that ends the loop holds: then the dispatches that follow do nothing.
@compute @workgroup_size(1)
fn main() {
    //@ended
    //@value
    let is_over = is_nan(value) || holds(value);
    parameters.ended = u32(is_over);
    parameters.steps += u32(!is_over);
}

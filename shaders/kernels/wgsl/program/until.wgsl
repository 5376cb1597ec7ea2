// Counts a step, and tests the condition that ends the run. A run whose scalar is not a number ends too.
@compute @workgroup_size(1)
fn main() {
    //@ended
    //@value
    parameters.ended = u32(is_nan(value) || holds(value));
    parameters.steps += 1u;
}

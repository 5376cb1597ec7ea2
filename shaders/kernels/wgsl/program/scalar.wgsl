// A stage of one scalar.
@compute @workgroup_size(1)
fn main() {
    //@ended
    //@formula
}

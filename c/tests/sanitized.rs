//! The C side under sanitizers: takes a minute, so `cargo xtask test --full` runs it.

use crate::common::{C, Linked, Place};

#[test]
#[ignore = "compiles all programs once more"]
fn sanitizers_find_nothing() {
    for source in ["examples/heat.c", "examples/poisson.c", "examples/gas.c", "tests/border.c"] {
        let place = Place::new();
        let more = [
            "-fsanitize=address,undefined",
            "-fno-sanitize-recover=all",
            "-g",
            "-pthread",
            "-I",
            concat!(env!("CARGO_MANIFEST_DIR"), "/examples"),
        ];
        let Some(program) = place.build(&C, &[source], Linked::Shared, &more) else { return };
        let folder = place.folder.path().to_str().unwrap();
        place.run(&program, &[folder]);
    }
}

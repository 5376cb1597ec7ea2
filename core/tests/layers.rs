//! Which parts of the core may know which.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns every source file below a folder of the core.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

/// Solvers take words and device numbers from the plans of stencils; nothing goes the other way.
#[test]
fn plans_of_stencils_know_no_solver() {
    let all = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/plan"));
    assert!(all.len() > 20, "{all:?}");
    for path in all {
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains("solver::"), "{} knows a solver", path.display());
    }
}

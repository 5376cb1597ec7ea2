//! The extension module as it is built with the tests of the workspace, of the same crates: `cargo xtask test` puts it beside
//! the package's sources and runs the tests in Python, which stand beside this one.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};

#[test]
fn the_module_has_the_function_that_an_interpreter_calls() {
    let program = std::env::current_exe().unwrap();
    let module = program.with_file_name(format!("{DLL_PREFIX}_pyabide{DLL_SUFFIX}"));
    let bytes = std::fs::read(&module).unwrap_or_else(|error| panic!("{}: {error}", module.display()));
    let name = b"PyInit__pyabide";
    assert!(bytes.windows(name.len()).any(|text| text == name), "{} does not name it", module.display());
}

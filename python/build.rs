//! Has the linker leave to the interpreter what it brings itself, where linkers want to be told.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}

//! Passes linker arguments that leave the interpreter's symbols undefined, on systems whose linkers need them.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}

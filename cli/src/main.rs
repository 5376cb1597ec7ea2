//! The command `abide`; the library of this package does its work.

fn main() -> std::process::ExitCode {
    // A library that the environment loads first may have changed the mode.
    abide_core::floating::standard(abide_cli::main)
}

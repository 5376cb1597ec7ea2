//! The command `abide`; the library's module `cli` does its work.

fn main() -> std::process::ExitCode {
    // A library that the environment loads first may have changed the mode.
    abide::floating::standard(abide::cli::main)
}

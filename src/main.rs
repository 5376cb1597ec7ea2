//! The command `abide`; the library's module `cli` does its work.

fn main() -> std::process::ExitCode {
    abide::cli::main()
}

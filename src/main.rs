//! The command `abide`.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}

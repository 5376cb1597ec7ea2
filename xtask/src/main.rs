//! What a developer's day with Abide needs: `cargo xtask test`, `cargo xtask fuzz`, `cargo xtask gpu` and `cargo xtask web`.

mod cargo;
mod fuzz;
mod gpu;
mod setup;
mod summary;
mod test;
mod web;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "What a developer's day with Abide needs")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install what is missing, then check format and lints and run all tests, examples and documentation builds
    Test,
    /// Give the readers, the arguments and the CPU's kernels inputs that nobody thought of, and report what goes wrong
    Fuzz(fuzz::Fuzz),
    /// Build the command, the tests and the benchmarks into the folder gpu/, to be copied to a machine without Rust
    Gpu(gpu::Gpu),
    /// Build the page that runs Abide in a browser into the folder target/web/
    Web(web::Web),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().task {
        Task::Test => test::run(),
        Task::Fuzz(fuzz) => fuzz.run(),
        Task::Gpu(gpu) => gpu.run(),
        Task::Web(web) => web.run(),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

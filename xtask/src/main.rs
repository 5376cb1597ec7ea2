//! A developer's daily tasks with Abide: `cargo xtask test`, `fuzz`, `chaos`, `gpu`, `mpi`, `python`, `c` and `web`.

mod book;
mod c;
mod cargo;
mod fuzz;
mod gpu;
mod mpi;
mod python;
mod runner;
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
    /// Install what is missing, then check format and lints and run all tests, examples and documentation
    /// builds
    Test(test::Test),
    /// Give the readers, the arguments and the CPU's kernels inputs that nobody thought of, and report what
    /// goes wrong
    Fuzz(fuzz::Fuzz),
    /// Build the command, the tests and the benchmarks into the folder gpu/, to be copied to a machine
    /// without Rust
    Gpu(gpu::Gpu),
    /// Try the command under hostile circumstances: kills, full disks, no memory, foreign files, …
    Chaos(abide_chaos::Chaos),
    /// Build the package for Python into the folder target/python/ and run its tests
    Python(python::Python),
    /// Build the library for C, C++ and Fortran, and install it with its header into a folder
    C(c::C),
    /// Run processes as ranks over MPI: the communicator's tests and the command, against the files of one process
    Mpi,
    /// Build the page that runs Abide in a browser into the folder target/web/
    Web(web::Web),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().task {
        Task::Test(test) => test::run(&test),
        Task::Fuzz(fuzz) => fuzz.run(),
        Task::Gpu(gpu) => gpu.run(),
        Task::Chaos(chaos) => chaos.run(&cargo::root(), cargo::command),
        Task::Python(python) => python::run(&python),
        Task::C(c) => c.run(),
        Task::Mpi => mpi::run(),
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

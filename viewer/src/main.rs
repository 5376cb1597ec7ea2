//! The command `abide-view`, which `abide view` starts.

use std::process::ExitCode;

use abide_viewer::arguments::Arguments;
use abide_viewer::window;
use clap::Parser;

fn main() -> ExitCode {
    match window::open(Arguments::parse().opening()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

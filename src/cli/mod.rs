//! The command: what a user types, turned into calls of the library.

mod bench;
mod devices;
mod footprint;
mod list;
mod measured;
mod outputs;
mod plan;
mod problem;
mod report;
mod run;
mod solve;
mod verify;
mod view;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use abide::{Error, Result};
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "abide", version, about = ABOUT, after_help = EXAMPLES, max_term_width = 110)]
struct Command {
    #[command(subcommand)]
    verb: Verb,
}

const ABOUT: &str = "Stencils and models on grids and systems of linear equations, on NVIDIA GPUs, on any GPU by Vulkan, \
                     Metal or DX12, or on the CPU";

const EXAMPLES: &str = "\
Examples:
  abide run gray-scott --steps 5000 --output spots.png
  abide run 2d5pt --size 509x1021 --steps 100 --dtype f64 --input x.npy --output y.npy
  abide solve matrix.mtx --rhs b.mtx --output x.mtx
  abide list
  abide plan 2d5pt --size 3072x3072 --device a100
  abide bench stencils --stencil 2d5pt --baseline
  abide view --scene coral
  abide verify";

#[derive(Subcommand)]
enum Verb {
    /// Advance a stencil or model and write what comes out
    Run(Box<run::Run>),
    /// Solve a system of linear equations, its matrix from a file or a stencil
    Solve(Box<solve::Solve>),
    /// Watch a simulation in a window, see its rate, change it by hand
    View(view::View),
    /// List the stencils and models, with their parameters and footprints
    List(list::List),
    /// List the backends and their devices
    Devices(devices::Devices),
    /// Explain how a device would run a problem; no device is needed
    Plan(Box<plan::PlanArgs>),
    /// Measure rates on the machine at hand
    Bench(Box<bench::Bench>),
    /// Compare every backend with the reference, for every stencil and model
    Verify(verify::Verify),
}

/// How a command that made no error ended.
enum Outcome {
    Done,
    /// What was to be shown does not hold.
    Failed,
    /// The user interrupted it; what was done until then is reported.
    Interrupted,
}

/// Runs the command that the arguments name.
pub fn main() -> ExitCode {
    let outcome = match Command::parse().verb {
        Verb::Run(args) => args.execute(),
        Verb::Solve(args) => args.execute(),
        Verb::View(args) => args.execute(),
        Verb::List(args) => args.execute(),
        Verb::Devices(args) => args.execute(),
        Verb::Plan(args) => args.execute(),
        Verb::Bench(args) => args.execute(),
        Verb::Verify(args) => args.execute(),
    };
    match outcome {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Failed) => ExitCode::FAILURE,
        Ok(Outcome::Interrupted) => ExitCode::from(130),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Reads arguments, without the program's name before them, as the command would, and does nothing else: no file is
/// looked at, nothing is printed. The error is what the command would say; a call for help is none.
pub fn check_arguments(arguments: impl IntoIterator<Item = OsString>) -> std::result::Result<(), String> {
    match Command::try_parse_from(std::iter::once(OsString::from("abide")).chain(arguments)) {
        Err(error) if error.use_stderr() => Err(error.to_string()),
        _ => Ok(()),
    }
}

/// Writes to standard output; a reader that has gone away is no error.
fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::file("standard output", error, "send it elsewhere"))
        }
        _ => Ok(()),
    }
}

/// Writes a value to standard output as JSON.
fn print_json(value: &impl serde::Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|e| Error::invalid("the report as JSON", e.to_string(), "leave --json out"))?;
    print(&(text + "\n"))
}

/// A number of bytes with its unit.
fn bytes(count: f64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB"];
    let mut value = count;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    let digits = if value >= 100.0 || unit == 0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {}", units[unit])
}

/// `name=value`, where `name` is a word; a path with `=` in it can be written with a `./` before it.
fn named(text: &str) -> (Option<&str>, &str) {
    let word = |name: &str| {
        let mut letters = name.chars();
        letters.next().is_some_and(|c| c.is_alphabetic() || c == '_')
            && letters.all(|c| c.is_alphanumeric() || c == '_')
    };
    match text.split_once('=') {
        Some((name, rest)) if word(name) => (Some(name), rest),
        _ => (None, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_consistent() {
        use clap::CommandFactory;
        Command::command().debug_assert();
    }

    #[test]
    fn arguments_are_checked_without_being_followed() {
        let check = |line: &str| check_arguments(line.split_whitespace().map(OsString::from));
        for good in ["run heat --steps 1 --output no/where.npy", "solve none.mtx", "--help", "run --help", "--version"]
        {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for (bad, reason) in [("run heat --steps -1", "steps `-1`"), ("solve", "required"), ("walk", "walk")] {
            assert!(check(bad).unwrap_err().contains(reason), "{bad}");
        }
    }

    #[test]
    fn names_are_words() {
        assert_eq!(named("u=a=b.npy"), (Some("u"), "a=b.npy"));
        assert_eq!(named("./u=a.npy"), (None, "./u=a.npy"));
        assert_eq!(named("a.npy"), (None, "a.npy"));
    }

    #[test]
    fn bytes_have_three_digits() {
        assert_eq!(bytes(12.0), "12 B");
        assert_eq!(bytes(1234.0), "1.23 kB");
        assert_eq!(bytes(999.9e6), "1.00 GB");
        assert_eq!(bytes(45.6e9), "45.6 GB");
    }
}

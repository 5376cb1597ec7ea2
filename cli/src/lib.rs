//! The command: a user's words, turned into calls of the library [`abide`].
//!
//! Its program calls [`main`]; tools check arguments and tables in their own process.
#![deny(missing_docs)]

mod again;
mod config;
mod devices;
mod devices_chosen;
mod every;
mod finite;
mod footprint;
mod fusion;
mod gas;
mod growing;
mod help;
mod info;
mod list;
mod manual;
mod measured;
mod new;
mod outputs;
mod plan;
mod problem;
mod record;
mod report;
mod run;
mod run_files;
mod solve;
mod trust;
mod verify;
mod view;

use std::cell::RefCell;
use std::ffi::OsString;
use std::process::ExitCode;

use abide::backend::processes;
use abide::memory::amount as bytes;
use abide::{Error, Result};
use abide_bench::command::{Bench, Evaluate};
use abide_console::{
    Ended, Ending, complain, conclude, once, print, print_json, print_report, signals, wants_json,
};
use clap::{FromArgMatches, Parser, Subcommand};

pub use gas::check_states;

use help::described;

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
  abide new model.toml
  abide run model.toml --steps 100
  abide run 2d5pt --size 509x1021 --steps 100 --dtype f64 --input x.npy --output y.npy
  abide solve matrix.mtx --rhs b.mtx --output x.mtx
  abide gas --mixture CH4:0.3,O2:0.7 --T 150:1000:50 --p 5e6
  abide info run.h5
  abide list
  abide plan 2d5pt --size 3072x3072 --device a100
  abide bench stencils --stencil 2d5pt --baseline
  abide view --scene coral
  abide evaluate --quick
  abide verify

With --json, standard output is one JSON value, also where a command fails: \
{ \"error\": a sentence, \"kind\": usage, refusal, not-converged, not-finite, interrupted or device }.

Exit status: 0 done; 1 refused, or a device is not there or failed; 2 the arguments are wrong; 3 a solver did not \
converge; 4 `run --check-finite` found values that are not finite; 130 ended by Ctrl-C, 143 by a request to end.";

/// What the command prints without arguments.
const FIRST_STEPS: &str = "\
abide run gray-scott --steps 5000 --output spots.png   runs a model and writes a picture
abide list                                             lists the models; abide view shows them in a window
abide new mine.toml                                    writes a model file to change; abide run mine.toml runs it
abide --help                                           lists all commands; abide verify checks this machine
";

#[derive(Subcommand)]
enum Verb {
    /// Advance a stencil or model and write what comes out
    Run(Box<run::Run>),
    /// Write a commented model file, ready to be run and changed
    New(new::New),
    /// Solve a system of linear equations, its matrix from a file or a stencil
    Solve(Box<solve::Solve>),
    /// Print properties of real-gas mixtures, at single states or for a table of them
    Gas(Box<gas::Gas>),
    /// Watch a simulation in a window, see its rate, change it by hand
    View(view::View),
    /// List the stencils and models, or one's fields, parameters and footprints
    List(list::List),
    /// List the backends and their devices
    Devices(devices::Devices),
    /// Print what a file holds: fields, steps, and the run that it comes from
    Info(info::Info),
    /// Explain how a device would run a problem; no device is needed
    Plan(Box<plan::PlanArgs>),
    /// Measure rates on the machine at hand
    Bench(Box<Bench>),
    /// Evaluate this machine on one page: devices, bits, bandwidth, rates and what they mean
    Evaluate(Evaluate),
    /// Compare every backend with the reference, for every stencil and model
    Verify(verify::Verify),
    /// Print a script that completes these commands and options in a shell
    Completions(manual::Completions),
    /// Print the manual page, or write all pages into a folder
    Man(manual::Pages),
}

impl Verb {
    fn execute(&self) -> Ended {
        match self {
            Verb::Run(args) => args.execute(),
            Verb::New(args) => args.execute(),
            Verb::Solve(args) => args.execute(),
            Verb::Gas(args) => args.execute(),
            Verb::View(args) => args.execute(),
            Verb::List(args) => args.execute(),
            Verb::Devices(args) => args.execute(),
            Verb::Info(args) => args.execute(),
            Verb::Plan(args) => args.execute(),
            Verb::Bench(args) => args.execute(),
            Verb::Evaluate(args) => args.execute(),
            Verb::Verify(args) => args.execute(),
            Verb::Completions(args) => args.execute(),
            Verb::Man(args) => args.execute(),
        }
    }
}

/// Runs the command that the process's arguments name.
pub fn main() -> ExitCode {
    let typed: Vec<OsString> = std::env::args_os().collect();
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    share_the_heap();
    hush_decoders();
    let arguments = config::with_options(&typed);
    let all = arguments.as_ref().map_or(&typed, |arguments| &arguments.all);
    let wants_json = wants_json(all) && !writes_json(all);
    conclude(wants_json, || {
        if typed.len() == 1 {
            return Ok(print(FIRST_STEPS).map_err(Into::into));
        }
        // Processes join before the arguments are parsed, so that only one of them reports wrong arguments. All other
        // commands run in a single process, whoever starts it.
        let is_divided = typed.get(1).is_some_and(|verb| verb == "run" || verb == "solve");
        let joined = if is_divided { processes::join() } else { Ok(()) };
        let arguments = match joined.and(arguments) {
            Ok(arguments) => arguments,
            Err(error) => return Ok(Err(error.into())),
        };
        let config::Arguments { all, of_file } = arguments;
        let mut matches = described().try_get_matches_from(&all)?;
        let given = config::Given::of(&matches);
        let mut command = Command::from_arg_matches_mut(&mut matches)?;
        if let Verb::Run(run) = &mut command.verb {
            run.given = match given {
                Ok(given) => given,
                Err(error) => return Ok(Err(error.into())),
            };
            run.of_file = of_file;
        }
        Ok(command.verb.execute())
    })
}

/// Returns whether `evaluate` is to write its JSON into a file, while standard output has the page.
fn writes_json(arguments: &[OsString]) -> bool {
    let is_name = |argument: &OsString| !argument.to_string_lossy().starts_with('-');
    let names_a_file = |pair: &[OsString]| pair[0] == "--json" && is_name(&pair[1]);
    arguments.get(1).is_some_and(|verb| verb == "evaluate") && arguments.windows(2).any(names_a_file)
}

/// Lets all threads share one heap where little address space is left. Otherwise glibc reserves 64 MB for the first
/// allocation of each thread, and whether the next thread then finds room for its stack is a race.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn share_the_heap() {
    /// Address space that heaps of many threads fit into, in bytes.
    const MUCH: u64 = 8 << 30;
    if abide::memory::room_for_addresses().is_some_and(|room| room < MUCH) {
        // SAFETY: it changes a number of the allocator, under the allocator's own lock; no other thread runs yet.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    }
}

/// Hides panics that the library turns into errors.
fn hush_decoders() {
    let say = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !abide::io::is_decoding() {
            say(panic);
        }
    }));
}

/// Reads arguments, without the program's name before them, as the command would, and does nothing else: no
/// file is looked at, nothing is printed. The error is the command's; a call for help is no error.
pub fn check_arguments(arguments: impl IntoIterator<Item = OsString>) -> std::result::Result<(), String> {
    thread_local! {
        // Describing all arguments takes most of a check's time.
        static DESCRIBED: RefCell<clap::Command> = RefCell::new(described());
    }
    let arguments = std::iter::once(OsString::from("abide")).chain(arguments);
    let matches = DESCRIBED.with_borrow_mut(|command| command.try_get_matches_from_mut(arguments));
    match matches.and_then(|mut matches| Command::from_arg_matches_mut(&mut matches)) {
        Err(error) if error.use_stderr() => Err(error.to_string()),
        _ => Ok(()),
    }
}

/// Reads a whole number of at least `least`, as in `example`.
fn whole<N: TryFrom<u64>>(what: &str, text: &str, least: u64, example: &str) -> Result<N> {
    let number = text.parse::<u64>().ok().filter(|number| *number >= least);
    number.and_then(|number| N::try_from(number).ok()).ok_or_else(|| {
        let meant = abide_core::words::meant_number(text).filter(|number| *number >= least);
        let change = match meant {
            Some(number) => format!("did you mean {number}?"),
            None => format!("write it like {example}"),
        };
        Error::invalid(format!("{what} `{text}`"), format!("not a whole number of {least} or more"), change)
    })
}

/// Splits `name=value`, where `name` is a word or a component, as `Y[0]`; a path with `=` in it can be written with a
/// `./` before it.
fn named(text: &str) -> (Option<&str>, &str) {
    let word = |name: &str| {
        let component = name.strip_suffix(']').and_then(|name| name.rsplit_once('['));
        let is_number =
            |digits: &str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        let mut letters = match component {
            Some((name, digits)) if is_number(digits) => name.chars(),
            _ => name.chars(),
        };
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
    fn arguments_are_checked_without_being_followed() {
        let check = |line: &str| check_arguments(line.split_whitespace().map(OsString::from));
        for good in [
            "run heat --steps 1 --output no/where.npy",
            "solve none.mtx",
            "--help",
            "run --help",
            "--version",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for (bad, reason) in [("run heat --steps -1", "steps `-1`"), ("solve", "required"), ("walk", "walk")]
        {
            assert!(check(bad).unwrap_err().contains(reason), "{bad}");
        }
    }

    #[test]
    fn names_are_words() {
        assert_eq!(named("u=a=b.npy"), (Some("u"), "a=b.npy"));
        assert_eq!(named("./u=a.npy"), (None, "./u=a.npy"));
        assert_eq!(named("a.npy"), (None, "a.npy"));
        assert_eq!(named("Y[0]=o.npy"), (Some("Y[0]"), "o.npy"));
        assert_eq!(named("Y[x]=o.npy"), (None, "Y[x]=o.npy"));
        assert_eq!(named("Y[]=o.npy"), (None, "Y[]=o.npy"));
    }
}

//! Endings of a command: a sentence, its kind, an exit status. With `--json`, everything is one value on
//! standard output.

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use abide::backend::processes;
use abide::solve::SolverError;
use abide::{Error, ErrorKind, Result};
use serde::Serialize;
use serde_json::json;

use super::{complain, print, signals};

/// Whether the one value that `--json` promises has been begun.
static WROTE_JSON: AtomicBool = AtomicBool::new(false);

/// The exit status of a panic.
const PANICKED: u8 = 101;

/// The outcome of a command.
pub type Ended = Result<(), Ending>;

/// The reason why a command did not do all that was asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    kind: ErrorKind,
    sentence: String,
}

impl From<Error> for Ending {
    fn from(error: Error) -> Ending {
        Ending { kind: error.kind(), sentence: error.to_string() }
    }
}

impl From<&SolverError> for Ending {
    fn from(error: &SolverError) -> Ending {
        Ending { kind: error.kind(), sentence: error.to_string() }
    }
}

impl Ending {
    /// Makes the ending for arguments that contradict each other, whatever the error's kind would be
    /// elsewhere.
    pub fn usage(error: Error) -> Ending {
        Ending { kind: ErrorKind::Usage, sentence: error.to_string() }
    }

    /// Makes the ending for a claim that does not hold.
    pub fn refuted(sentence: impl Into<String>) -> Ending {
        Ending { kind: ErrorKind::Refusal, sentence: sentence.into() }
    }

    /// Makes the ending for a run whose values were to be finite.
    pub fn not_finite(sentence: impl Into<String>) -> Ending {
        Ending { kind: ErrorKind::NotFinite, sentence: sentence.into() }
    }

    /// Makes the ending for a window's program that refused its arguments, or failed. `words` are what it
    /// wrote to standard error, empty where the user has seen them.
    pub fn of_child(is_usage: bool, words: &str) -> Ending {
        let kind = if is_usage { ErrorKind::Usage } else { ErrorKind::Refusal };
        Ending { kind, sentence: first_sentence(words) }
    }

    /// Makes the ending for files that could not be written. The first fault is the ending's; the others are
    /// printed before it.
    pub fn unwritten(faults: &[Error]) -> Ended {
        let Some((first, others)) = faults.split_first() else { return Ok(()) };
        // Several processes have the same, but for those of the first's files.
        let others = if processes::is_first() { others } else { &[] };
        others.iter().for_each(|fault| complain(format_args!("error: {fault}")));
        Err(first.clone().into())
    }

    /// Makes the ending for a signal; `done` says what was done until then.
    pub fn interrupted(done: impl std::fmt::Display) -> Ending {
        Ending { kind: ErrorKind::Interrupted, sentence: format!("{}: {done}", signals::words()) }
    }

    /// Makes the ending from the argument parser's words, in one line.
    fn of_parser(error: &clap::Error) -> Ending {
        Ending { kind: ErrorKind::Usage, sentence: first_sentence(&error.render().to_string()) }
    }

    fn status(&self) -> u8 {
        match self.kind {
            ErrorKind::Usage => 2,
            ErrorKind::Refusal | ErrorKind::Device => 1,
            ErrorKind::NotConverged => 3,
            ErrorKind::NotFinite => 4,
            ErrorKind::Interrupted => signals::status(),
        }
    }

    fn json(&self) -> serde_json::Value {
        json!({ "error": self.sentence, "kind": self.kind })
    }
}

/// Returns the text after `error:` up to the first blank line, in one line; hints on usage follow the blank
/// line.
fn first_sentence(text: &str) -> String {
    let sentence = text.split_once("error: ").map_or(text, |(_, rest)| rest).trim_start();
    sentence.lines().map(str::trim).take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Returns whether errors are wanted as JSON, by the bare words, because the parser may have refused them.
pub fn wants_json(arguments: &[OsString]) -> bool {
    arguments.iter().skip(1).take_while(|argument| *argument != "--").any(|argument| argument == "--json")
}

/// Runs a command and turns its outcome into words and an exit status.
pub fn conclude(json: bool, command: impl FnOnce() -> Result<Ended, clap::Error>) -> ExitCode {
    let last = move |ending: &Ending| {
        if processes::is_first() {
            write_once(json, &ending.json());
        }
    };
    if let Err(error) = signals::listen(last) {
        let ending = Ending::from(error);
        report(json, &ending);
        return ExitCode::from(ending.status());
    }
    let ended = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(command)) {
        Ok(ended) => ended.map_err(|error| Fault::Parser(error.into())),
        Err(panic) => {
            let words =
                panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            Err(Fault::Panic(format!("a defect of Abide, please report it: {}", words.unwrap_or("a panic"))))
        }
    };
    let (status, words) = match &ended {
        Ok(Ok(())) => (0, ""),
        Ok(Err(ending)) => (ending.status(), &ending.sentence[..]),
        Err(Fault::Parser(error)) => (if error.use_stderr() { 2 } else { 0 }, "its arguments are wrong"),
        Err(Fault::Panic(sentence)) => (PANICKED, &sentence[..]),
    };
    // Only one of several processes prints the ending.
    let closed = processes::close(status, words);
    match &ended {
        _ if !closed.tells => {}
        Ok(Ok(())) => {}
        Ok(Err(ending)) => report(json, ending),
        Err(Fault::Parser(error)) => {
            // A failure to write to standard error cannot be reported there.
            let _ = error.print();
            if error.use_stderr() {
                write_once(json, &Ending::of_parser(error).json());
            }
        }
        // The panic's hook has written to standard error; a script reads standard output.
        Err(Fault::Panic(sentence)) => write_once(json, &json!({ "error": sentence, "kind": "defect" })),
    }
    processes::end(closed.status);
    ExitCode::from(closed.status)
}

/// What ends a command beside its own endings.
enum Fault {
    Parser(Box<clap::Error>),
    Panic(String),
}

fn report(json: bool, ending: &Ending) {
    if !ending.sentence.is_empty() {
        complain(format_args!("error: {}", ending.sentence));
    }
    write_once(json, &ending.json());
}

/// Writes an error as JSON, unless JSON has been written already.
fn write_once(json: bool, error: &serde_json::Value) {
    if json && !WROTE_JSON.swap(true, Ordering::SeqCst) {
        // Where standard output cannot be written, the exit status is all that is left.
        let _ = write(error);
    }
}

/// Writes a value to standard output as JSON: the only value there.
pub fn print_json(value: &impl Serialize) -> Result<()> {
    if WROTE_JSON.swap(true, Ordering::SeqCst) {
        // A signal's handler has reported how the command ends, and is about to end it.
        loop {
            std::thread::park();
        }
    }
    write(value)
}

fn write(value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|e| Error::invalid("the report as JSON", e.to_string(), "leave --json out"))?;
    print(&(text + "\n"))
}

/// A report and the command's error: `null` for both where all went well.
#[derive(Serialize)]
struct Reported<'a, T: Serialize> {
    #[serde(flatten)]
    report: &'a T,
    error: Option<&'a str>,
    kind: Option<ErrorKind>,
}

/// Writes a report as JSON with the command's ending, and returns the ending.
pub fn print_report(report: &impl Serialize, ended: Ended) -> Ended {
    let ending = ended.as_ref().err();
    let error = ending.map(|ending| ending.sentence.as_str());
    print_json(&Reported { report, error, kind: ending.map(|ending| ending.kind) })?;
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_asked_for_before_a_double_dash() {
        let wants = |line: &str| wants_json(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert!(
            wants("abide walk --json") && wants("abide run heat --json --steps x") && wants("abide --json")
        );
        assert!(!wants("--json run heat") && !wants("abide view -- --json") && !wants("abide run --json=1"));
    }

    #[test]
    fn reports_keep_their_keys_and_their_order() {
        let report = abide::verify::Verification { findings: Vec::new(), skipped: Vec::new() };
        let reported = Reported { report: &report, error: Some("why"), kind: Some(ErrorKind::NotConverged) };
        let text = serde_json::to_string(&reported).unwrap();
        assert_eq!(text, r#"{"findings":[],"skipped":[],"error":"why","kind":"not-converged"}"#);
    }

    #[test]
    fn a_parsers_error_is_one_sentence() {
        let error = clap::Command::new("abide").arg(clap::arg!(--steps <N>).required(true));
        let error = error.try_get_matches_from(["abide"]).unwrap_err();
        let sentence = Ending::of_parser(&error).sentence;
        assert_eq!(sentence, "the following required arguments were not provided: --steps <N>");
    }
}

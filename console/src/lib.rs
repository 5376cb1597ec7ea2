//! What the commands of Abide share: how they end, what they print, and how they are told how to run.
//!
//! A command returns [`Ended`]; [`conclude`] turns that into one sentence on standard error, a value of JSON where `--json`
//! asks for one, and the exit status. Signals end a command likewise ([`signals`]).
#![deny(missing_docs)]

mod ending;
pub mod headings;
mod run_options;
pub mod signals;

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::Write;

use abide::{Error, Result};

pub use ending::{Ended, Ending, conclude, print_json, print_report, wants_json};
pub use run_options::RunOptions;

/// Writes a line to standard error. Where standard error cannot be written, the exit status is all that is
/// left.
pub fn complain(words: impl Display) {
    let _ = writeln!(std::io::stderr(), "{words}");
}

/// Writes to standard output; a reader that has gone away is no error.
pub fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::file("standard output", error, "send it elsewhere"))
        }
        _ => Ok(()),
    }
}

/// Returns an error where an option is given twice for the same thing.
pub fn once<T: Display>(option: &str, things: impl IntoIterator<Item = T>) -> Result<()> {
    let mut seen = BTreeSet::new();
    let mut things = things.into_iter().map(|thing| thing.to_string());
    match things.find(|thing| !seen.insert(thing.clone())) {
        Some(thing) => Err(Error::invalid(format!("{option} {thing}"), "it is given twice", "give it once")),
        None => Ok(()),
    }
}

//! Faults in a text, and where they are.

use std::ops::Range;

use abide_core::Error;
use abide_core::words::suggestion;

/// A fault in a text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fault {
    /// The faulty bytes of the text.
    pub at: Range<usize>,
    pub reason: String,
    /// The advice on what to change.
    pub change: String,
}

impl Fault {
    pub fn new(at: Range<usize>, reason: impl Into<String>, change: impl Into<String>) -> Fault {
        Fault { at, reason: reason.into(), change: change.into() }
    }

    /// Makes the fault of a name that is not known.
    pub fn unknown<N: AsRef<str>>(
        at: Range<usize>,
        kind: &str,
        name: &str,
        known: impl IntoIterator<Item = N>,
    ) -> Fault {
        let known: Vec<String> = known.into_iter().map(|name| name.as_ref().to_owned()).collect();
        let change = match known.as_slice() {
            [] => "there is none".to_owned(),
            all => {
                let meant = suggestion(name, all.iter().map(String::as_str));
                format!("use one of {}{meant}", all.join(", "))
            }
        };
        Fault::new(at, format!("no {kind} is named `{name}`"), change)
    }

    /// Makes the fault that another part of Abide found at a place.
    pub fn of(at: Range<usize>, error: Error) -> Fault {
        match error {
            Error::Limit { what, asked, limit, change } => {
                Fault::new(at, format!("{what}: {asked} asked, the limit is {limit}"), change)
            }
            Error::Invalid { what, reason, change } => Fault::new(at, format!("{what}: {reason}"), change),
            Error::Unknown { kind, asked, known } => {
                let meant = suggestion(&asked, known.split(", "));
                Fault::new(at, format!("no {kind} is named `{asked}`"), format!("use one of {known}{meant}"))
            }
            other => Fault::new(at, other.to_string(), "see what it says"),
        }
    }

    /// Returns the error, which names the line and the column of the text; `source` is its file or its kind.
    pub fn error(self, source: &str, text: &str) -> Error {
        let before = text.get(..self.at.start).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or(before).chars().count() + 1;
        Error::invalid(format!("{source}, line {line}, column {column}"), self.reason, self.change)
    }
}

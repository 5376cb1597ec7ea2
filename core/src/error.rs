//! One error type for the whole project: every message names the limit, what was asked and what to change.

use std::fmt::{self, Display, Write};
use std::path::PathBuf;

use crate::words::suggestion;

/// The result of every fallible call in Abide.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error, in words that a user can act on.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A resource or a rule of the model has a limit, and the request is beyond it.
    #[error("{}: {} asked, the limit is {}; {change}", Plain(.what), Plain(.asked), Plain(.limit))]
    Limit {
        /// The limited quantity.
        what: String,
        /// The value that was asked for.
        asked: String,
        /// The limit.
        limit: String,
        /// The advice on what to change.
        change: String,
    },
    /// A value cannot be used.
    #[error("{}: {}; {change}", Plain(.what), Plain(.reason))]
    Invalid {
        /// The value or argument.
        what: String,
        /// The reason why it cannot be used.
        reason: String,
        /// The advice on what to change.
        change: String,
    },
    /// A name is not known.
    #[error("no {kind} is named `{}`; known: {}{}", Plain(.asked), Plain(.known), Plain(suggestion(.asked, .known.split(", "))))]
    Unknown {
        /// The kind of thing that was looked up.
        kind: &'static str,
        /// The name asked for.
        asked: String,
        /// The names there are, separated by commas.
        known: String,
    },
    /// A backend's device, driver or library is not there.
    #[error("backend {backend} is unavailable: {reason}")]
    Unavailable {
        /// The backend.
        backend: &'static str,
        /// The reason why it is unavailable.
        reason: String,
    },
    /// A backend or a device is there but cannot run this problem.
    #[error("{who} cannot run this: {reason}; {change}")]
    Unsupported {
        /// The backend or device, as in `backend cpu`, or a device's name.
        who: String,
        /// The feature or operation that is missing.
        reason: String,
        /// The advice on what to change.
        change: String,
    },
    /// A call into a driver or a device failed.
    #[error("backend {backend}: {operation} failed: {message}")]
    Device {
        /// The backend.
        backend: &'static str,
        /// The operation that failed.
        operation: String,
        /// The driver's own words.
        message: String,
    },
    /// A kernel did not compile.
    #[error("backend {backend} could not compile a kernel for {target}:\n{log}")]
    Compile {
        /// The backend.
        backend: &'static str,
        /// The target architecture or language.
        target: String,
        /// The compiler's log.
        log: String,
    },
    /// A file could not be read or written.
    #[error("{}: {}; {}", Plain(.path.display()), Plain(.message), Plain(.change))]
    File {
        /// The file.
        path: PathBuf,
        /// The fault.
        message: String,
        /// The advice on what to change.
        change: String,
    },
}

/// Text that may come from a file or a file's name: characters that would move a terminal's cursor or end a
/// line are escaped.
struct Plain<T>(T);

impl<T: Display> Display for Plain<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Escaping<'a, 'b>(&'a mut fmt::Formatter<'b>);
        impl Write for Escaping<'_, '_> {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                for part in text.split_inclusive(char::is_control) {
                    let plain = part.trim_end_matches(char::is_control);
                    self.0.write_str(plain)?;
                    write!(self.0, "{}", part[plain.len()..].escape_debug())?;
                }
                Ok(())
            }
        }
        write!(Escaping(f), "{}", self.0)
    }
}

impl Error {
    /// Makes an [`Error::Limit`].
    pub fn limit(
        what: impl Into<String>,
        asked: impl ToString,
        limit: impl ToString,
        change: impl Into<String>,
    ) -> Self {
        Error::Limit {
            what: what.into(),
            asked: asked.to_string(),
            limit: limit.to_string(),
            change: change.into(),
        }
    }

    /// Makes an [`Error::Invalid`].
    pub fn invalid(what: impl Into<String>, reason: impl Into<String>, change: impl Into<String>) -> Self {
        Error::Invalid { what: what.into(), reason: reason.into(), change: change.into() }
    }

    /// Makes an [`Error::Unknown`] that lists the names there are.
    pub fn unknown<S: AsRef<str>>(
        kind: &'static str,
        asked: impl Into<String>,
        known: impl IntoIterator<Item = S>,
    ) -> Self {
        let known: Vec<String> = known.into_iter().map(|name| name.as_ref().to_owned()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Error::Unknown { kind, asked: asked.into(), known }
    }

    /// Makes an [`Error::Unsupported`].
    pub fn unsupported(who: impl Into<String>, reason: impl Into<String>, change: impl Into<String>) -> Self {
        Error::Unsupported { who: who.into(), reason: reason.into(), change: change.into() }
    }

    /// Makes an [`Error::Device`].
    pub fn device(backend: &'static str, operation: impl Into<String>, message: impl ToString) -> Self {
        Error::Device { backend, operation: operation.into(), message: message.to_string() }
    }

    /// Makes an [`Error::File`].
    pub fn file(path: impl Into<PathBuf>, message: impl ToString, change: impl Into<String>) -> Self {
        Error::File { path: path.into(), message: message.to_string(), change: change.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        let error = Error::file("a\u{1b}[2J.npz", "line\nline\ttab \u{9b}31mé", "give another");
        assert_eq!(error.to_string(), r"a\u{1b}[2J.npz: line\nline\ttab \u{9b}31mé; give another");
        let error = Error::unknown("stencil", "\u{1b}[31m\r\r", ["heat"]);
        assert_eq!(error.to_string(), r"no stencil is named `\u{1b}[31m\r\r`; known: heat");
        assert_eq!(Error::invalid("a", "b", "c").to_string(), "a: b; c");
    }
}

//! One error type for the whole project: every message names the limit, what was asked and what to change.

use std::path::PathBuf;

/// The result of every fallible call in Abide.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, in words a user can act on.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A resource or a rule of the model has a limit, and the request is beyond it.
    #[error("{what}: {asked} asked, the limit is {limit}; {change}")]
    Limit {
        /// The limited quantity.
        what: String,
        /// What was asked for.
        asked: String,
        /// The limit.
        limit: String,
        /// What to change.
        change: String,
    },
    /// A value that cannot be used.
    #[error("{what}: {reason}; {change}")]
    Invalid {
        /// The value or argument.
        what: String,
        /// Why it cannot be used.
        reason: String,
        /// What to change.
        change: String,
    },
    /// A name that is not known.
    #[error("no {kind} is named `{asked}`; known: {known}")]
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
        /// Why it is unavailable.
        reason: String,
    },
    /// A backend is there but cannot run this problem.
    #[error("backend {backend} cannot run this: {reason}; {change}")]
    Unsupported {
        /// The backend.
        backend: &'static str,
        /// The feature or operation that is missing.
        reason: String,
        /// What to change.
        change: String,
    },
    /// A call into a driver or a device failed.
    #[error("backend {backend}: {operation} failed: {message}")]
    Device {
        /// The backend.
        backend: &'static str,
        /// What was being done.
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
    #[error("{path}: {message}; {change}", path = line(.path.display()))]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
        /// What to change.
        change: String,
    },
}

impl Error {
    /// An [`Error::Limit`].
    pub fn limit(
        what: impl Into<String>,
        asked: impl ToString,
        limit: impl ToString,
        change: impl Into<String>,
    ) -> Self {
        Error::Limit { what: line(what.into()), asked: line(asked), limit: line(limit), change: change.into() }
    }

    /// An [`Error::Invalid`].
    pub fn invalid(what: impl Into<String>, reason: impl Into<String>, change: impl Into<String>) -> Self {
        Error::Invalid { what: line(what.into()), reason: line(reason.into()), change: change.into() }
    }

    /// An [`Error::Unknown`], listing the names there are.
    pub fn unknown<S: AsRef<str>>(
        kind: &'static str,
        asked: impl Into<String>,
        known: impl IntoIterator<Item = S>,
    ) -> Self {
        let known: Vec<String> = known.into_iter().map(|name| name.as_ref().to_owned()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Error::Unknown { kind, asked: line(asked.into()), known }
    }

    /// An [`Error::Device`].
    pub fn device(backend: &'static str, operation: impl Into<String>, message: impl ToString) -> Self {
        Error::Device { backend, operation: operation.into(), message: message.to_string() }
    }

    /// An [`Error::File`].
    pub fn file(path: impl Into<PathBuf>, message: impl ToString, change: impl Into<String>) -> Self {
        Error::File { path: path.into(), message: line(message), change: change.into() }
    }
}

/// Words of others, as a library's or a file's own, in one line that a terminal shows as it is.
fn line(text: impl ToString) -> String {
    let text = text.to_string();
    let text = text.trim_end();
    if !text.contains(char::is_control) {
        return text.to_owned();
    }
    let letter =
        |letter: char| if letter.is_control() { letter.escape_default().collect() } else { String::from(letter) };
    text.chars().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_others_stay_in_one_line() {
        let error = Error::file("a.npz", "the field `\u{1b}[31m\n` is é\n", "save it anew");
        assert_eq!(error.to_string(), "a.npz: the field `\\u{1b}[31m\\n` is é; save it anew");
        let error = Error::unknown("dtype", "f\u{7}", ["f32"]);
        assert_eq!(error.to_string(), "no dtype is named `f\\u{7}`; known: f32");
        let error = Error::invalid("boundary `\r`", "not\tone", "name one");
        assert_eq!(error.to_string(), "boundary `\\r`: not\\tone; name one");
    }
}

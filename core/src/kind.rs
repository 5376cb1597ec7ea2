//! The kinds of failures, for scripts that must distinguish errors.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::error::Error;
use crate::solver::SolverError;

/// The kind of failure that an error is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The request is wrong by itself: it has a name that is not known, or a value that cannot be used.
    Usage,
    /// The request is understood but cannot be carried out: because of a file, a limit, a matrix that cannot
    /// be solved, or an ability that a backend lacks.
    Refusal,
    /// A solver began, and came to no solution.
    NotConverged,
    /// A run was to have finite values alone, and has others.
    NotFinite,
    /// The user or the system ended the run.
    Interrupted,
    /// A device, its driver or its compiler is not there or failed.
    Device,
}

impl ErrorKind {
    /// All kinds.
    pub const ALL: [ErrorKind; 6] = [
        ErrorKind::Usage,
        ErrorKind::Refusal,
        ErrorKind::NotConverged,
        ErrorKind::NotFinite,
        ErrorKind::Interrupted,
        ErrorKind::Device,
    ];

    /// Returns `usage`, `refusal`, `not-converged`, `not-finite`, `interrupted` or `device`.
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::Usage => "usage",
            ErrorKind::Refusal => "refusal",
            ErrorKind::NotConverged => "not-converged",
            ErrorKind::NotFinite => "not-finite",
            ErrorKind::Interrupted => "interrupted",
            ErrorKind::Device => "device",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for ErrorKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl Error {
    /// Returns the kind of failure.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Invalid { .. } | Error::Unknown { .. } => ErrorKind::Usage,
            Error::Limit { .. } | Error::File { .. } | Error::Unsupported { .. } => ErrorKind::Refusal,
            Error::Unavailable { .. } | Error::Device { .. } | Error::Compile { .. } => ErrorKind::Device,
        }
    }
}

impl SolverError {
    /// Returns the kind of failure.
    pub fn kind(&self) -> ErrorKind {
        match self {
            // An invalid input of a solver is the matrix or a vector: the numbers are wrong, not the request.
            SolverError::Invalid(error) => match error.kind() {
                ErrorKind::Usage => ErrorKind::Refusal,
                kind => kind,
            },
            SolverError::NotSymmetric { .. }
            | SolverError::NotPositive { .. }
            | SolverError::Singular { .. } => ErrorKind::Refusal,
            SolverError::Breakdown { .. }
            | SolverError::Indefinite { .. }
            | SolverError::Inconsistent { .. }
            | SolverError::SingularToRounding { .. }
            | SolverError::OutOfRange { .. }
            | SolverError::Stagnation { .. }
            | SolverError::NotFinite { .. }
            | SolverError::NotConverged { .. } => ErrorKind::NotConverged,
            SolverError::Stopped { .. } => ErrorKind::Interrupted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_solver_refuses_what_a_request_misuses() {
        let invalid = Error::invalid("the matrix", "it has no rows", "give at least one");
        assert_eq!(invalid.kind(), ErrorKind::Usage);
        assert_eq!(SolverError::Invalid(invalid).kind(), ErrorKind::Refusal);
        let lost = Error::device("cuda", "a launch", "the device is lost");
        assert_eq!((lost.kind(), SolverError::from(lost).kind()), (ErrorKind::Device, ErrorKind::Device));
        assert_eq!(SolverError::Singular { row: 3 }.kind(), ErrorKind::Refusal);
    }
}

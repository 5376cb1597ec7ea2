//! A solver's parameters, its result and its errors: three types.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::error::Error;

/// When a solver stops. Norms are Euclidean; `r = b - A x`.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// Stop when `|r| <= relative |b|`. Default 1e-6; 0 leaves this test out.
    pub relative: f64,
    /// Stop when `|r| <= absolute`. Default 0, which leaves this test out.
    pub absolute: f64,
    /// Iterations at most, and entries that the history has room for. Default 10,000.
    pub iterations: usize,
    /// Wall time at most, looked at once an iteration. Default none.
    pub time: Option<Duration>,
    /// Give up when this many iterations in a row bring no new least residual. Default 1,000.
    pub stagnation: usize,
    /// By how many times the true residual may exceed the threshold when the recurred one has met it. Default 10.
    ///
    /// Recurred residuals go on falling after rounding has stopped the true one; a larger gap is
    /// [`SolverError::Stagnation`], not success.
    pub drift: f64,
}

impl Parameters {
    /// The defaults that the fields name.
    pub const DEFAULT: Parameters =
        Parameters { relative: 1e-6, absolute: 0.0, iterations: 10_000, time: None, stagnation: 1_000, drift: 10.0 };
}

impl Default for Parameters {
    fn default() -> Self {
        Parameters::DEFAULT
    }
}

/// What a solver did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The method's name.
    pub method: &'static str,
    /// Iterations done.
    pub iterations: usize,
    /// The norm of the residual before each iteration and after the last: `history[k]` is that of the k-th iterate.
    pub history: Vec<f64>,
    /// The threshold that the residual was compared with: the larger of `relative |b|` and `absolute`.
    pub threshold: f64,
    /// The norm of `b - A x` for the returned `x`, computed afresh; nothing where an error came first.
    pub true_residual: Option<f64>,
    /// Wall time in seconds, the set-up included.
    pub seconds: f64,
}

/// The limit that ended a run without convergence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exhausted {
    /// [`Parameters::iterations`].
    Iterations,
    /// [`Parameters::time`].
    Time,
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Exhausted::Iterations => "iterations",
            Exhausted::Time => "time",
        })
    }
}

/// Why a solver stopped short. All but [`Invalid`](SolverError::Invalid) carry the report, with the history of residuals.
///
/// The caller's `x` then holds the last iterate.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SolverError {
    /// The arguments cannot be used; nothing was computed.
    #[error(transparent)]
    Invalid(#[from] Error),
    /// A quantity that the method divides by vanished, though the residual has not.
    #[error(
        "{} broke down in iteration {}: {quantity} vanished; start from another x, or use another method",
        .report.method, .report.iterations
    )]
    Breakdown {
        /// The quantity, as the method's paper writes it.
        quantity: &'static str,
        /// What was done until then.
        report: Box<Report>,
    },
    /// A quantity that is positive for every symmetric positive definite system was not.
    #[error(
        "{} found {quantity} = {value:e} in iteration {}: the matrix or the preconditioner is not symmetric positive \
         definite; use bicgstab or gmres",
        .report.method, .report.iterations
    )]
    Indefinite {
        /// The quantity, as the method's paper writes it.
        quantity: &'static str,
        /// Its value.
        value: f64,
        /// What was done until then.
        report: Box<Report>,
    },
    /// The residual no longer falls.
    #[error(
        "{} stagnated after {} iterations at a residual of {:e} (wanted {:e}); loosen the tolerance, compute in f64, \
         or use a better preconditioner",
        .report.method, .report.iterations,
        .report.true_residual.or(.report.history.last().copied()).unwrap_or(f64::NAN), .report.threshold
    )]
    Stagnation {
        /// What was done until then.
        report: Box<Report>,
    },
    /// A NaN or an infinity appeared.
    #[error(
        "{}: {quantity} is not finite in iteration {}; look for NaN in the input, or scale the system",
        .report.method, .report.iterations
    )]
    NotFinite {
        /// Where it was seen.
        quantity: &'static str,
        /// What was done until then.
        report: Box<Report>,
    },
    /// A limit came before convergence.
    #[error(
        "{} did not converge: the limit on {limit} ended it after {} iterations at a residual of {:e} (wanted {:e}); \
         raise the limit or use a better preconditioner",
        .report.method, .report.iterations, .report.history.last().copied().unwrap_or(f64::NAN), .report.threshold
    )]
    NotConverged {
        /// The limit.
        limit: Exhausted,
        /// What was done until then.
        report: Box<Report>,
    },
}

impl SolverError {
    /// What was done until the error; nothing where the arguments were refused.
    pub fn report(&self) -> Option<&Report> {
        match self {
            SolverError::Invalid(_) => None,
            SolverError::Breakdown { report, .. }
            | SolverError::Indefinite { report, .. }
            | SolverError::Stagnation { report }
            | SolverError::NotFinite { report, .. }
            | SolverError::NotConverged { report, .. } => Some(report),
        }
    }

    /// The norms of the residual until the error.
    pub fn history(&self) -> &[f64] {
        self.report().map_or(&[], |report| &report.history)
    }
}

//! A solver's parameters, its result and its errors: three types.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::real::DType;

/// The parameters that say when a solver stops. Norms are Euclidean; `r = b - A x`.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// The run stops when `|r| <= relative |b|`. Default 1e-6; 0 leaves this test out.
    pub relative: f64,
    /// The run stops when `|r| <= absolute`. Default 0, which leaves this test out.
    pub absolute: f64,
    /// The most iterations. Default 10,000.
    pub iterations: usize,
    /// The most wall time, checked once per iteration. Default none.
    pub time: Option<Duration>,
    /// The number of iterations in a row without progress after which the run gives up; `None` for never.
    /// Default 1,000.
    ///
    /// Progress is a new least residual or, with conjugate gradients, energy: see
    /// [`Measure`](super::Measure). Energy is checked in stretches of this many iterations.
    pub stagnation: Option<usize>,
    /// The factor by which the true residual may exceed the threshold when the recurred one has met it.
    /// Default 10.
    ///
    /// Recurred residuals go on falling after rounding has stopped the true one. A larger gap is
    /// [`SolverError::Stagnation`], not success.
    pub drift: f64,
}

impl Parameters {
    /// The default values, as each field names them.
    pub const DEFAULT: Parameters = Parameters {
        relative: 1e-6,
        absolute: 0.0,
        iterations: 10_000,
        time: None,
        stagnation: Some(1_000),
        drift: 10.0,
    };

    /// Returns [`stagnation`](Parameters::stagnation) as kernels count it: at least 1, and the largest number
    /// for never.
    pub fn stagnation(&self) -> u32 {
        self.stagnation.map_or(u32::MAX, |stagnation| u32::try_from(stagnation.max(1)).unwrap_or(u32::MAX))
    }

    /// Checks that the tolerances are numbers that a residual can be compared with.
    pub fn check(&self) -> Result<()> {
        for (name, value) in [("relative", self.relative), ("absolute", self.absolute), ("drift", self.drift)]
        {
            if !(value.is_finite() && value >= 0.0) {
                let change = "give a finite number, 0 or more";
                return Err(Error::invalid(format!("solver parameter `{name}`"), format!("{value}"), change));
            }
        }
        Ok(())
    }
}

impl Default for Parameters {
    fn default() -> Self {
        Parameters::DEFAULT
    }
}

/// The report on a solve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The method's name.
    pub method: &'static str,
    /// The type of the iterations; f32 for mixed precision.
    pub dtype: DType,
    /// Iterations done.
    pub iterations: usize,
    /// The norm of the residual before each iteration and after the last one: `history[k]` is that of the
    /// k-th iterate.
    pub history: Vec<f64>,
    /// The norm of the right-hand side.
    pub norm: f64,
    /// The threshold that the residual was compared with: the larger of `relative |b|` and `absolute`.
    pub threshold: f64,
    /// The norm of `b - A x` for the returned `x`, computed afresh; `None` if an error came first.
    pub true_residual: Option<f64>,
    /// How many times BiCGStab broke down and started anew, with a new shadow residual.
    pub restarts: usize,
    /// The iterations of a cycle of GMRES, where that was the method and the caller's layer knows it.
    pub cycle: Option<usize>,
    /// Wall time in seconds, the set-up included.
    pub seconds: f64,
    /// Seconds from the first residual to the last: those of `iterations` iterations.
    pub iteration_seconds: f64,
    /// What each device did, where several devices solved.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<RankSolve>,
}

/// What one of several devices did in a solve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RankSolve {
    /// The device's rank, counted from 0.
    pub rank: usize,
    /// Its own rows.
    pub rows: Range<usize>,
    /// How it gave entries of vectors to others: `messages`, or `stores` into their memory.
    pub exchange: &'static str,
    /// Seconds in which it computed.
    pub seconds: f64,
    /// Seconds in which it exchanged entries and sums, or waited for other ranks.
    pub exchange_seconds: f64,
    /// The share of its time in which it computed, 0 to 1.
    pub efficiency: f64,
}

impl Report {
    /// Makes the report of a run that has not begun.
    pub fn empty(method: &'static str, dtype: DType) -> Report {
        Report {
            method,
            dtype,
            iterations: 0,
            history: Vec::new(),
            norm: 0.0,
            threshold: 0.0,
            true_residual: None,
            restarts: 0,
            cycle: None,
            seconds: 0.0,
            iteration_seconds: 0.0,
            ranks: Vec::new(),
        }
    }
}

impl Report {
    /// Returns a norm relative to that of the right-hand side, in words; absolute where that norm is unknown.
    fn relative(&self, norm: f64) -> String {
        if self.norm > 0.0 { format!("{:e} of |b|", norm / self.norm) } else { format!("{norm:e}") }
    }

    /// Returns the last residual by the recurrence and the one that was wanted, in words.
    fn reached(&self) -> String {
        self.compared(self.history.last().copied())
    }

    /// Returns the true residual, or the last one by the recurrence, and the one that was wanted, in words.
    fn reached_in_truth(&self) -> String {
        self.compared(self.true_residual.or(self.history.last().copied()))
    }

    fn compared(&self, residual: Option<f64>) -> String {
        let wanted = if self.norm > 0.0 { self.threshold / self.norm } else { self.threshold };
        format!("{} (wanted {wanted:e})", self.relative(residual.unwrap_or(f64::NAN)))
    }

    /// Returns what helps against stagnation beside a looser tolerance and a preconditioner, in words.
    fn advice(&self) -> String {
        let wider = if self.dtype == DType::F32 { ", compute in f64" } else { "" };
        let later = match (self.method, self.cycle) {
            ("gmres", Some(cycle)) => {
                format!(", restart GMRES later than after {cycle} iterations (gmres:{})", 2 * cycle)
            }
            ("gmres", None) => ", restart GMRES later".to_owned(),
            _ => String::new(),
        };
        later + wider
    }
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

/// The reason why a solver stopped short. All errors after the first look at the system carry the report,
/// with the history of residuals.
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
        /// The report until then.
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
        /// The report until then.
        report: Box<Report>,
    },
    /// The residual no longer falls.
    #[error(
        "{} stagnated after {} iterations at a residual of {}; loosen the tolerance{} or use a better preconditioner",
        .report.method, .report.iterations, .report.reached_in_truth(), .report.advice()
    )]
    Stagnation {
        /// The report until then.
        report: Box<Report>,
    },
    /// A NaN or an infinity appeared.
    #[error("{}", not_finite(.report, .quantity, *.row))]
    NotFinite {
        /// The quantity that is not finite.
        quantity: &'static str,
        /// The row, from 0, where the quantity is a vector of the caller's.
        row: Option<usize>,
        /// The report until then.
        report: Box<Report>,
    },
    /// The rows of the matrix add up to 0, so do its columns, and the right-hand side does not.
    #[error(
        "{}: the matrix is singular: its rows add up to 0, so must b, and the part of b that is constant has a norm of {}; \
         take the mean from b, or have it taken (nullspace constant)",
        .report.method, .report.relative(*.constant)
    )]
    Inconsistent {
        /// The norm of the constant part of the right-hand side: below it no residual can come.
        constant: f64,
        /// The report until then.
        report: Box<Report>,
    },
    /// GMRES's least-squares problem is singular to rounding, so the matrix is, or nearly so. `x` is the best
    /// iterate that was found.
    #[error(
        "{} ended after {} iterations: the matrix is singular, or nearly so; the recurred residual says {} and the true one \
         is {}; mend the matrix (dependent or empty equations), or loosen the tolerance",
        .report.method, .report.iterations, .report.relative(*.recurred), .report.reached_in_truth()
    )]
    SingularToRounding {
        /// The last residual by the recurrence.
        recurred: f64,
        /// The report until then.
        report: Box<Report>,
    },
    /// The solution holds values that are beyond the type's range, or so far below it that the residual is lost.
    #[error(
        "{}: the solution is beyond the range of {}: the residual of its rounded values is {}; multiply b by a number{}",
        .report.method, .report.dtype, .report.reached_in_truth(),
        if .report.dtype == DType::F32 { ", or compute in f64" } else { "" }
    )]
    OutOfRange {
        /// The report until then.
        report: Box<Report>,
    },
    /// The matrix is not symmetric, and the method is for symmetric ones only; nothing was computed.
    #[error(
        "{method} needs a symmetric matrix, and this one has {value:e} at row {row}, column {column} and {mirror:e} across \
         the diagonal; use bicgstab or gmres, or have it taken as symmetric (assume-symmetric)"
    )]
    NotSymmetric {
        /// The method's name.
        method: &'static str,
        /// The entry's row, from 0.
        row: usize,
        /// The entry's column, from 0.
        column: usize,
        /// The entry.
        value: f64,
        /// The entry with row and column exchanged.
        mirror: f64,
    },
    /// An entry of the diagonal is not positive, and the method is for positive definite matrices only;
    /// nothing was computed.
    #[error(
        "{method} needs a positive definite matrix, and this one has {value:e} on the diagonal of row {row}; use gmres"
    )]
    NotPositive {
        /// The method's name.
        method: &'static str,
        /// The row, from 0.
        row: usize,
        /// The entry.
        value: f64,
    },
    /// The matrix has a row of zeros; nothing was computed.
    #[error("the matrix is singular: row {row} has no entry but 0; leave out the row and its unknown")]
    Singular {
        /// The row, from 0.
        row: usize,
    },
    /// The observer ended the run.
    #[error(
        "{} was stopped after {} iterations at a residual of {}",
        .report.method, .report.iterations, .report.reached()
    )]
    Stopped {
        /// The report until then.
        report: Box<Report>,
    },
    /// A limit came before convergence.
    #[error(
        "{} did not converge: the limit on {limit} ended it after {} iterations at a residual of {}; raise the limit or use a \
         better preconditioner",
        .report.method, .report.iterations, .report.reached()
    )]
    NotConverged {
        /// The limit.
        limit: Exhausted,
        /// The report until then.
        report: Box<Report>,
    },
}

/// Returns the report of an error, shared or mutable as the error is; `None` if the arguments were refused.
macro_rules! report_of {
    ($error:expr) => {
        match $error {
            SolverError::Invalid(_)
            | SolverError::NotSymmetric { .. }
            | SolverError::NotPositive { .. }
            | SolverError::Singular { .. } => None,
            SolverError::Breakdown { report, .. }
            | SolverError::Indefinite { report, .. }
            | SolverError::Inconsistent { report, .. }
            | SolverError::SingularToRounding { report, .. }
            | SolverError::OutOfRange { report }
            | SolverError::Stagnation { report }
            | SolverError::NotFinite { report, .. }
            | SolverError::Stopped { report }
            | SolverError::NotConverged { report, .. } => Some(report),
        }
    };
}

impl SolverError {
    /// Returns the report until the error; `None` if the arguments were refused.
    pub fn report(&self) -> Option<&Report> {
        report_of!(self).map(|report| &**report)
    }

    /// Returns the same report, to be changed by the caller of the solver.
    pub fn report_mut(&mut self) -> Option<&mut Report> {
        report_of!(self).map(|report| &mut **report)
    }

    /// Returns the norms of the residual until the error.
    pub fn history(&self) -> &[f64] {
        self.report().map_or(&[], |report| &report.history)
    }
}

/// Returns what is said of a quantity that is not finite.
fn not_finite(report: &Report, quantity: &str, row: Option<usize>) -> String {
    match row {
        Some(row) => format!("{quantity} is not finite at row {row}, counted from 0; give finite values"),
        None => format!(
            "{}: {quantity} is not finite in iteration {}; look for NaN in the input, or scale the system",
            report.method, report.iterations
        ),
    }
}

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
    pub fn patience(&self) -> u32 {
        self.stagnation.map_or(u32::MAX, |patience| u32::try_from(patience.max(1)).unwrap_or(u32::MAX))
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
    /// The threshold that the residual was compared with: the larger of `relative |b|` and `absolute`.
    pub threshold: f64,
    /// The norm of `b - A x` for the returned `x`, computed afresh; `None` if an error came first.
    pub true_residual: Option<f64>,
    /// Wall time in seconds, the set-up included.
    pub seconds: f64,
    /// Seconds from the first residual to the last: those of `iterations` iterations.
    pub iteration_seconds: f64,
    /// What each device did, where several solved together.
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
    pub(super) fn empty(method: &'static str, dtype: DType) -> Report {
        Report {
            method,
            dtype,
            iterations: 0,
            history: Vec::new(),
            threshold: 0.0,
            true_residual: None,
            seconds: 0.0,
            iteration_seconds: 0.0,
            ranks: Vec::new(),
        }
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
        "{} stagnated after {} iterations at a residual of {:e} (wanted {:e}); loosen the tolerance{} or use a better \
         preconditioner",
        .report.method, .report.iterations,
        .report.true_residual.or(.report.history.last().copied()).unwrap_or(f64::NAN), .report.threshold,
        if .report.dtype == DType::F32 { ", compute in f64" } else { "" }
    )]
    Stagnation {
        /// The report until then.
        report: Box<Report>,
    },
    /// A NaN or an infinity appeared.
    #[error(
        "{}: {quantity} is not finite in iteration {}; look for NaN in the input, or scale the system",
        .report.method, .report.iterations
    )]
    NotFinite {
        /// The quantity that is not finite.
        quantity: &'static str,
        /// The report until then.
        report: Box<Report>,
    },
    /// The matrix is not symmetric, and the method is for symmetric ones only; nothing was computed.
    #[error(
        "{method} needs a symmetric matrix, and this one has {value:e} at row {row}, column {column} and {mirror:e} across \
         the diagonal; use bicgstab or gmres"
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
        "{} was stopped after {} iterations at a residual of {:e} (wanted {:e})",
        .report.method, .report.iterations, .report.history.last().copied().unwrap_or(f64::NAN), .report.threshold
    )]
    Stopped {
        /// The report until then.
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

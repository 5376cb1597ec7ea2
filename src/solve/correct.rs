//! Corrections of a solution whose residual the recurrence has lost.

use std::ops::ControlFlow;

use abide_core::backend::{LinearSession, Observe};
use abide_core::solver::{Matrix, Parameters, Report, SolverError};

use super::vectors::{norm, residual};
use crate::{Array, DType, Result};

/// Solves, and corrects: where the recurred residual has met the threshold and the true one is above it by more
/// than [`Parameters::drift`], `A d = b - A x` is solved in the same way and `x += d`, as long as each correction
/// halves the true residual. Refinements correct by themselves.
///
/// A drift of 1 or less holds the true residual to the threshold itself: then it is computed in f64 whatever the
/// system's type, and corrections go to half of it.
///
/// An `x` that is changed in every iteration is rounded in every one; a correction is rounded into it once.
/// The right-hand side of a correction is computed in f64 on the host (Wilkinson, Rounding Errors in
/// Algebraic Processes, 1963, section 3.29; Sleijpen and van der Vorst, Computing 56 (1996), 141–163).
pub(super) fn solve(
    session: &mut dyn LinearSession,
    matrix: &Matrix,
    b: &Array,
    x: &mut Array,
    parameters: &Parameters,
    observe: &mut Observe<'_>,
) -> Result<Report, SolverError> {
    let plan = session.plan();
    let corrects = plan.dtype == matrix.dtype();
    let strict = parameters.drift <= 1.0;
    let mut outcome = session.solve(b, x, parameters, observe);
    if strict && corrects && matrix.dtype() == DType::F32 {
        outcome = outcome.and_then(|report| held(report, matrix, b, x));
    }
    let mut before = f64::INFINITY;
    // The residual that the last correction left.
    let mut left: Option<Array> = None;
    loop {
        // Only a solve whose recurred residual met the threshold reports a true residual.
        let (mut report, now) = match outcome {
            Err(SolverError::Stagnation { report }) if corrects => match report.true_residual {
                Some(now) if now <= 0.5 * before => (report, now),
                _ => return Err(SolverError::Stagnation { report }),
            },
            other => return other,
        };
        before = now;
        let inner = Parameters {
            relative: 0.0,
            absolute: if strict { 0.5 * report.threshold } else { report.threshold },
            iterations: parameters.iterations.saturating_sub(report.iterations),
            time: parameters
                .time
                .map(|limit| limit.saturating_sub(std::time::Duration::from_secs_f64(report.seconds))),
            ..parameters.clone()
        };
        let r = match left.take() {
            Some(r) => r,
            None => residual(matrix, b, x)?,
        };
        let r = r.cast(x.dtype())?;
        let mut d = Array::zeros(x.dtype(), x.len())?;
        let done = report.iterations;
        // Where the correction begins, the history gets the true residual.
        if let Some(last) = report.history.last_mut() {
            *last = now;
        }
        let corrected = session.solve(&r, &mut d, &inner, &mut |iteration, residual| match iteration {
            0 => ControlFlow::Continue(()),
            _ => observe(done + iteration, residual),
        });
        add(x, &d);
        outcome = match corrected {
            Ok(correction) => Ok(joined(*report, &correction)),
            Err(SolverError::Stagnation { report: correction }) if correction.true_residual.is_some() => {
                Ok(joined(*report, &correction))
            }
            // A right-hand side that is too small for a correction is as good as none.
            Err(SolverError::Invalid(_)) => return Err(SolverError::Stagnation { report }),
            Err(mut error) => {
                if let Some(correction) = error.report_mut() {
                    *correction = joined(*report, correction);
                }
                Err(error)
            }
        };
        if let Ok(report) = &mut outcome {
            let r = residual(matrix, b, x)?;
            let now = norm(&r)?;
            left = Some(r);
            report.true_residual = Some(now);
            if now.is_nan() || now > report.threshold * parameters.drift.max(1.0) {
                outcome =
                    outcome.and_then(|report| Err(SolverError::Stagnation { report: Box::new(report) }));
            }
        }
    }
}

/// Returns the report with the true residual in f64, or [`SolverError::Stagnation`] where that is above the
/// threshold.
fn held(mut report: Report, matrix: &Matrix, b: &Array, x: &Array) -> Result<Report, SolverError> {
    let now = norm(&residual(matrix, b, x)?)?;
    report.true_residual = Some(now);
    if now <= report.threshold {
        Ok(report)
    } else {
        Err(SolverError::Stagnation { report: Box::new(report) })
    }
}

/// Computes `x += d`; a correction with values that are not finite is left out.
fn add(x: &mut Array, d: &Array) {
    match (x, d) {
        (Array::F32(x), Array::F32(d)) if d.iter().all(|d| d.is_finite()) => {
            x.iter_mut().zip(d).for_each(|(x, d)| *x += d);
        }
        (Array::F64(x), Array::F64(d)) if d.iter().all(|d| d.is_finite()) => {
            x.iter_mut().zip(d).for_each(|(x, d)| *x += d);
        }
        _ => {}
    }
}

/// Returns the report of a solve and a correction after it.
pub(super) fn joined(mut first: Report, then: &Report) -> Report {
    first.history.extend(then.history.iter().skip(1));
    first.iterations += then.iterations;
    first.seconds += then.seconds;
    first.iteration_seconds += then.iteration_seconds;
    first
}

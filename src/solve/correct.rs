//! Corrections of a solution whose residual the recurrence has lost.

use std::ops::ControlFlow;

use abide_core::solver::{LinearSession, Matrix, Measure, Observe, Parameters, Report, SolverError};

use super::vectors::{norm, residual};
use crate::{Array, Result};

/// Solves by conjugate gradients, and corrects: where the recurred residual has met the threshold and the
/// true one is far above it, `A d = b - A x` is solved in the same way and `x += d`, as long as each
/// correction halves the true residual. Other methods solve once.
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
    let corrects = plan.method.profile().measure == Measure::Energy && plan.dtype == matrix.dtype();
    let mut outcome = session.solve(b, x, parameters, observe);
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
            absolute: report.threshold,
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
            Ok(told) => Ok(joined(*report, &told)),
            Err(SolverError::Stagnation { report: told }) if told.true_residual.is_some() => {
                Ok(joined(*report, &told))
            }
            Err(mut error) => {
                if let Some(told) = error.report_mut() {
                    *told = joined(*report, told);
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
fn joined(mut first: Report, then: &Report) -> Report {
    first.history.extend(then.history.iter().skip(1));
    first.iterations += then.iterations;
    first.seconds += then.seconds;
    first.iteration_seconds += then.iteration_seconds;
    first
}

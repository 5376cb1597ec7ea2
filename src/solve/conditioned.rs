//! What is done to a system before its method sees it, and undone after it: signs, powers of two, null spaces.

use abide_core::backend::Observe;
use abide_core::solver::{Nullspace, Parameters, Report, SolverError};

use super::range::{Scale, times};
use super::vectors::{norm, residual};
use super::{System, attempts, nullspace};
use crate::{Array, Result};

/// Solves `A x = b` from `x`, all of it checked.
pub(super) fn solve(
    system: &mut System,
    b: &Array,
    x: &mut Array,
    parameters: &Parameters,
    observe: &mut Observe<'_>,
) -> Result<Report, SolverError> {
    parameters.check()?;
    if system.nullspace == Nullspace::None {
        return scaled(system, b, x, parameters, observe);
    }
    let mut projected = b.try_clone()?;
    nullspace::project(&mut projected);
    nullspace::project(x);
    let outcome = scaled(system, &projected, x, parameters, observe);
    if x.non_finite() == 0 {
        nullspace::project(x);
    }
    outcome
}

/// Solves with `b` and `x` brought into the range in which squares are numbers, with the sign of the matrix that the
/// session has.
fn scaled(
    system: &mut System,
    b: &Array,
    x: &mut Array,
    parameters: &Parameters,
    observe: &mut Observe<'_>,
) -> Result<Report, SolverError> {
    let (scale, negated) = (Scale::of(b, x), system.negated.is_some());
    if scale.is_one() && !negated {
        return attempts::solve(system, b, x, parameters, observe);
    }
    let right = scale.multiple(b, negated)?;
    scale.apply(x);
    let absolute = scale.of_number(parameters.absolute).min(f64::MAX);
    let inner = Parameters { absolute, ..parameters.clone() };
    let mut outcome = attempts::solve(system, &right, x, &inner, &mut |iteration, residual| {
        observe(iteration, scale.unscaled(residual))
    });
    let exact = scale.is_one() || scale.undo(x);
    match &mut outcome {
        Ok(report) => undo(scale, report),
        Err(error) => {
            if let Some(report) = error.report_mut() {
                undo(scale, report);
            }
            match error {
                SolverError::Indefinite { value, .. } => *value = times(*value, -2 * scale.power()),
                SolverError::Inconsistent { constant: norm, .. }
                | SolverError::SingularToRounding { recurred: norm, .. } => *norm = scale.unscaled(*norm),
                _ => {}
            }
        }
    }
    match outcome {
        // Digits of x were lost: what is left decides.
        Ok(mut report) if !exact => {
            let now = norm(&residual(&system.matrix, b, x)?)?;
            report.true_residual = Some(now);
            if now <= report.threshold * parameters.drift.max(1.0) {
                Ok(report)
            } else {
                Err(SolverError::OutOfRange { report: Box::new(report) })
            }
        }
        outcome => outcome,
    }
}

/// Divides the norms of a report.
fn undo(scale: Scale, report: &mut Report) {
    report.history.iter_mut().for_each(|residual| *residual = scale.unscaled(*residual));
    report.norm = scale.unscaled(report.norm);
    report.threshold = scale.unscaled(report.threshold);
    report.true_residual = report.true_residual.map(|residual| scale.unscaled(residual));
}

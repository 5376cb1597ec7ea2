//! What follows a method that failed: BiCGStab starts anew, GMRES takes the place of conjugate gradients that
//! were not asked for, and on a singular matrix the better iterate is kept.

use std::ops::ControlFlow;
use std::rc::Rc;

use abide_core::backend::Observe;
use abide_core::solver::{Matrix, Method, Nullspace, Parameters, Report, SolverError};

use super::vectors::{norm, random_vector, residual};
use super::{System, correct, nullspace};
use crate::{Array, Result};

/// The most times that BiCGStab starts anew in a solve.
const RESTARTS: usize = 40;

/// The most starts in a row that break down before their first iteration.
const USELESS: usize = 3;

/// Growth of the recurred residual above its least value that counts as a breakdown where the run then ended.
const BLOWN: f64 = 1e3;

/// The factor within which a residual counts as near another.
const NEAR: f64 = 1.01;

/// An iterate with the norm of its residual. A first guess of zeros needs no memory.
#[derive(Clone)]
struct Iterate {
    x: Option<Rc<Array>>,
    norm: f64,
}

impl Iterate {
    fn of(x: &Array, norm: f64) -> Result<Iterate> {
        let x =
            if x.magnitude() == 0.0 && x.non_finite() == 0 { None } else { Some(Rc::new(x.try_clone()?)) };
        Ok(Iterate { x, norm })
    }

    fn restore(&self, x: &mut Array) {
        match (self.x.as_deref(), x) {
            (Some(Array::F32(from)), Array::F32(to)) => to.copy_from_slice(from),
            (Some(Array::F64(from)), Array::F64(to)) => to.copy_from_slice(from),
            (_, Array::F32(to)) => to.fill(0.0),
            (_, Array::F64(to)) => to.fill(0.0),
        }
    }
}

/// Solves with the system's session, as often as the method's failures allow. `b` and `x` are those of
/// [`System::solved`].
pub(super) fn solve(
    system: &mut System,
    b: &Array,
    x: &mut Array,
    parameters: &Parameters,
    observe: &mut Observe<'_>,
) -> Result<Report, SolverError> {
    let first = Iterate::of(x, f64::INFINITY)?;
    let matrix = system.solved().clone();
    let outcome = correct::solve(system.session.here()?, &matrix, b, x, parameters, observe);
    let method = system.plan().method;
    let mut outcome = match (method, outcome) {
        (Method::BiCgStab, Err(error)) => {
            restarted(system, &matrix, b, x, &first, parameters, observe, error)
        }
        (Method::Gmres(_), Err(error)) => better(system, &matrix, b, x, &first, parameters, error),
        (_, Err(SolverError::Indefinite { quantity, value, report })) if system.was_chosen => {
            fallen_back(system, &matrix, b, x, &first, parameters, observe, (quantity, value, report))
        }
        (_, outcome) => outcome,
    };
    if let Err(error) = outcome {
        outcome = Err(singular(system, &matrix, b, x, &first, parameters, error)?);
    }
    if let Method::Gmres(gmres) = system.plan().method {
        let cycle = Some(gmres.restart.min(matrix.rows()));
        match &mut outcome {
            Ok(report) => report.cycle = cycle,
            Err(error) => error.report_mut().into_iter().for_each(|report| report.cycle = cycle),
        }
    }
    outcome
}

/// Returns the parameters of a run after others that ended with this report.
fn left(parameters: &Parameters, report: &Report) -> Parameters {
    let spent = std::time::Duration::from_secs_f64(report.seconds.max(0.0));
    Parameters {
        relative: 0.0,
        absolute: report.threshold,
        iterations: parameters.iterations.saturating_sub(report.iterations),
        time: parameters.time.map(|limit| limit.saturating_sub(spent)),
        ..parameters.clone()
    }
}

/// Returns the report of a run and another after it; where that began, the history holds its first residual.
fn after(mut first: Report, then: &Report) -> Report {
    if let (Some(last), Some(&begun)) = (first.history.last_mut(), then.history.first()) {
        *last = begun;
    }
    let (norm, threshold, restarts) = (first.norm, first.threshold, first.restarts);
    let mut joined = correct::joined(first, then);
    (joined.method, joined.true_residual) = (then.method, then.true_residual);
    (joined.norm, joined.threshold, joined.restarts) = (norm, threshold, restarts);
    joined
}

/// Solves again from `x`, with what the first run left of the limits.
fn again(
    system: &mut System,
    matrix: &Matrix,
    b: &Array,
    x: &mut Array,
    (parameters, first): (&Parameters, Report),
    observe: &mut Observe<'_>,
) -> Result<Report, SolverError> {
    let (inner, done) = (left(parameters, &first), first.iterations);
    let outcome = correct::solve(system.session.here()?, matrix, b, x, &inner, &mut |iteration, residual| {
        match iteration {
            0 => ControlFlow::Continue(()),
            _ => observe(done + iteration, residual),
        }
    });
    match outcome {
        Ok(then) => Ok(after(first, &then)),
        Err(mut error) => {
            if let Some(then) = error.report_mut() {
                *then = after(first, then);
            }
            Err(error)
        }
    }
}

/// Returns whether BiCGStab ended because it divided by what rounding had made of a 0.
fn has_broken_down(error: &SolverError) -> bool {
    match error {
        SolverError::Breakdown { .. } => true,
        SolverError::NotFinite { row: None, report, .. } => !report.history.is_empty(),
        SolverError::Stagnation { report } => {
            let least = report.history.iter().copied().fold(f64::INFINITY, f64::min);
            report.history.last().is_some_and(|&last| last > BLOWN * least)
        }
        _ => false,
    }
}

/// Starts BiCGStab anew from its iterate, whose residual is then the new shadow residual, as long as it breaks
/// down. Where a start has not halved the residual, the next would end alike: it begins beside the best iterate,
/// at as much distance as that has from the solution, measured by the residual.
///
/// A start from another x with another shadow residual is what van der Vorst, SIAM J. Sci. Stat. Comput. 13
/// (1992), section 3, advises where rho vanishes.
#[allow(clippy::too_many_arguments)]
fn restarted(
    system: &mut System,
    matrix: &Matrix,
    b: &Array,
    x: &mut Array,
    first: &Iterate,
    parameters: &Parameters,
    observe: &mut Observe<'_>,
    mut error: SolverError,
) -> Result<Report, SolverError> {
    if !has_broken_down(&error) {
        return Err(error);
    }
    let mut best = first.clone();
    best.norm = error.history().first().copied().unwrap_or(f64::INFINITY);
    // The residual from which the last run began.
    let mut begun = best.norm;
    let (mut done, mut useless) = (0, 0);
    for restart in 1..=RESTARTS {
        if !has_broken_down(&error) {
            break;
        }
        let now = norm(&residual(matrix, b, x)?)?;
        if now < best.norm {
            best = Iterate::of(x, now)?;
        }
        let Some(report) = error.report().filter(|report| report.iterations < parameters.iterations) else {
            break;
        };
        useless = if report.iterations > done { 0 } else { useless + 1 };
        done = report.iterations;
        if useless > USELESS {
            break;
        }
        let mut report = report.clone();
        report.restarts = restart;
        if now <= 0.5 * begun {
            begun = now;
        } else {
            best.restore(x);
            step_aside(matrix, x, best.norm, restart as u64)?;
            begun = norm(&residual(matrix, b, x)?)?;
        }
        match again(system, matrix, b, x, (parameters, report), observe) {
            Err(found) if found.report().is_some() => error = found,
            other => return other,
        }
    }
    if matches!(error, SolverError::Stopped { .. }) {
        return Err(error);
    }
    let now = norm(&residual(matrix, b, x)?)?;
    if now.is_nan() || now > best.norm {
        best.restore(x);
    }
    if let Some(report) = error.report_mut() {
        report.true_residual = Some(now.min(best.norm));
    }
    Err(error)
}

/// Adds a random vector to `x` that changes the residual by `distance`.
fn step_aside(matrix: &Matrix, x: &mut Array, distance: f64, seed: u64) -> Result<()> {
    let aside = random_vector(x.dtype(), x.len(), seed)?;
    let zero = Array::zeros(x.dtype(), x.len())?;
    let length = norm(&residual(matrix, &zero, &aside)?)?;
    let factor = distance / length;
    if factor.is_finite() {
        match (x, &aside) {
            (Array::F32(x), Array::F32(d)) => {
                x.iter_mut().zip(d).for_each(|(x, d)| *x += (factor * f64::from(*d)) as f32);
            }
            (Array::F64(x), Array::F64(d)) => x.iter_mut().zip(d).for_each(|(x, d)| *x += factor * d),
            _ => {}
        }
    }
    Ok(())
}

/// Returns the norm of an iterate's residual; infinite where it is no number.
fn distance(matrix: &Matrix, b: &Array, x: &Array) -> Result<f64> {
    let norm = norm(&residual(matrix, b, x)?)?;
    Ok(if norm.is_finite() { norm } else { f64::INFINITY })
}

/// Runs the method again from the first guess; returns the iterate after so many iterations, with its residual's norm.
fn upto(
    system: &mut System,
    matrix: &Matrix,
    b: &Array,
    first: &Iterate,
    parameters: &Parameters,
    iterations: usize,
) -> Result<(Array, f64), SolverError> {
    let mut x = Array::zeros(b.dtype(), b.len())?;
    first.restore(&mut x);
    let inner = Parameters { iterations, time: None, ..parameters.clone() };
    // The run ends by its limit; its iterate is what counts.
    let _ = system.session.here()?.solve(b, &mut x, &inner, &mut |_, _| ControlFlow::Continue(()));
    let distance = distance(matrix, b, &x)?;
    Ok((x, distance))
}

/// Puts the first guess, whose residual has the norm `start`, in the place of an iterate that is farther; returns the norm
/// of what is left.
fn nearer(first: &Iterate, start: f64, x: &mut Array, now: f64) -> f64 {
    if now > start {
        first.restore(x);
    }
    now.min(start)
}

/// Leaves the better of GMRES's iterates in `x`, with its true residual in the report, and says where the matrix
/// is singular.
///
/// On a singular matrix the least-squares problem becomes singular too, to rounding: the recurred residual falls
/// to nothing while the iterate grows without bound. The iterate before that has the least residual, so the method
/// is run again up to there; and up to the first iterate that comes near that residual, which has grown less.
fn better(
    system: &mut System,
    matrix: &Matrix,
    b: &Array,
    x: &mut Array,
    first: &Iterate,
    parameters: &Parameters,
    mut error: SolverError,
) -> Result<Report, SolverError> {
    let (is_broken, has_ended) = match &error {
        SolverError::Breakdown { .. } => (true, true),
        SolverError::NotFinite { row: None, report, .. } => (true, !report.history.is_empty()),
        SolverError::Stagnation { .. } => (false, true),
        _ => (false, false),
    };
    let Some(report) = error.report().filter(|_| has_ended).cloned() else { return Err(error) };
    let mut now = distance(matrix, b, x)?;
    let recurred = report.history.iter().rev().copied().find(|residual| residual.is_finite()).unwrap_or(now);
    let start = report.history.first().copied().unwrap_or(f64::INFINITY);
    let rounding = if report.dtype == crate::DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
    let is_singular = is_broken || (now > 10.0 * recurred && now > rounding.sqrt() * report.norm);
    if is_singular {
        let collapse = report.history.iter().rposition(|&residual| residual >= rounding.sqrt() * start);
        let mut found = None;
        if let Some(last) = collapse.filter(|&k| k > 0) {
            let (other, norm) = upto(system, matrix, b, first, parameters, last)?;
            if norm < now {
                (found, now) = (Some(other), norm);
            }
            let near = report.history.iter().position(|&residual| residual <= NEAR * now);
            if let Some(near) = near.filter(|&k| k > 0 && k < last) {
                let (other, norm) = upto(system, matrix, b, first, parameters, near)?;
                if norm <= NEAR * NEAR * now {
                    (found, now) = (Some(other), norm);
                }
            }
        }
        if let Some(found) = found {
            *x = found;
        }
    }
    now = nearer(first, start, x, now);
    if let Some(report) = error.report_mut() {
        report.true_residual = Some(now);
        if is_singular {
            let report = Box::new(report.clone());
            return Err(SolverError::SingularToRounding { recurred, report });
        }
    }
    Err(error)
}

/// Returns the error of a failed solve, with what is known of a matrix that takes constants to 0. Where `b` is not in the
/// range of such a matrix, `x` becomes the iterate of least residual, without its mean.
///
/// The residual of short recurrences falls to the part of `b` that no `x` reaches; from there the iterates grow without
/// bound, so the method is run again up to its least residual.
fn singular(
    system: &mut System,
    matrix: &Matrix,
    b: &Array,
    x: &mut Array,
    first: &Iterate,
    parameters: &Parameters,
    error: SolverError,
) -> Result<SolverError, SolverError> {
    if system.nullspace != Nullspace::None {
        return Ok(error);
    }
    let error = nullspace::explained(error, matrix, b, parameters)?;
    let SolverError::Inconsistent { constant, mut report } = error else { return Ok(error) };
    let mut now = distance(matrix, b, x)?;
    let history = &report.history;
    let least = (0..history.len()).min_by(|&i, &k| history[i].total_cmp(&history[k]));
    if let Some(least) = least.filter(|&least| least > 0 && history[least] < now) {
        let (other, norm) = upto(system, matrix, b, first, parameters, least)?;
        if norm < now {
            (*x, now) = (other, norm);
        }
    }
    // The recurred residual may have been less than the true one.
    now = nearer(first, history.first().copied().unwrap_or(f64::INFINITY), x, now);
    if x.non_finite() == 0 {
        nullspace::project(x);
    }
    report.true_residual = Some(now);
    Ok(SolverError::Inconsistent { constant, report })
}

/// Solves by GMRES where conjugate gradients were chosen for the caller and found the matrix indefinite.
#[allow(clippy::too_many_arguments)]
fn fallen_back(
    system: &mut System,
    matrix: &Matrix,
    b: &Array,
    x: &mut Array,
    first: &Iterate,
    parameters: &Parameters,
    observe: &mut Observe<'_>,
    (quantity, value, report): (&'static str, f64, Box<Report>),
) -> Result<Report, SolverError> {
    let name = report.method;
    let original = SolverError::Indefinite { quantity, value, report: report.clone() };
    // A singular system is reported as singular.
    let explained = nullspace::explained(original, matrix, b, parameters)?;
    if !matches!(explained, SolverError::Indefinite { .. }) || !system.take_gmres() {
        return Err(explained);
    }
    system.notes.push(format!(
        "{name} found {quantity} = {value:e} in iteration {}: the matrix is not positive definite; gmres took its place",
        report.iterations
    ));
    let now = norm(&residual(matrix, b, x)?)?;
    if now.is_nan() || now > report.history.first().copied().unwrap_or(f64::INFINITY) {
        first.restore(x);
    }
    let again = again(system, matrix, b, x, (parameters, *report), observe);
    match again {
        Err(error) => better(system, matrix, b, x, first, parameters, error),
        done => done,
    }
}

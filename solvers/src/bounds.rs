//! Bounds of eigenvalues, estimated.

use abide_core::solver::{Bounds, Operator, Quantity, SolverError};
use abide_core::{Error, Real, Result};

use crate::engine::{Engine, zeros};
use crate::precondition::{Diagonal, Identity, Preconditioner};
use crate::run::Run;

/// Estimates bounds of eigenvalues: the least and the largest Ritz value of `M^-1 A` after `steps` steps of Lanczos'
/// method, from a fixed random vector.
///
/// Both values lie within the spectrum. The upper one is near the largest eigenvalue after a few dozen
/// steps; the lower one may be far above the least. Lanczos' matrix is read off the coefficients of
/// conjugate gradients (Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., section 6.7.3). Its
/// extreme eigenvalues are found by bisection with Sturm sequences.
///
/// # Errors
///
/// [`SolverError::Indefinite`] if the matrix or the preconditioner proves not to be positive definite,
/// [`SolverError::NotFinite`] if either has NaN, and [`SolverError::Invalid`] for 0 steps or an operator
/// without rows.
pub fn estimate_bounds<T: Real, E: Engine<T>>(
    engine: &E,
    a: &dyn Operator<T>,
    m: &mut dyn Preconditioner<T, E>,
    steps: usize,
) -> Result<Bounds, SolverError> {
    let n = a.rows();
    let steps = steps.min(a.all_rows());
    if steps == 0 {
        let reason = "no step of Lanczos' method was asked for, or the operator has no rows";
        return Err(Error::invalid("the estimate of eigenvalues", reason, "take 30 steps").into());
    }
    let mut run = Run::bare("lanczos");
    let (mut r, mut z, mut p, mut q) = (zeros::<T>(n)?, zeros(n)?, zeros(n)?, zeros(n)?);
    let mut random = fastrand::Rng::with_seed(0x4C61_6E63);
    // The values of the rows before are other devices'.
    for _ in 0..a.first_row() {
        random.f64();
    }
    r.fill_with(|| T::from_f64(2.0 * random.f64() - 1.0));
    m.apply(engine, &r, &mut z);
    p.copy_from_slice(&z);
    let mut rz = engine.dot(&r, &z);
    let first = rz.to_f64();
    let (mut diagonal, mut beside) = (Vec::with_capacity(steps), Vec::with_capacity(steps));
    let (mut alpha_before, mut beta) = (1.0, 0.0);
    while diagonal.len() < steps {
        run.positive(Quantity::Rho, rz)?;
        a.apply(&p, &mut q);
        let pq = engine.dot(&p, &q);
        run.positive(Quantity::Curvature, pq)?;
        let alpha = rz / pq;
        diagonal.push(1.0 / alpha.to_f64() + beta / alpha_before);
        engine.update([&mut r], [&q], |[r], [q]| [r - alpha * q]);
        m.apply(engine, &r, &mut z);
        let next = engine.dot(&r, &z);
        // The Krylov space is exhausted up to rounding: its Ritz values are eigenvalues, and more steps
        // would add noise.
        if next.to_f64() <= 1e-12 * first {
            break;
        }
        beta = next.to_f64() / rz.to_f64();
        alpha_before = alpha.to_f64();
        beside.push(beta.sqrt() / alpha_before);
        let ratio = next / rz;
        rz = next;
        engine.update([&mut p], [&z], |[p], [z]| [z + ratio * p]);
    }
    beside.truncate(diagonal.len() - 1);
    let (low, high) = extremes(&diagonal, &beside);
    Ok(Bounds::new(low, high)?)
}

/// Counts the eigenvalues below `x` of a symmetric tridiagonal matrix: the negative terms of its Sturm
/// sequence.
fn below(diagonal: &[f64], beside: &[f64], x: f64) -> usize {
    let mut count = 0;
    let mut q = 1.0;
    for (i, d) in diagonal.iter().enumerate() {
        let coupling = if i == 0 { 0.0 } else { beside[i - 1] * beside[i - 1] / q };
        q = d - x - coupling;
        if q == 0.0 {
            q = f64::MIN_POSITIVE;
        }
        count += usize::from(q < 0.0);
    }
    count
}

/// Returns the least and the largest eigenvalue of a symmetric tridiagonal matrix, to about 1e-14 of
/// Gershgorin's interval.
fn extremes(diagonal: &[f64], beside: &[f64]) -> (f64, f64) {
    let n = diagonal.len();
    let radius = |i: usize| {
        let before = if i > 0 { beside[i - 1] } else { 0.0 };
        before + beside.get(i).copied().unwrap_or(0.0)
    };
    let left = (0..n).fold(f64::INFINITY, |least, i| least.min(diagonal[i] - radius(i)));
    let right = (0..n).fold(f64::NEG_INFINITY, |most, i| most.max(diagonal[i] + radius(i)));
    let kth = |k: usize| {
        let (mut low, mut high) = (left, right);
        for _ in 0..60 {
            let middle = low + (high - low) / 2.0;
            if below(diagonal, beside, middle) > k { high = middle } else { low = middle }
        }
        low + (high - low) / 2.0
    };
    (kth(0), kth(n - 1))
}

/// Returns the scale and the interval of the polynomial preconditioner of `a`.
pub fn polynomial_bounds<T: Real, E: Engine<T>>(
    engine: &E,
    a: &dyn Operator<T>,
) -> Result<(Option<Diagonal<T>>, Bounds), SolverError> {
    let mut scale = Diagonal::new(a).ok();
    if !engine.everywhere(scale.is_some()) {
        scale = None;
    }
    let high = match &mut scale {
        Some(scale) => estimate_bounds(engine, a, scale, 30),
        None => estimate_bounds(engine, a, &mut Identity, 30),
    }
    .map_err(|error| of_preconditioner("chebyshev", error))?
    .high();
    Ok((scale, Bounds::new(high / 30.0, 1.1 * high)?))
}

/// Returns the estimate's error as that of the preconditioner of this name: a user who asked for it need not know of the method
/// behind the estimate.
pub(crate) fn of_preconditioner(name: &str, error: SolverError) -> SolverError {
    let reason = match &error {
        SolverError::Indefinite { quantity, value, .. } => {
            format!("it needs a symmetric positive definite matrix, and {quantity} = {value:e}")
        }
        SolverError::NotFinite { quantity, .. } => format!("{quantity} is not finite"),
        SolverError::Breakdown { quantity, .. } => format!("{quantity} vanished"),
        _ => return error,
    };
    Error::invalid(format!("the {name} preconditioner"), reason, "take jacobi, block-jacobi or none").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bisection_finds_the_extreme_eigenvalues() {
        for n in [1_usize, 2, 3, 50] {
            let (low, high) = extremes(&vec![2.0; n], &vec![1.0; n - 1]);
            let angle = std::f64::consts::PI / (n as f64 + 1.0);
            assert!((low - (2.0 - 2.0 * angle.cos())).abs() < 1e-12, "{n}: {low}");
            assert!((high - (2.0 + 2.0 * angle.cos())).abs() < 1e-12, "{n}: {high}");
        }
    }
}

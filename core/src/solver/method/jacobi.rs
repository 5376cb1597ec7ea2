//! Jacobi's method.

use crate::error::{Error, Result};
use crate::real::Real;
use crate::solver::run::{Begin, Run, residual, zeros};
use crate::solver::{
    Diagonal, Engine, Equations, Observe, Parameters, Preconditioner, Profile, Report, Solver, SolverError,
};

/// Jacobi's method, damped: `x += weight M^-1 (b - A x)`.
///
/// Without a preconditioner `M` is the diagonal of `A`; a preconditioner takes the diagonal's place
/// (block-Jacobi gives the block method). The method converges if the spectral radius of `I - weight M^-1 A`
/// is below 1: for weight 1, if `A` is strictly diagonally dominant.
///
/// Source: Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., section 4.1. Memory: 2 vectors besides
/// `b` and `x`, and the diagonal. Per iteration: 1 product with `A`, 1 with `M^-1`, 1 reduction, which is for
/// the stopping test alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Jacobi {
    /// The damping factor, above 0 and below 2. Default 1.
    pub weight: f64,
}

impl Default for Jacobi {
    fn default() -> Self {
        Jacobi { weight: 1.0 }
    }
}

impl Jacobi {
    /// Checks that the damping factor is above 0 and below 2.
    pub fn check(&self) -> Result<()> {
        if self.weight > 0.0 && self.weight < 2.0 {
            return Ok(());
        }
        let reason = format!("{} is outside ]0, 2[", self.weight);
        Err(Error::invalid("Jacobi's weight", reason, "take 1, or 2/3 as a smoother"))
    }
}

impl<T: Real, E: Engine<T>> Solver<T, E> for Jacobi {
    fn name(&self) -> &'static str {
        Profile::JACOBI.name
    }

    fn solve_observed(
        &self,
        engine: &E,
        Equations { a, m, b }: Equations<'_, T, E>,
        x: &mut [T],
        parameters: &Parameters,
        observe: &mut Observe<'_>,
    ) -> Result<Report, SolverError> {
        self.check()?;
        let mut run = match Run::begin(Profile::JACOBI, engine, (a, &*m), b, x, parameters, observe)? {
            Begin::Zero(report) => return Ok(report),
            Begin::Iterate(run) => run,
        };
        let n = b.len();
        let mut diagonal = if m.is_identity() { Some(Diagonal::new(a)?) } else { None };
        let (mut r, mut z) = (zeros(n)?, zeros(n)?);
        let weight = T::from_f64(self.weight);
        loop {
            residual(engine, a, b, x, &mut r);
            if run.converged(engine.dot(&r, &r))? {
                return run.finish(engine, a, b, x, &mut r);
            }
            match &mut diagonal {
                Some(diagonal) => diagonal.apply(engine, &r, &mut z),
                None => m.apply(engine, &r, &mut z),
            }
            engine.update([&mut *x], [&z], |[x], [z]| [x + weight * z]);
        }
    }
}

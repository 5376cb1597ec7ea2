//! Jacobi's method.

use abide_core::backend::Observe;
use abide_core::solver::{Jacobi, Parameters, Profile, Report, SolverError};
use abide_core::{Real, Result};

use crate::engine::{Engine, zeros};
use crate::precondition::{Diagonal, Preconditioner};
use crate::run::{Begin, Run, residual};
use crate::solver::{Equations, Solver};

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

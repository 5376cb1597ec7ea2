//! Chebyshev iteration.

use abide_core::Real;
use abide_core::backend::Observe;
use abide_core::solver::{Chebyshev, Parameters, Profile, Report, SolverError};

use crate::bounds::estimate_bounds;
use crate::engine::{Engine, zeros};
use crate::recurrence::Recurrence;
use crate::run::{Begin, Run, residual};
use crate::solver::{Equations, Solver};

impl<T: Real, E: Engine<T>> Solver<T, E> for Chebyshev {
    fn name(&self) -> &'static str {
        Profile::CHEBYSHEV.name
    }

    fn solve_observed(
        &self,
        engine: &E,
        Equations { a, m, b }: Equations<'_, T, E>,
        x: &mut [T],
        parameters: &Parameters,
        observe: &mut Observe<'_>,
    ) -> Result<Report, SolverError> {
        let mut run = match Run::begin(Profile::CHEBYSHEV, engine, (a, &*m), b, x, parameters, observe)? {
            Begin::Zero(report) => return Ok(report),
            Begin::Iterate(run) => run,
        };
        let bounds = match self.bounds {
            Some(bounds) => bounds,
            None => estimate_bounds(engine, a, m, 30)?.widened(0.9, 1.1)?,
        };
        let n = b.len();
        // z is the preconditioned residual, then A d.
        let (mut r, mut z, mut d) = (zeros(n)?, zeros(n)?, zeros(n)?);
        let mut recurrence = Recurrence::new(bounds);
        let (mut old, mut new) = (T::ZERO, recurrence.first());
        residual(engine, a, b, x, &mut r);
        while !run.converged(engine.dot(&r, &r))? {
            m.apply(engine, &r, &mut z);
            engine.update([&mut d, &mut *x], [&z], |[d, x], [z]| {
                let d = old * d + new * z;
                [d, x + d]
            });
            a.apply(&d, &mut z);
            engine.update([&mut r], [&z], |[r], [ad]| [r - ad]);
            (old, new) = recurrence.step();
        }
        run.finish(engine, a, b, x, &mut z)
    }
}

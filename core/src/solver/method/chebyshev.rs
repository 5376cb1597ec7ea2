//! Chebyshev iteration, and the recurrence that it shares with the polynomial preconditioner.

use crate::real::Real;
use crate::solver::run::{Begin, Run, residual, zeros};
use crate::solver::{Bounds, Engine, Equations, Observe, Parameters, Profile, Report, Solver, SolverError};

/// The coefficients of `d <- old d + new z`, where z is the preconditioned residual; computed in f64 and
/// rounded once.
#[derive(Debug, Clone, Copy)]
pub(in crate::solver) struct Recurrence {
    centre: f64,
    half: f64,
    rho: f64,
}

impl Recurrence {
    pub(in crate::solver) fn new(bounds: Bounds) -> Self {
        let (centre, half) = ((bounds.high() + bounds.low()) / 2.0, (bounds.high() - bounds.low()) / 2.0);
        Recurrence { centre, half, rho: half / centre }
    }

    /// Returns the factor of the first residual.
    pub(in crate::solver) fn first<T: Real>(&self) -> T {
        T::from_f64(1.0 / self.centre)
    }

    /// Returns the factors of the old direction and of the residual in the next step.
    pub(in crate::solver) fn step<T: Real>(&mut self) -> (T, T) {
        // rho / half = 1 / (2 centre - half rho_before) has a limit if the interval is a point; 1 / half has
        // none.
        let over_half = 1.0 / (2.0 * self.centre - self.half * self.rho);
        let next = self.half * over_half;
        let factors = (T::from_f64(next * self.rho), T::from_f64(2.0 * over_half));
        self.rho = next;
        factors
    }
}

/// Returns the factors of the polynomial preconditioner of a degree: that of the first residual, then those
/// of the old direction and of the residual in each step. They are computed in f64;
/// [`ChebyshevPolynomial`](crate::solver::ChebyshevPolynomial) rounds each once.
pub fn polynomial_factors(bounds: Bounds, degree: usize) -> Vec<f64> {
    let mut recurrence = Recurrence::new(bounds);
    let first = recurrence.first();
    let steps = (0..degree).flat_map(|_| {
        let (old, new) = recurrence.step::<f64>();
        [old, new]
    });
    std::iter::once(first).chain(steps).collect()
}

/// Chebyshev iteration for symmetric positive definite systems whose eigenvalues are bounded: no dot product
/// in the recurrence.
///
/// Source: Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., algorithm 12.1, with the
/// preconditioned residual in the directions. Memory: 3 vectors besides `b` and `x`. Per iteration: 1 product
/// with `A`, 1 with `M^-1`, 1 reduction, which is for the stopping test alone. After k iterations without a
/// preconditioner the residual is at most `1 / T_k((high + low) / (high - low))` of the first.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Chebyshev {
    /// Bounds of the eigenvalues of `M^-1 A`. An eigenvalue above the upper bound makes the iteration
    /// diverge; one below the lower bound makes it slow. Default none: they are estimated by
    /// [`Bounds::estimate`] in 30 steps before the loop, and [`widened`](Bounds::widened) by 0.9 and 1.1.
    pub bounds: Option<Bounds>,
}

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
            None => Bounds::estimate(engine, a, m, 30)?.widened(0.9, 1.1)?,
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

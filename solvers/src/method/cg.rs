//! The conjugate gradient method.

use abide_core::Real;
use abide_core::backend::Observe;
use abide_core::solver::{Parameters, Profile, Quantity, Report, SolverError};

use crate::engine::{Engine, zeros};
use crate::run::{Begin, Run, residual};
use crate::solver::{Equations, Solver};

/// Preconditioned conjugate gradients, for symmetric positive definite systems.
///
/// Source: Hestenes and Stiefel, J. Res. NBS 49 (1952), section 3; preconditioned as in Saad, Iterative
/// Methods for Sparse Linear Systems, 2nd ed., algorithm 9.1. Memory: 4 vectors besides `b` and `x`. Per
/// iteration: 1 product with `A`, 1 with `M^-1`, 2 reductions (of 1 and 2 dot products).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cg;

impl<T: Real, E: Engine<T>> Solver<T, E> for Cg {
    fn name(&self) -> &'static str {
        Profile::CG.name
    }

    fn solve_observed(
        &self,
        engine: &E,
        Equations { a, m, b }: Equations<'_, T, E>,
        x: &mut [T],
        parameters: &Parameters,
        observe: &mut Observe<'_>,
    ) -> Result<Report, SolverError> {
        let mut run = match Run::begin(Profile::CG, engine, (a, &*m), b, x, parameters, observe)? {
            Begin::Zero(report) => return Ok(report),
            Begin::Iterate(run) => run,
        };
        let n = b.len();
        // Without a preconditioner z is r, and need not be written.
        let plain = m.is_identity();
        let (mut r, mut p, mut q) = (zeros(n)?, zeros(n)?, zeros(n)?);
        let mut z = zeros(if plain { 0 } else { n })?;
        let mut precondition = |r: &[T], z: &mut [T]| {
            if plain {
                return [engine.dot(r, r); 2];
            }
            m.apply(engine, r, z);
            engine.dots([(r, z), (r, r)])
        };
        residual(engine, a, b, x, &mut r);
        let [mut rz, rr] = precondition(&r, &mut z);
        p.copy_from_slice(if plain { &r } else { &z });
        let mut done = run.converged(rr)?;
        while !done {
            run.positive(Quantity::Rho, rz)?;
            a.apply(&p, &mut q);
            let pq = engine.dot(&p, &q);
            run.positive(Quantity::Curvature, pq)?;
            let alpha = rz / pq;
            engine.update([x, &mut r], [&p, &q], |[x, r], [p, q]| [x + alpha * p, r - alpha * q]);
            run.gained(alpha, rz);
            let [next, rr] = precondition(&r, &mut z);
            done = run.converged(rr)?;
            let beta = next / rz;
            rz = next;
            engine.update([&mut p], [if plain { &r } else { &z }], |[p], [z]| [z + beta * p]);
        }
        run.finish(engine, a, b, x, &mut q)
    }
}

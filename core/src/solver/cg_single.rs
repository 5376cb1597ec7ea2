//! Conjugate gradients with one reduction an iteration.

use super::run::{Begin, Run, residual, zeros};
use super::{Engine, Operator, Parameters, Preconditioner, Report, Solver, SolverError};
use crate::real::Real;

/// Conjugate gradients after Chronopoulos and Gear: all dot products of an iteration in one reduction.
///
/// Source: Chronopoulos and Gear, J. Comput. Appl. Math. 25 (1989), 153–168; preconditioned as in Ghysels and Vanroose,
/// Parallel Computing 40 (2014), algorithm 2. In exact arithmetic the iterates are those of [`Cg`](super::Cg). Memory: 5 vectors
/// besides `b` and `x`. An iteration: 1 product with `A`, 1 with `M^-1`, 1 reduction (of 3 dot products).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SingleReductionCg;

/// `(p, A p) = (u, A u) - beta gamma / alpha` of the next direction, which Chronopoulos and Gear recur instead of computing.
///
/// Near the attainable accuracy rounding can make the difference negative for a definite matrix. Then, and only then, `direct`
/// computes it, so that [`SolverError::Indefinite`] says something about the matrix.
pub(super) fn curvature<T: Real>(
    run: &mut Run<'_>,
    u_au: T,
    correction: T,
    direct: impl FnOnce() -> T,
) -> Result<T, SolverError> {
    run.positive("(u, A u)", u_au)?;
    let recurred = u_au - correction;
    let value = if recurred <= T::ZERO { direct() } else { recurred };
    run.positive("(p, A p)", value)?;
    Ok(value)
}

impl<T: Real, E: Engine<T>> Solver<T, E> for SingleReductionCg {
    fn name(&self) -> &'static str {
        "cg-single"
    }

    fn solve_on(
        &self,
        engine: &E,
        a: &dyn Operator<T>,
        m: &mut dyn Preconditioner<T, E>,
        b: &[T],
        x: &mut [T],
        parameters: &Parameters,
    ) -> Result<Report, SolverError> {
        let mut run = match Run::begin("cg-single", engine, a, b, x, parameters)? {
            Begin::Zero(report) => return Ok(report),
            Begin::Iterate(run) => run,
        };
        let n = b.len();
        let (mut r, mut u, mut w) = (zeros(n)?, zeros(n)?, zeros(n)?);
        let (mut p, mut s) = (zeros(n)?, zeros(n)?);
        residual(engine, a, b, x, &mut r);
        m.apply(engine, &r, &mut u);
        a.apply(&u, &mut w);
        let [mut gamma, mut delta, rr] = engine.dots([(&r, &u), (&w, &u), (&r, &r)]);
        // With p = s = 0 the first direction needs no case of its own.
        let (mut beta, mut correction) = (T::ZERO, T::ZERO);
        let mut done = run.converged(rr)?;
        while !done {
            run.positive("(r, M^-1 r)", gamma)?;
            let curvature = curvature(&mut run, delta, correction, || {
                // p and s of the next direction, one reduction more: (u + beta p, w + beta s).
                let [uw, us, pw, ps] = engine.dots([(&u, &w), (&u, &s), (&p, &w), (&p, &s)]);
                uw + beta * (us + pw) + beta * beta * ps
            })?;
            let alpha = gamma / curvature;
            engine.update([&mut p, &mut s, x, &mut r], [&u, &w], |[p, s, x, r], [u, w]| {
                let (p, s) = (u + beta * p, w + beta * s);
                [p, s, x + alpha * p, r - alpha * s]
            });
            m.apply(engine, &r, &mut u);
            a.apply(&u, &mut w);
            let [next, uw, rr] = engine.dots([(&r, &u), (&w, &u), (&r, &r)]);
            done = run.converged(rr)?;
            beta = next / gamma;
            correction = beta * next / alpha;
            (gamma, delta) = (next, uw);
        }
        run.finish(engine, a, b, x, &mut w)
    }
}

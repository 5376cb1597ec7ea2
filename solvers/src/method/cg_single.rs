//! Conjugate gradients with one reduction per iteration.

use abide_core::Real;
use abide_core::backend::Observe;
use abide_core::solver::{Operator, Parameters, Profile, Quantity, Report, SolverError};

use crate::engine::{Engine, zeros};
use crate::run::{Begin, Run, residual};
use crate::solver::{Equations, Solver};

/// Conjugate gradients after Chronopoulos and Gear: all dot products of an iteration in one reduction.
///
/// Source: Chronopoulos and Gear, J. Comput. Appl. Math. 25 (1989), 153–168; preconditioned as in Ghysels and
/// Vanroose, Parallel Computing 40 (2014), algorithm 2. In exact arithmetic the iterates are those of
/// [`Cg`](super::Cg). Memory: 5 vectors besides `b` and `x`. Per iteration: 1 product with `A`, 1 with
/// `M^-1`, 1 reduction (of 3 dot products).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SingleReductionCg;

/// Checks a curvature `(p, A p)` that is not positive by the recurrence, where `p = u + beta p` is the next
/// direction.
///
/// Near the attainable accuracy, rounding makes the recurred value of a definite matrix negative too. So the
/// product is computed afresh, into `product`. If that confirms the suspicion, the error is
/// [`SolverError::Indefinite`]; else the method may go on from a new first direction.
pub(super) fn suspect<T: Real, E: Engine<T>>(
    run: &mut Run<'_>,
    engine: &E,
    a: &dyn Operator<T>,
    (u, beta): (&[T], T),
    p: &mut [T],
    product: &mut [T],
) -> Result<(), SolverError> {
    engine.update([&mut *p], [u], |[p], [u]| [u + beta * p]);
    a.apply(p, product);
    run.positive(Quantity::Curvature, engine.dot(p, product))
}

impl<T: Real, E: Engine<T>> Solver<T, E> for SingleReductionCg {
    fn name(&self) -> &'static str {
        Profile::CG_SINGLE.name
    }

    fn solve_observed(
        &self,
        engine: &E,
        Equations { a, m, b }: Equations<'_, T, E>,
        x: &mut [T],
        parameters: &Parameters,
        observe: &mut Observe<'_>,
    ) -> Result<Report, SolverError> {
        let mut run = match Run::begin(Profile::CG_SINGLE, engine, (a, &*m), b, x, parameters, observe)? {
            Begin::Zero(report) => return Ok(report),
            Begin::Iterate(run) => run,
        };
        let n = b.len();
        // Without a preconditioner u is r, and need not be written.
        let plain = m.is_identity();
        let (mut r, mut w, mut p, mut s) = (zeros(n)?, zeros(n)?, zeros(n)?, zeros(n)?);
        let mut u = zeros(if plain { 0 } else { n })?;
        let mut products = |r: &[T], u: &mut [T], w: &mut [T]| {
            if plain {
                a.apply(r, w);
                let [rr, wr] = engine.dots([(r, r), (w, r)]);
                return [rr, wr, rr];
            }
            m.apply(engine, r, u);
            a.apply(u, w);
            engine.dots([(r, u), (w, u), (r, r)])
        };
        residual(engine, a, b, x, &mut r);
        let [mut gamma, mut delta, rr] = products(&r, &mut u, &mut w);
        // With p = s = 0 the first direction needs no case of its own.
        let (mut beta, mut correction) = (T::ZERO, T::ZERO);
        let mut done = run.converged(rr)?;
        while !done {
            run.positive(Quantity::Rho, gamma)?;
            run.positive(Quantity::Form, delta)?;
            let mut curvature = delta - correction;
            if curvature <= T::ZERO {
                let direction = (if plain { &r[..] } else { &u[..] }, beta);
                suspect(&mut run, engine, a, direction, &mut p, &mut s)?;
                (beta, curvature) = (T::ZERO, delta);
            }
            let alpha = gamma / curvature;
            if plain {
                engine.update([&mut p, &mut s, x, &mut r], [&w], |[p, s, x, r], [w]| {
                    let (p, s) = (r + beta * p, w + beta * s);
                    [p, s, x + alpha * p, r - alpha * s]
                });
            } else {
                engine.update([&mut p, &mut s, x, &mut r], [&u, &w], |[p, s, x, r], [u, w]| {
                    let (p, s) = (u + beta * p, w + beta * s);
                    [p, s, x + alpha * p, r - alpha * s]
                });
            }
            run.gained(alpha, gamma);
            let [next, uw, rr] = products(&r, &mut u, &mut w);
            done = run.converged(rr)?;
            beta = next / gamma;
            correction = beta * next / alpha;
            (gamma, delta) = (next, uw);
        }
        run.finish(engine, a, b, x, &mut w)
    }
}

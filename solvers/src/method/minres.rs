//! The minimal residual method.

use abide_core::Real;
use abide_core::backend::Observe;
use abide_core::solver::{Parameters, Profile, Quantity, Report, SolverError};

use crate::engine::{Engine, zeros};
use crate::run::{Begin, Run, residual};
use crate::solver::{Equations, Solver};

/// MINRES, for symmetric systems that need not be definite, and for singular ones that have a solution.
///
/// Source: Paige and Saunders, SIAM J. Numer. Anal. 12 (1975), 617–629; preconditioned as in Elman, Silvester and Wathen,
/// Finite Elements and Fast Iterative Solvers, 2nd ed., algorithm 4.1. The preconditioner must be symmetric positive definite; the
/// norm that falls in each iteration is then that of `M^-1`. The residual itself is recurred beside it, because its norm is what
/// ends a run. Memory: 7 vectors besides `b` and `x`. Per iteration: 1 product with `A`, 1 with `M^-1`, 2 reductions (of 1 and 3 dot
/// products).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Minres;

impl<T: Real, E: Engine<T>> Solver<T, E> for Minres {
    fn name(&self) -> &'static str {
        Profile::MINRES.name
    }

    fn solve_observed(
        &self,
        engine: &E,
        Equations { a, m, b }: Equations<'_, T, E>,
        x: &mut [T],
        parameters: &Parameters,
        observe: &mut Observe<'_>,
    ) -> Result<Report, SolverError> {
        let mut run = match Run::begin(Profile::MINRES, engine, (a, &*m), b, x, parameters, observe)? {
            Begin::Zero(report) => return Ok(report),
            Begin::Iterate(run) => run,
        };
        let n = b.len();
        // Without a preconditioner z is v, and need not be written.
        let plain = m.is_identity();
        let (mut r, mut v, mut v_before, mut q) = (zeros(n)?, zeros(n)?, zeros(n)?, zeros(n)?);
        let (mut w, mut w_before) = (zeros(n)?, zeros(n)?);
        let mut z = zeros(if plain { 0 } else { n })?;
        // (v, z), (r, v) and (v, v).
        let mut sums = |r: &[T], v: &[T], z: &mut [T]| {
            if plain {
                return engine.dots([(v, v), (r, v), (v, v)]);
            }
            m.apply(engine, v, z);
            engine.dots([(v, z), (r, v), (v, v)])
        };
        residual(engine, a, b, x, &mut r);
        v.copy_from_slice(&r);
        let [square, _, mut rr] = sums(&r, &v, &mut z);
        let mut gamma = root(&mut run, square)?;
        let (mut gamma_before, mut eta) = (T::ONE, gamma);
        // Of the last rotation, and what the one before left of gamma.
        let (mut c, mut s, mut above, mut beyond) = (T::ONE, T::ZERO, gamma, T::ZERO);
        let mut done = run.converged(rr)?;
        while !done {
            run.nonzero(Quantity::Next, gamma)?;
            a.apply(if plain { &v } else { &z }, &mut q);
            let form = engine.dot(if plain { &v } else { &z }, &q);
            let delta = form / (gamma * gamma);
            let (inverse, old, older) = (T::ONE / gamma, delta / gamma, gamma / gamma_before);
            let (diagonal, beside) = (c * delta - s * above, s * delta + c * above);
            // The next vector of Lanczos' method, and the direction but for its length.
            let step = |[v_before, v, w_before, w]: [T; 4], [q, z]: [T; 2]| {
                let next = (q * inverse - old * v) - older * v_before;
                let direction = (z * inverse - beyond * w_before) - beside * w;
                [v, next, w, direction]
            };
            let vectors: [&mut [T]; 4] = [&mut v_before, &mut v, &mut w_before, &mut w];
            match plain {
                true => engine.update(vectors, [&q], |own, [q]| step(own, [q, own[1]])),
                false => engine.update(vectors, [&q, &z], step),
            }
            let [square, rv, vv] = sums(&r, &v, &mut z);
            let gamma_next = root(&mut run, square)?;
            let squares = diagonal * diagonal + square;
            run.nonzero(Quantity::Determinant, squares)?;
            let inverse = T::ONE / squares.sqrt();
            let (c_next, s_next) = (diagonal * inverse, gamma_next * inverse);
            let length = c_next * eta;
            let (kept, taken) = (s_next * s_next, length * inverse);
            engine.update([&mut w, &mut *x, &mut r], [&v], |[w, x, r], [v]| {
                let w = w * inverse;
                [w, x + length * w, kept * r - taken * v]
            });
            rr = (kept * kept * rr - T::from_f64(2.0) * kept * taken * rv) + taken * taken * vv;
            if rr < T::ZERO {
                // What rounding leaves of nothing.
                rr = T::ZERO;
            }
            (above, beyond) = (c * gamma_next, s * gamma_next);
            (c, s, gamma_before, gamma, eta) = (c_next, s_next, gamma, gamma_next, -(s_next * eta));
            done = run.converged(rr)?;
        }
        run.finish(engine, a, b, x, &mut q)
    }
}

/// Returns the root of (v, M^-1 v). Fails where it is negative, so that the preconditioner is not positive definite.
fn root<T: Real>(run: &mut Run<'_>, square: T) -> Result<T, SolverError> {
    if square >= T::ZERO && square.is_finite() {
        return Ok(square.sqrt());
    }
    run.positive(Quantity::Rho, square)?;
    Ok(square)
}

//! The stabilised bi-conjugate gradient method.

use abide_core::Real;
use abide_core::backend::Observe;
use abide_core::solver::{Parameters, Profile, Quantity, Report, SolverError};

use crate::engine::{Engine, zeros};
use crate::run::{Begin, Run, residual};
use crate::solver::{Equations, Solver};

/// BiCGStab with right preconditioning, for any invertible matrix.
///
/// Source: van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992), 631–644, the algorithm of section 3,
/// preconditioned from the right (so that the residual is the true one) as in Barrett et al., Templates
/// (1994), figure 2.10. Memory: 7 vectors besides `b` and `x`. Per iteration: 2 products with `A`, 2 with
/// `M^-1`, 3 reductions (of 1, 3 and 2 dot products). It may stop at half an iteration, which the history
/// counts as a whole one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BiCgStab;

impl<T: Real, E: Engine<T>> Solver<T, E> for BiCgStab {
    fn name(&self) -> &'static str {
        Profile::BICGSTAB.name
    }

    fn solve_observed(
        &self,
        engine: &E,
        Equations { a, m, b }: Equations<'_, T, E>,
        x: &mut [T],
        parameters: &Parameters,
        observe: &mut Observe<'_>,
    ) -> Result<Report, SolverError> {
        let mut run = match Run::begin(Profile::BICGSTAB, engine, (a, &*m), b, x, parameters, observe)? {
            Begin::Zero(report) => return Ok(report),
            Begin::Iterate(run) => run,
        };
        let n = b.len();
        let (mut r, mut shadow, mut p, mut v) = (zeros(n)?, zeros(n)?, zeros(n)?, zeros(n)?);
        let (mut p_hat, mut s_hat, mut t) = (zeros(n)?, zeros(n)?, zeros(n)?);
        residual(engine, a, b, x, &mut r);
        shadow.copy_from_slice(&r);
        p.copy_from_slice(&r);
        let mut rho = engine.dot(&r, &r);
        let mut done = run.converged(rho)?;
        while !done {
            run.nonzero(Quantity::Shadow, rho)?;
            m.apply(engine, &p, &mut p_hat);
            a.apply(&p_hat, &mut v);
            let shadow_v = engine.dot(&shadow, &v);
            run.nonzero(Quantity::ShadowProduct, shadow_v)?;
            let alpha = rho / shadow_v;
            // From here to the end of the iteration r is the paper's s.
            engine.update([&mut r], [&v], |[r], [v]| [r - alpha * v]);
            m.apply(engine, &r, &mut s_hat);
            a.apply(&s_hat, &mut t);
            let [ts, tt, ss] = engine.dots([(&t, &r), (&t, &t), (&r, &r)]);
            if ss.to_f64().sqrt() <= run.threshold() {
                engine.update([x], [&p_hat], |[x], [p]| [x + alpha * p]);
                run.converged(ss)?;
                break;
            }
            run.nonzero(Quantity::Square, tt)?;
            let omega = ts / tt;
            engine.update([x, &mut r], [&p_hat, &s_hat, &t], |[x, r], [p, s, t]| {
                [x + (alpha * p + omega * s), r - omega * t]
            });
            let [next, rr] = engine.dots([(&shadow, &r), (&r, &r)]);
            done = run.converged(rr)?;
            if !done {
                run.nonzero(Quantity::Omega, omega)?;
                let beta = (next / rho) * (alpha / omega);
                rho = next;
                engine.update([&mut p], [&r, &v], |[p], [r, v]| [r + beta * (p - omega * v)]);
            }
        }
        run.finish(engine, a, b, x, &mut t)
    }
}

//! Pipelined conjugate gradients with residual replacement.

use abide_core::Real;
use abide_core::backend::Observe;
use abide_core::solver::{Parameters, PipelinedCg, Profile, Quantity, Report, SolverError};

use super::cg_single::suspect;
use crate::engine::{Engine, zeros};
use crate::run::{Begin, Run, residual};
use crate::solver::{Equations, Solver};

impl<T: Real, E: Engine<T>> Solver<T, E> for PipelinedCg {
    fn name(&self) -> &'static str {
        Profile::CG_PIPELINED.name
    }

    fn solve_observed(
        &self,
        engine: &E,
        Equations { a, m, b }: Equations<'_, T, E>,
        x: &mut [T],
        parameters: &Parameters,
        observe: &mut Observe<'_>,
    ) -> Result<Report, SolverError> {
        let mut run = match Run::begin(Profile::CG_PIPELINED, engine, (a, &*m), b, x, parameters, observe)? {
            Begin::Zero(report) => return Ok(report),
            Begin::Iterate(run) => run,
        };
        let len = b.len();
        // As the paper names them: u = M^-1 r, w = A u, m = M^-1 w, n = A m; s = A p, q = M^-1 s, z = A q.
        let (mut r, mut u, mut w, mut mw, mut n) =
            (zeros(len)?, zeros(len)?, zeros(len)?, zeros(len)?, zeros(len)?);
        let (mut p, mut s, mut q, mut z) = (zeros(len)?, zeros(len)?, zeros(len)?, zeros(len)?);
        residual(engine, a, b, x, &mut r);
        m.apply(engine, &r, &mut u);
        a.apply(&u, &mut w);
        let (mut last_gamma, mut last_alpha) = (T::ONE, T::ONE);
        let mut iteration = 0_usize;
        // Whether r, u and w are computed rather than recurred, and there is no direction before.
        let mut fresh = true;
        // Whether the history already has this iterate's residual.
        let mut is_told = false;
        loop {
            let [gamma, delta, rr] = engine.dots([(&r, &u), (&w, &u), (&r, &r)]);
            m.apply(engine, &w, &mut mw);
            a.apply(&mw, &mut n);
            if !std::mem::take(&mut is_told) && run.converged(rr)? {
                residual(engine, a, b, x, &mut r);
                let norm = engine.dot(&r, &r).to_f64().sqrt();
                if !norm.is_finite() || run.is_met(norm, true) {
                    return run.conclude(norm);
                }
                // The recurrences have lost the residual: start anew.
                run.lost(norm)?;
                m.apply(engine, &r, &mut u);
                a.apply(&u, &mut w);
                (fresh, is_told) = (true, true);
                continue;
            }
            let beta = if fresh { T::ZERO } else { gamma / last_gamma };
            let curvature = delta - beta * gamma / last_alpha;
            if !fresh && (gamma <= T::ZERO || delta <= T::ZERO || curvature <= T::ZERO) {
                // The cause may be rounding: look at products computed afresh, then start anew.
                suspect(&mut run, engine, a, (&u, beta), &mut p, &mut n)?;
                residual(engine, a, b, x, &mut r);
                m.apply(engine, &r, &mut u);
                a.apply(&u, &mut w);
                fresh = true;
                continue;
            }
            run.positive(Quantity::Rho, gamma)?;
            run.positive(Quantity::Curvature, curvature)?;
            fresh = false;
            let alpha = gamma / curvature;
            engine.update(
                [&mut z, &mut q, &mut s, &mut p, x, &mut r, &mut u, &mut w],
                [&n, &mw],
                |[z, q, s, p, x, r, u, w], [n, m]| {
                    let (z, q, s, p) = (n + beta * z, m + beta * q, w + beta * s, u + beta * p);
                    [z, q, s, p, x + alpha * p, r - alpha * s, u - alpha * q, w - alpha * z]
                },
            );
            run.gained(alpha, gamma);
            (last_gamma, last_alpha) = (gamma, alpha);
            iteration += 1;
            if self.replacement > 0 && iteration.is_multiple_of(self.replacement) {
                residual(engine, a, b, x, &mut r);
                m.apply(engine, &r, &mut u);
                a.apply(&u, &mut w);
                a.apply(&p, &mut s);
                m.apply(engine, &s, &mut q);
                a.apply(&q, &mut z);
            }
        }
    }
}

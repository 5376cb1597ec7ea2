//! Mixed precision: a solver in f32 inside corrections in f64.

use std::ops::ControlFlow;
use std::sync::Arc;

use abide_core::backend::{LinearSession, Observe};
use abide_core::solver::{Operator, Parameters, Quantity, RankSolve, Report, SolvePlan, SolverError};
use abide_core::{Array, DType, Error, Result};

use crate::engine::{Engine, zeros};
use crate::run::{Begin, Run, residual};
use crate::session::vectors_of;

/// The residual of a correction relative to its right-hand side: as small as f32 makes it with most matrices,
/// and no smaller.
const CORRECTION: f64 = 1e-4;

/// Iterative refinement: `r = b - A x` and `x += d` are computed in f64, and `A d = r` is solved in f32 by
/// any backend's session.
///
/// Source: Moler, J. ACM 14 (1967), 316–321; with a Krylov method inside as in Göddeke, Strzodka and Turek,
/// Int. J. Parallel Emergent Distrib. Syst. 22 (2007), 221–256. The right-hand side of each correction is
/// scaled to norm 1, so that f32's range suffices. A correction ends when it has met [`Parameters`]'
/// tolerance or a relative 1e-4. The history counts the inner iterations. Where a correction begins, the
/// history holds the true residual, and only the true residual ends the run.
pub struct Refinement<E> {
    engine: E,
    operator: Arc<dyn Operator<f64>>,
    inner: Box<dyn LinearSession>,
    plan: SolvePlan,
}

impl<E: Engine<f64>> Refinement<E> {
    /// Makes a refinement that corrects on `engine`, with the products of `operator`, the solutions of
    /// `inner`, a session of the same matrix rounded to f32. Fails if `inner` is no session of f32, or one of
    /// another size.
    pub fn new(engine: E, operator: Arc<dyn Operator<f64>>, inner: Box<dyn LinearSession>) -> Result<Self> {
        let mut plan = inner.plan().clone();
        if plan.dtype != DType::F32 || plan.rows != operator.rows() {
            let reason =
                format!("it has {} rows of {}, the matrix {} of f64", plan.rows, plan.dtype, operator.rows());
            return Err(Error::invalid(
                "the inner session of a refinement",
                reason,
                "open it for the matrix in f32",
            ));
        }
        plan.notes.push("mixed precision: iterations in f32, corrected in f64 on the host".to_owned());
        Ok(Refinement { engine, operator, inner, plan })
    }

    fn refine(
        &mut self,
        b: &[f64],
        x: &mut [f64],
        parameters: &Parameters,
        observe: &mut Observe<'_>,
    ) -> Result<Report, SolverError> {
        let (engine, a) = (&self.engine, &*self.operator);
        let square = |b: &[f64]| engine.dot(b, b);
        let mut run =
            match Run::open(self.plan.method.profile(), a.rows(), b, x, square, parameters, observe)? {
                Begin::Zero(report) => return Ok(report),
                Begin::Iterate(run) => run.iterating_in(DType::F32),
            };
        let n = b.len();
        let mut r = zeros::<f64>(n)?;
        let (mut right, mut d) = (Array::zeros(DType::F32, n)?, Array::zeros(DType::F32, n)?);
        residual(engine, a, b, x, &mut r);
        let mut norm = engine.dot(&r, &r).sqrt();
        let mut done = run.converged_norm(norm)?;
        while !done {
            if let (Array::F32(right), Array::F32(d)) = (&mut right, &mut d) {
                right.iter_mut().zip(&r).for_each(|(to, r)| *to = (r / norm) as f32);
                d.fill(0.0);
            }
            let inner = Parameters {
                relative: CORRECTION.max(0.5 * run.threshold() / norm),
                absolute: 0.0,
                iterations: parameters.iterations - run.report().iterations,
                time: None,
                ..parameters.clone()
            };
            let mut ended = None;
            let outcome = self.inner.solve(&right, &mut d, &inner, &mut |iteration, relative| {
                if iteration == 0 {
                    return ControlFlow::Continue(());
                }
                // If the recurred residual in f32 meets the threshold, that says nothing yet.
                match run.converged_norm(norm * relative) {
                    Ok(_) => ControlFlow::Continue(()),
                    Err(error) => {
                        ended = Some(error);
                        ControlFlow::Break(())
                    }
                }
            });
            if let Array::F32(d) = &d
                && d.iter().all(|d| d.is_finite())
            {
                x.iter_mut().zip(d).for_each(|(x, d)| *x += norm * f64::from(*d));
            }
            if let Some(error) = ended {
                return Err(error);
            }
            residual(engine, a, b, x, &mut r);
            let before = norm;
            norm = engine.dot(&r, &r).sqrt();
            if !norm.is_finite() {
                return Err(run.not_finite(Quantity::TrueResidual));
            }
            run.measured(norm);
            done = norm <= run.threshold();
            // A correction worth less than one bit was the last that f32 can give; the reason why it ended determines
            // the error.
            if !done && norm > 0.5 * before {
                return Err(match outcome {
                    Err(error) if !matches!(error, SolverError::NotConverged { .. }) => run.instead_of(error),
                    _ => run.stagnation(),
                });
            }
        }
        run.conclude(norm)
    }
}

impl<E: Engine<f64>> LinearSession for Refinement<E> {
    fn plan(&self) -> &SolvePlan {
        &self.plan
    }

    fn solve(
        &mut self,
        b: &Array,
        x: &mut Array,
        parameters: &Parameters,
        observe: &mut Observe<'_>,
    ) -> Result<Report, SolverError> {
        let (b, x) = vectors_of::<f64>(b, x)?;
        self.refine(b, x, parameters, observe)
    }

    fn take_ranks(&mut self) -> Vec<RankSolve> {
        self.inner.take_ranks()
    }
}

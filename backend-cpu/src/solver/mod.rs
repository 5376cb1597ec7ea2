//! Solving linear systems: the reference's methods on all threads, with the reference's bits.
//!
//! `engine` does reductions and updates in pieces, `rows` and `grid` the products; `plan` counts the bytes that
//! they move; `slab` opens the sessions of ranks that solve one system jointly.

mod engine;
mod grid;
mod plan;
mod rows;
mod slab;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use abide_core::backend::{BatchSystem, LinearBackend, LinearSession, LinearSlabs, check_batch, solve_alone};
use abide_core::floating::standard;
use abide_core::solver::{Matrix, Operator, Parameters, Report, SolveOptions, SolvePlan, SolverError};
use abide_core::{Backend, DType, Real, Result};
use abide_solvers::{EngineSession, Serial};
use rayon::prelude::*;

pub use engine::Threads;

use crate::backend::CpuBackend;
use crate::threads::{self, on};

/// Returns the product with a matrix on the threads of rayon's current pool; an error where `T` is not the
/// matrix's type.
///
/// The bits are those of [`Matrix::operator`].
pub fn threaded_operator<T: Real>(matrix: &Matrix) -> Result<Arc<dyn Operator<T>>> {
    if rayon::current_thread_index().is_none() {
        threads::start()?;
    }
    let plain = matrix.operator::<T>()?;
    Ok(match matrix {
        Matrix::Stored(matrix) => Arc::new(rows::Rows::new(Arc::clone(matrix), plain)),
        Matrix::Stencil(operator) => Arc::new(grid::Grid::new(Arc::clone(operator), plain)),
    })
}

impl CpuBackend {
    fn linear_session<T: Real>(
        &self,
        matrix: &Matrix,
        plan: SolvePlan,
        options: &SolveOptions,
    ) -> Result<Box<dyn LinearSession>, SolverError> {
        if self.is_reference() {
            return Ok(Box::new(EngineSession::open(Serial, matrix.operator::<T>()?, plan, options)?));
        }
        let engine = Threads::<T>::new(self.pool(), matrix.rows())?;
        Ok(Box::new(EngineSession::open(engine, threaded_operator::<T>(matrix)?, plan, options)?))
    }
}

impl LinearBackend for CpuBackend {
    fn plan_solve(&self, matrix: &Matrix, options: &SolveOptions) -> Result<SolvePlan> {
        self.ready()?;
        let mut plan = plan::plan(matrix, options, self.machine(false), self.is_reference());
        if plan.traffic.moved > 0.0 {
            plan.device = self.machine(true).clone();
        }
        Ok(plan)
    }

    fn open_solver(
        &self,
        matrix: &Matrix,
        plan: &SolvePlan,
        options: &SolveOptions,
    ) -> Result<Box<dyn LinearSession>, SolverError> {
        self.ready()?;
        plan.check(self.name(), matrix, options)?;
        matrix.check(options)?;
        standard(|| match matrix.dtype() {
            DType::F32 => self.linear_session::<f32>(matrix, plan.clone(), options),
            DType::F64 => self.linear_session::<f64>(matrix, plan.clone(), options),
        })
    }

    fn slabs(&self) -> Option<&dyn LinearSlabs> {
        Some(self)
    }

    /// Solves one system per thread: there are more small systems than threads, and no thread waits for
    /// another.
    fn solve_batch(
        &self,
        systems: &mut [BatchSystem<'_>],
        options: &SolveOptions,
        parameters: &Parameters,
    ) -> Result<Vec<Result<Report, SolverError>>> {
        self.ready()?;
        check_batch(systems)?;
        // The reference solves each system on one thread, with the same bits as on all threads.
        let reference = CpuBackend::reference();
        let alone = |system: &mut BatchSystem<'_>| solve_alone(&reference, system, options, parameters);
        let solve = |system: &mut BatchSystem<'_>| standard(|| alone(system));
        match self.is_reference() {
            true => Ok(systems.iter_mut().map(solve).collect()),
            false => on(self.pool().as_ref(), || systems.par_iter_mut().map(solve).collect()),
        }
    }
}

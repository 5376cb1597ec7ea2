//! What every backend offers that solves linear systems.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::{Matrix, Parameters, Report, SolveOptions, SolvePlan, SolverError};
use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::real::Array;

/// Sees the number of an iterate and the norm of its residual, and may end the run with
/// [`SolverError::Stopped`].
///
/// It is called once for every entry of the history, in order; a backend whose loop runs on a device may call
/// it for several iterations at once.
pub type Observe<'a> = dyn FnMut(usize, f64) -> ControlFlow<()> + Send + 'a;

/// A backend that solves `A x = b`. A [`Backend`] that is one says so in [`Backend::linear`].
pub trait LinearBackend: Backend {
    /// How it would solve systems with a matrix. Nothing is allocated on the device.
    fn plan_solve(&self, matrix: &Matrix, options: &SolveOptions) -> Result<SolvePlan>;

    /// Checks the system ([`Matrix::check`], [`SolvePlan::check`]), compiles, allocates, loads the matrix and
    /// makes the preconditioner.
    ///
    /// The session's own [`LinearSession::plan`] may differ from `plan` where a compiler's report asked for
    /// it; its notes say so.
    ///
    /// # Errors
    ///
    /// What is wrong with the matrix, each with its own [`SolverError`]; [`SolverError::Invalid`] for what
    /// the device cannot do.
    fn open_solver(
        &self,
        matrix: &Matrix,
        plan: &SolvePlan,
        options: &SolveOptions,
    ) -> Result<Box<dyn LinearSession>, SolverError>;

    /// Solves independent systems whose matrices have their entries at the same places: one result a system,
    /// in order, each as [`LinearSession::solve`] gives it.
    ///
    /// One after the other, unless the backend does better.
    ///
    /// # Errors
    ///
    /// What [`check_batch`] finds, and what the backend cannot do for any of them.
    fn solve_batch(
        &self,
        systems: &mut [BatchSystem<'_>],
        options: &SolveOptions,
        parameters: &Parameters,
    ) -> Result<Vec<Result<Report, SolverError>>> {
        check_batch(systems)?;
        Ok(systems.iter_mut().map(|system| solve_alone(self, system, options, parameters)).collect())
    }
}

/// Solves one of many systems in a session of its own.
///
/// # Errors
///
/// Those of [`LinearBackend::plan_solve`], [`LinearBackend::open_solver`] and [`LinearSession::solve`].
pub fn solve_alone(
    backend: &(impl LinearBackend + ?Sized),
    system: &mut BatchSystem<'_>,
    options: &SolveOptions,
    parameters: &Parameters,
) -> Result<Report, SolverError> {
    let plan = backend.plan_solve(system.matrix, options)?;
    let mut session = backend.open_solver(system.matrix, &plan, options)?;
    session.solve(system.b, system.x, parameters, &mut |_, _| ControlFlow::Continue(()))
}

/// One of many independent systems; `x` holds the first guess, and then the last iterate.
pub struct BatchSystem<'a> {
    /// The matrix, stored.
    pub matrix: &'a Matrix,
    /// The right-hand side.
    pub b: &'a Array,
    /// The solution.
    pub x: &'a mut Array,
}

/// Checks that the matrices of a batch are stored, of one type, and have their entries at the same places.
pub fn check_batch(systems: &[BatchSystem<'_>]) -> Result<()> {
    let Some(Matrix::Stored(first)) = systems.first().map(|system| system.matrix) else {
        let reason = "its matrices are not stored";
        return if systems.is_empty() {
            Ok(())
        } else {
            Err(Error::invalid("a batch of systems", reason, "assemble them"))
        };
    };
    let differs = |matrix: &Matrix| match matrix {
        Matrix::Stored(other) if Arc::ptr_eq(first, other) => false,
        Matrix::Stored(other) => {
            (first.dtype(), first.columns()) != (other.dtype(), other.columns())
                || first.offsets() != other.offsets()
                || first.indices() != other.indices()
        }
        Matrix::Stencil(_) => true,
    };
    match systems.iter().position(|system| differs(system.matrix)) {
        Some(number) => {
            let reason = format!(
                "the matrix of system {number} has another type or other places of entries than the first"
            );
            Err(Error::invalid("a batch of systems", reason, "solve systems of one pattern at a time"))
        }
        None => Ok(()),
    }
}

/// A matrix on a device, ready to solve for one right-hand side after the other.
pub trait LinearSession: Send {
    /// The plan that runs.
    fn plan(&self) -> &SolvePlan;

    /// Improves `x` until `b - A x` is small enough, as
    /// [`Solver::solve_observed`](super::Solver::solve_observed) does: the same stopping tests, history, true
    /// residual and errors ([`Run`](super::Run) has them). `x` holds the first guess, and then the last
    /// iterate.
    ///
    /// # Errors
    ///
    /// [`SolverError::Invalid`] for vectors of another type or length and parameters that are no tolerances;
    /// else the error that says how the iteration ended, with the history.
    fn solve(
        &mut self,
        b: &Array,
        x: &mut Array,
        parameters: &Parameters,
        observe: &mut Observe<'_>,
    ) -> Result<Report, SolverError>;
}

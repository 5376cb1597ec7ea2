//! What every backend offers that solves linear systems.

use std::ops::ControlFlow;

use super::{Matrix, Parameters, Report, SolveOptions, SolvePlan, SolverError};
use crate::backend::Backend;
use crate::error::Result;
use crate::real::Array;

/// Sees the number of an iterate and the norm of its residual, and may end the run with [`SolverError::Stopped`].
///
/// It is called once for every entry of the history, in order; a backend whose loop runs on a device may call it for several
/// iterations at once.
pub type Observe<'a> = dyn FnMut(usize, f64) -> ControlFlow<()> + Send + 'a;

/// A backend that solves `A x = b`. A [`Backend`] that is one says so in [`Backend::linear`].
pub trait LinearBackend: Backend {
    /// How it would solve systems with a matrix. Nothing is allocated on the device.
    fn plan_solve(&self, matrix: &Matrix, options: &SolveOptions) -> Result<SolvePlan>;

    /// Checks the system ([`Matrix::check`], [`SolvePlan::check`]), compiles, allocates, loads the matrix and makes the preconditioner.
    ///
    /// The session's own [`LinearSession::plan`] may differ from `plan` where a compiler's report asked for it; its notes say so.
    ///
    /// # Errors
    ///
    /// What is wrong with the matrix, each with its own [`SolverError`]; [`SolverError::Invalid`] for what the device cannot do.
    fn open_solver(
        &self,
        matrix: &Matrix,
        plan: &SolvePlan,
        options: &SolveOptions,
    ) -> Result<Box<dyn LinearSession>, SolverError>;
}

/// A matrix on a device, ready to solve for one right-hand side after the other.
pub trait LinearSession: Send {
    /// The plan that runs.
    fn plan(&self) -> &SolvePlan;

    /// Improves `x` until `b - A x` is small enough, as [`Solver::solve_observed`](super::Solver::solve_observed) does: the same stopping tests,
    /// history, true residual and errors ([`Run`](super::Run) has them). `x` holds the first guess, and then the last iterate.
    ///
    /// # Errors
    ///
    /// [`SolverError::Invalid`] for vectors of another type or length and parameters that are no tolerances; else the error that says
    /// how the iteration ended, with the history.
    fn solve(
        &mut self,
        b: &Array,
        x: &mut Array,
        parameters: &Parameters,
        observe: &mut Observe<'_>,
    ) -> Result<Report, SolverError>;
}

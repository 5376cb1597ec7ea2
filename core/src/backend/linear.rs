//! The traits of backends that solve linear systems: on one device, on slabs of rows, and jointly with other processes.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::Backend;
use crate::communicator::Endpoint;
use crate::error::{Error, Result};
use crate::real::Array;
use crate::solver::plan::SolvePlan;
use crate::solver::{Matrix, Parameters, RankSolve, Report, RowSlab, SolveOptions, SolverError};

/// A function that sees the number of an iterate and the norm of its residual, and may end the run with
/// [`SolverError::Stopped`].
///
/// It is called once for every entry of the history, in order. A backend whose loop runs on a device may call
/// it for several iterations at once.
pub type Observe<'a> = dyn FnMut(usize, f64) -> ControlFlow<()> + Send + 'a;

/// A backend that solves `A x = b`. Such a [`Backend`] returns itself from [`Backend::linear`].
pub trait LinearBackend: Backend {
    /// Plans how the backend would solve systems with a matrix. Nothing is allocated on the device.
    fn plan_solve(&self, matrix: &Matrix, options: &SolveOptions) -> Result<SolvePlan>;

    /// Checks the system ([`Matrix::check`], [`SolvePlan::check`]), compiles, allocates, loads the matrix and
    /// makes the preconditioner.
    ///
    /// The session's own [`LinearSession::plan`] may differ from `plan` if a compiler's report asked for it;
    /// the plan's notes say so.
    ///
    /// # Errors
    ///
    /// Each fault of the matrix has its own [`SolverError`]; [`SolverError::Invalid`] stands for whatever the
    /// device cannot do.
    fn open_solver(
        &self,
        matrix: &Matrix,
        plan: &SolvePlan,
        options: &SolveOptions,
    ) -> Result<Box<dyn LinearSession>, SolverError>;

    /// Returns the part that solves on a slab of rows while other devices have the others; `None` where a system is solved
    /// on one device alone.
    fn slabs(&self) -> Option<&dyn LinearSlabs> {
        None
    }

    /// Returns the part whose device solves with those of other processes by itself; `None` where it does not.
    fn peer(&self) -> Option<&dyn LinearPeer> {
        None
    }

    /// Solves independent systems whose matrices have their entries at the same places. There is one result
    /// per system, in order, each as [`LinearSession::solve`] gives it.
    ///
    /// The systems are solved one after the other, unless the backend does better.
    ///
    /// # Errors
    ///
    /// Those of [`check_batch`], and one if the backend cannot solve any of the systems.
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

/// Devices that solve a linear system in one shared session, each with a slab of the rows.
pub trait LinearDeviceGroup: Send + Sync {
    /// Plans how all of them would solve, as [`LinearBackend::plan_solve`] does; [`SolvePlan::ranks`] has the rows of each.
    /// Fewer solve where there are too few rows; it is empty where one does.
    fn plan_solve(&self, matrix: &Matrix, options: &SolveOptions) -> Result<SolvePlan>;

    /// Opens a session of such a plan for several devices, as [`LinearBackend::open_solver`] does.
    ///
    /// # Errors
    ///
    /// The errors of [`LinearBackend::open_solver`], and an error for what the devices cannot do jointly.
    fn open_solver(
        &self,
        matrix: &Matrix,
        plan: &SolvePlan,
        options: &SolveOptions,
    ) -> Result<Box<dyn LinearSession>, SolverError>;
}

/// Solves one of many systems, in a session of its own.
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

/// One of many independent systems. `x` holds the first guess, and after the solve the last iterate.
pub struct BatchSystem<'a> {
    /// The matrix, stored.
    pub matrix: &'a Matrix,
    /// The right-hand side.
    pub b: &'a Array,
    /// The first guess, and then the solution.
    pub x: &'a mut Array,
}

/// Checks that the matrices of a batch are stored, have one type, and have their entries at the same places.
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

/// A matrix on a device, ready to be solved for one right-hand side after the other.
pub trait LinearSession: Send {
    /// Returns the plan that runs.
    fn plan(&self) -> &SolvePlan;

    /// Improves `x` until `b - A x` is small enough, as
    /// `Solver::solve_observed` of the crate `abide-solvers` does: with the same stopping tests, history,
    /// true residual and errors (all in its `Run`). `x` holds the first guess, and after the solve
    /// the last iterate.
    ///
    /// # Errors
    ///
    /// [`SolverError::Invalid`] for vectors of another type or length, and for parameters that are no
    /// tolerances; else the error that says how the iteration ended, with the history.
    fn solve(
        &mut self,
        b: &Array,
        x: &mut Array,
        parameters: &Parameters,
        observe: &mut Observe<'_>,
    ) -> Result<Report, SolverError>;

    /// Returns what each device did since the last call, where several devices solve; nothing otherwise.
    fn take_ranks(&mut self) -> Vec<RankSolve> {
        Vec::new()
    }
}

/// A backend whose device solves jointly with the devices of other processes.
pub trait LinearPeer: Sync {
    /// Plans how so many devices like this one would solve, as [`LinearBackend::plan_solve`](super::LinearBackend::plan_solve)
    /// does; [`SolvePlan::ranks`] has the rows of each. Fewer solve where there are too few rows; it is empty where one does.
    ///
    /// # Errors
    ///
    /// The errors of planning, and an error for what the devices cannot do jointly.
    fn plan_peers(&self, matrix: &Matrix, options: &SolveOptions, count: usize) -> Result<SolvePlan>;

    /// Opens a session of this process's rows of such a plan, while all other processes open theirs. Its solves take
    /// whole vectors, and improve these rows of `x`. Only the first process's observer may end the solve; the others
    /// only observe.
    ///
    /// # Errors
    ///
    /// Those of [`LinearBackend::open_solver`](super::LinearBackend::open_solver), and those of the communicator.
    fn open_peer(
        &self,
        matrix: &Matrix,
        plan: &SolvePlan,
        options: &SolveOptions,
        endpoint: Endpoint,
    ) -> Result<Box<dyn LinearSession>, SolverError>;
}

/// A backend that solves on a slab of rows, while other ranks have the others.
pub trait LinearSlabs {
    /// Opens a session of the slab's rows, for vectors of the slab's length. All ranks open theirs at the same time, and then
    /// make the same calls: making a preconditioner may need them all. The caller has checked the system.
    ///
    /// # Errors
    ///
    /// Those of the preconditioner, and those of the communicator.
    fn open_slab(
        &self,
        slab: &Arc<RowSlab>,
        plan: &SolvePlan,
        options: &SolveOptions,
        endpoint: Endpoint,
    ) -> Result<Box<dyn LinearSession>, SolverError>;
}

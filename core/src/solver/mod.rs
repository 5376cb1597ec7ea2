//! Iterative solvers of `A x = b`: the reference that every backend's solvers are compared with.
//!
//! A [`Solver`] is a method. [`Parameters`] say when it stops, a [`Report`] what it did, a [`SolverError`]
//! why it could not converge. The matrix is any [`Operator`], stored or not; a [`Preconditioner`] is an
//! approximate inverse. The methods are written over an [`Engine`], whose reductions have one fixed tree
//! ([`reduction`](crate::reduction)): they give the same bits on every run, whatever the number of threads. Solvers allocate
//! before the loop, never in it.
//!
//! | method | matrix | vectors | reductions per iteration |
//! |---|---|---|---|
//! | [`Cg`] | symmetric positive definite | 4 | 2 |
//! | [`SingleReductionCg`] | symmetric positive definite | 5 | 1 |
//! | [`PipelinedCg`] | symmetric positive definite | 9 | 1, beside the products |
//! | [`BiCgStab`] | any invertible | 7 | 3 |
//! | [`Gmres`] | any invertible | m + 3 | 3 |
//! | [`Chebyshev`] | symmetric positive definite, eigenvalues bounded | 3 | 1, to stop |
//! | [`Jacobi`] | diagonally dominant | 2 | 1, to stop |
//!
//! Preconditioners: [`Identity`] (none), [`Diagonal`] (Jacobi's), [`BlockDiagonal`] (block-Jacobi) and
//! [`ChebyshevPolynomial`]; none has a reduction.

mod backend;
mod bounds;
mod engine;
mod grid_operator;
mod matrix;
mod method;
mod operator;
mod options;
mod outcome;
mod peer;
pub mod plan;
mod precondition;
mod progress;
mod refine;
mod report;
mod run;
mod session;
mod slabs;
#[cfg(test)]
mod tests;

pub use backend::{
    BatchSystem, LinearBackend, LinearDeviceGroup, LinearSession, Observe, check_batch, solve_alone,
};
pub use bounds::Bounds;
pub use engine::{Engine, Serial, to_shortest};
pub use grid_operator::GridOperator;
pub use matrix::Matrix;
pub use method::{
    BiCgStab, Cg, Chebyshev, Gmres, Jacobi, METHODS, PRECONDITIONERS, PipelinedCg, Profile,
    SingleReductionCg, method, polynomial_factors, preconditioner,
};
pub use operator::Operator;
pub use options::{Method, Nullspace, Preconditioning, SolveCache, SolveOptions, polynomial_bounds};
pub use outcome::{Outcome, Quantity, Status};
pub use peer::{Decision, LinearPeer, PeerCommunicator};
pub use plan::{Bands, Place, Product, Resident, SolvePlan, SolveSchedule, SolveSync, SolveTraffic};
pub use precondition::{
    BlockDiagonal, ChebyshevPolynomial, Diagonal, Identity, MAX_BLOCK, MAX_DEGREE, Preconditioner,
};
pub(crate) use precondition::{check_block_size, check_degree};
pub use progress::Measure;
pub use refine::Refinement;
pub use report::{Exhausted, Parameters, RankSolve, Report, SolverError};
pub use run::{Begin, Run, check_finite, check_lengths};
pub use session::{EngineSession, check_types, vectors_of};
pub use slabs::{
    LinearSlabs, NeighbourExchange, Reads, RowSlab, SlabEngine, SlabOperator, SlabProduct, SlabSession,
    cut_rows, row_slabs, row_unit,
};

use std::ops::ControlFlow;

use crate::real::Real;

/// The equations `A x = b`, with an approximate inverse of the matrix.
pub struct Equations<'a, T, E> {
    /// The matrix.
    pub a: &'a dyn Operator<T>,
    /// The approximate inverse.
    pub m: &'a mut dyn Preconditioner<T, E>,
    /// The right-hand side.
    pub b: &'a [T],
}

/// An iterative method for `A x = b`.
pub trait Solver<T: Real, E: Engine<T> = Serial> {
    /// Returns the name under which the method is chosen and reported.
    fn name(&self) -> &'static str;

    /// Improves `x` until `b - A x` is small enough. `x` holds the first guess, and afterwards the last
    /// iterate, even after an error.
    ///
    /// A zero `b` gives a zero `x` in 0 iterations. `observe` sees every iterate's number and residual, and
    /// may end the run.
    ///
    /// # Errors
    ///
    /// [`SolverError::Invalid`] for vectors of the wrong length and parameters that are no tolerances; else
    /// the error that says how the iteration ended, with the history of residuals.
    fn solve_observed(
        &self,
        engine: &E,
        equations: Equations<'_, T, E>,
        x: &mut [T],
        parameters: &Parameters,
        observe: &mut Observe<'_>,
    ) -> Result<Report, SolverError>;

    /// Solves as [`solve_observed`](Solver::solve_observed) does, without an observer.
    fn solve_on(
        &self,
        engine: &E,
        a: &dyn Operator<T>,
        m: &mut dyn Preconditioner<T, E>,
        b: &[T],
        x: &mut [T],
        parameters: &Parameters,
    ) -> Result<Report, SolverError> {
        let equations = Equations { a, m, b };
        self.solve_observed(engine, equations, x, parameters, &mut |_, _| ControlFlow::Continue(()))
    }

    /// Solves as [`solve_on`](Solver::solve_on) does, on the default engine and without a preconditioner.
    fn solve(
        &self,
        a: &dyn Operator<T>,
        b: &[T],
        x: &mut [T],
        parameters: &Parameters,
    ) -> Result<Report, SolverError>
    where
        E: Default,
    {
        self.solve_on(&E::default(), a, &mut Identity, b, x, parameters)
    }
}

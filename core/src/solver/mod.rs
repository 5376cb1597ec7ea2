//! Iterative solvers of `A x = b`: the reference that every backend's solvers are compared with.
//!
//! A [`Solver`] is a method; [`Parameters`] say when it stops, a [`Report`] what it did, a [`SolverError`] why it could not.
//! The matrix is any [`Operator`], stored or not; a [`Preconditioner`] is an approximate inverse. The methods are written over an
//! [`Engine`], whose reductions have one fixed tree ([`reduce`]): the same bits on every run, whatever the number of threads.
//! Solvers allocate before the loop, never in it.
//!
//! | method | matrix | vectors | reductions an iteration |
//! |---|---|---|---|
//! | [`Cg`] | symmetric positive definite | 4 | 2 |
//! | [`SingleReductionCg`] | symmetric positive definite | 5 | 1 |
//! | [`PipelinedCg`] | symmetric positive definite | 9 | 1, beside the products |
//! | [`BiCgStab`] | any invertible | 7 | 3 |
//! | [`Gmres`] | any invertible | m + 3 | 3 |
//! | [`Chebyshev`] | symmetric positive definite, eigenvalues bounded | 3 | 1, to stop |
//! | [`Jacobi`] | diagonally dominant | 2 | 1, to stop |
//!
//! Preconditioners: [`Identity`] (none), [`Diagonal`] (Jacobi's), [`BlockDiagonal`] (block-Jacobi) and [`ChebyshevPolynomial`];
//! none has a reduction.

mod bicgstab;
mod bounds;
mod cg;
mod cg_pipelined;
mod cg_single;
mod chebyshev;
mod engine;
mod gmres;
mod jacobi;
mod operator;
mod precondition;
pub mod reduce;
mod registry;
mod report;
mod run;
#[cfg(test)]
mod tests;

pub use bicgstab::BiCgStab;
pub use bounds::Bounds;
pub use cg::Cg;
pub use cg_pipelined::PipelinedCg;
pub use cg_single::SingleReductionCg;
pub use chebyshev::Chebyshev;
pub use engine::{Engine, Serial};
pub use gmres::Gmres;
pub use jacobi::Jacobi;
pub use operator::Operator;
pub use precondition::{BlockDiagonal, ChebyshevPolynomial, Diagonal, Identity, Preconditioner};
pub use registry::{METHODS, PRECONDITIONERS, method, preconditioner};
pub use report::{Exhausted, Parameters, Report, SolverError};

use crate::real::Real;

/// An iterative method for `A x = b`.
pub trait Solver<T: Real, E: Engine<T> = Serial> {
    /// The name under which it is chosen and reported.
    fn name(&self) -> &'static str;

    /// Improves `x` until `b - A x` is small enough; `x` holds the first guess, and then the last iterate, after an error too.
    ///
    /// A zero `b` gives a zero `x` in 0 iterations.
    ///
    /// # Errors
    ///
    /// [`SolverError::Invalid`] for vectors of the wrong length and parameters that are no tolerances; else the error
    /// that says how the iteration ended, with the history of residuals.
    fn solve_on(
        &self,
        engine: &E,
        a: &dyn Operator<T>,
        m: &mut dyn Preconditioner<T, E>,
        b: &[T],
        x: &mut [T],
        parameters: &Parameters,
    ) -> Result<Report, SolverError>;

    /// [`solve_on`](Solver::solve_on) the default engine, without a preconditioner.
    fn solve(&self, a: &dyn Operator<T>, b: &[T], x: &mut [T], parameters: &Parameters) -> Result<Report, SolverError>
    where
        E: Default,
    {
        self.solve_on(&E::default(), a, &mut Identity, b, x, parameters)
    }
}

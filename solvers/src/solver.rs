//! What a method is.

use std::ops::ControlFlow;

use abide_core::Real;
use abide_core::backend::Observe;
use abide_core::solver::{Operator, Parameters, Report, SolverError};

use crate::engine::{Engine, Serial};
use crate::precondition::{Identity, Preconditioner};

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

//! Solving linear systems `A x = b`: a matrix or a stencil, a method, a backend.
//!
//! ```
//! use abide::prelude::*;
//! use abide::sparse::laplacian_2d;
//!
//! let a = laplacian_2d(30, 31, DType::F64)?;
//! let b = Array::F64(vec![1.0; a.rows()]);
//! let mut system = Solve::new(a).tolerance(1e-10).preconditioner(Preconditioning::Jacobi).open()?;
//! let Solution { x, report } = system.solve(&b)?;
//! println!("{} iterations, |b - A x| = {:?}", report.iterations, report.true_residual);
//! assert_eq!(x.len(), 930);
//! # Ok::<(), SolverError>(())
//! ```

mod begin;
mod correct;
mod files;
pub mod measure;
pub mod named;
mod vectors;

pub use abide_core::solver::*;
pub use files::{read_matrix, read_vector};
pub use vectors::{ones_vector, random_vector, true_residual};

use std::ops::ControlFlow;
use std::time::Duration;

use crate::backend::Opened;
use crate::{Array, Choice, DType, Error, Result};

/// The type in which a system is solved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// All of it in one type.
    Plain(DType),
    /// Iterations in f32, corrections in f64 ([`Refinement`]): vectors are f64, and so is the accuracy.
    Mixed,
}

impl Precision {
    /// The type of `b` and `x`.
    pub fn dtype(self) -> DType {
        match self {
            Precision::Plain(dtype) => dtype,
            Precision::Mixed => DType::F64,
        }
    }

    /// `f32`, `f64` or `mixed`.
    pub fn name(self) -> &'static str {
        match self {
            Precision::Plain(dtype) => dtype.name(),
            Precision::Mixed => "mixed",
        }
    }
}

impl std::str::FromStr for Precision {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "mixed" => Ok(Precision::Mixed),
            _ => match text.parse() {
                Ok(dtype) => Ok(Precision::Plain(dtype)),
                Err(_) => Err(Error::unknown("dtype", text, ["f32", "f64", "mixed"])),
            },
        }
    }
}

/// Describes how a system is to be solved; [`Solve::open`] checks all of it and loads the matrix.
#[derive(Clone)]
pub struct Solve {
    matrix: Matrix,
    method: Option<Method>,
    preconditioner: Preconditioning,
    cache: SolveCache,
    parameters: Parameters,
    precision: Option<Precision>,
    choice: Choice,
    opened: Option<Opened>,
}

impl Solve {
    /// Systems with this matrix: a `Csr`, a `GridOperator`, or either as a [`Matrix`].
    ///
    /// Unless said otherwise: by conjugate gradients where the matrix is symmetric with a positive diagonal,
    /// else by GMRES; without preconditioner; to a residual of 1e-8 of the right-hand side; in the matrix's
    /// type; on the first backend that can.
    pub fn new(matrix: impl Into<Matrix>) -> Self {
        Solve {
            matrix: matrix.into(),
            method: None,
            preconditioner: Preconditioning::None,
            cache: SolveCache::Auto,
            parameters: Parameters { relative: 1e-8, ..Parameters::DEFAULT },
            precision: None,
            choice: Choice::Auto,
            opened: None,
        }
    }

    /// The method.
    pub fn method(self, method: Method) -> Self {
        Solve { method: Some(method), ..self }
    }

    /// The preconditioner.
    pub fn preconditioner(self, preconditioner: Preconditioning) -> Self {
        Solve { preconditioner, ..self }
    }

    /// What should stay on the chip.
    pub fn cache(self, cache: SolveCache) -> Self {
        Solve { cache, ..self }
    }

    /// Stop when the residual's norm is at most this times that of the right-hand side.
    pub fn tolerance(mut self, relative: f64) -> Self {
        self.parameters.relative = relative;
        self
    }

    /// The most iterations.
    pub fn max_iterations(mut self, iterations: usize) -> Self {
        self.parameters.iterations = iterations;
        self
    }

    /// The most time, looked at between iterations.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.parameters.time = Some(limit);
        self
    }

    /// All that decides when to stop, at once.
    pub fn parameters(self, parameters: Parameters) -> Self {
        Solve { parameters, ..self }
    }

    /// The type to compute in.
    pub fn precision(self, precision: Precision) -> Self {
        Solve { precision: Some(precision), ..self }
    }

    /// The backend.
    pub fn backend(self, choice: Choice) -> Self {
        Solve { choice, ..self }
    }

    /// A backend that is open already, instead of a choice.
    pub fn on(self, opened: &Opened) -> Self {
        Solve { opened: Some(opened.clone()), ..self }
    }

    /// Checks the matrix and the options, plans, and loads the matrix.
    ///
    /// # Errors
    ///
    /// What is wrong with the matrix, each with its own [`SolverError`]; [`SolverError::Invalid`] where no
    /// backend can.
    pub fn open(self) -> Result<System, SolverError> {
        self.parameters.check()?;
        let precision = self.precision.unwrap_or(Precision::Plain(self.matrix.dtype()));
        let matrix = begin::cast(&self.matrix, precision.dtype())?;
        let mut notes = Vec::new();
        let method = match self.method {
            Some(method) => method,
            None => {
                let method = begin::suitable(&matrix)?;
                notes.push(format!("method {method} was chosen by the matrix's symmetry"));
                method
            }
        };
        let options = SolveOptions { method, preconditioner: self.preconditioner, cache: self.cache };
        let begun =
            begin::begin(self.choice, self.opened.as_ref(), &matrix, precision, &options, &self.parameters)?;
        notes.extend(crate::backend::cache_refusal());
        notes.extend(begun.notes);
        Ok(System {
            backend: begun.backend,
            session: begun.session,
            notes,
            matrix,
            parameters: self.parameters,
        })
    }
}

/// A matrix loaded on a backend, to be solved with for one right-hand side after the other.
pub struct System {
    backend: &'static str,
    session: Box<dyn LinearSession>,
    notes: Vec<String>,
    matrix: Matrix,
    parameters: Parameters,
}

/// What a solver came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// The solution.
    pub x: Array,
    /// How it was found.
    pub report: Report,
}

impl System {
    /// The name of the backend that solves.
    pub fn backend(&self) -> &'static str {
        self.backend
    }

    /// How it solves.
    pub fn plan(&self) -> &SolvePlan {
        self.session.plan()
    }

    /// What was chosen for the caller, and why other backends were passed over.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The matrix, in the type of the vectors.
    pub fn matrix(&self) -> &Matrix {
        &self.matrix
    }

    /// Solves `A x = b` from 0; `b` has the type of the vectors and one value a row.
    pub fn solve(&mut self, b: &Array) -> Result<Solution, SolverError> {
        let mut x = Array::zeros(self.matrix.dtype(), self.matrix.rows())?;
        let report = self.solve_from(b, &mut x)?;
        Ok(Solution { x, report })
    }

    /// Improves `x`, which also holds the last iterate after an error.
    pub fn solve_from(&mut self, b: &Array, x: &mut Array) -> Result<Report, SolverError> {
        self.solve_observed(b, x, &mut |_, _| ControlFlow::Continue(()))
    }

    /// As [`solve_from`](System::solve_from); `observe` sees the number and the residual of every iterate,
    /// and may end the run.
    pub fn solve_observed(
        &mut self,
        b: &Array,
        x: &mut Array,
        observe: &mut Observe<'_>,
    ) -> Result<Report, SolverError> {
        self.solve_with(b, x, &self.parameters.clone(), observe)
    }

    /// As [`solve_observed`](System::solve_observed), with other parameters this once.
    pub fn solve_with(
        &mut self,
        b: &Array,
        x: &mut Array,
        parameters: &Parameters,
        observe: &mut Observe<'_>,
    ) -> Result<Report, SolverError> {
        self.matrix.check_vector("b", b)?;
        self.matrix.check_vector("x", x)?;
        correct::solve(&mut *self.session, &self.matrix, b, x, parameters, observe)
    }
}

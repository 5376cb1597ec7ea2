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
pub mod scaling;
mod vectors;

pub use abide_core::solver::*;
pub use files::{read_matrix, read_vector};
pub use vectors::{ones_vector, random_vector, true_residual};

use std::ops::ControlFlow;
use std::time::Duration;

use crate::backend::{self, Devices, Opened};
use crate::floating::{kept, standard};
use crate::held::Held;
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
    /// Returns the type of `b` and `x`.
    pub fn dtype(self) -> DType {
        match self {
            Precision::Plain(dtype) => dtype,
            Precision::Mixed => DType::F64,
        }
    }

    /// Returns `f32`, `f64` or `mixed`.
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

/// The description of how a system is solved; [`Solve::open`] checks all of it and loads the matrix.
#[derive(Clone)]
pub struct Solve {
    matrix: Matrix,
    method: Option<Method>,
    preconditioner: Preconditioning,
    cache: SolveCache,
    parameters: Parameters,
    precision: Option<Precision>,
    choice: Choice,
    devices: Option<Devices>,
    opened: Option<Opened>,
}

impl Solve {
    /// Describes the solution of systems with this matrix: a `Csr`, a `GridOperator`, or either as a
    /// [`Matrix`].
    ///
    /// Unless said otherwise, systems are solved by conjugate gradients where the matrix is symmetric with a
    /// positive diagonal, else by GMRES; without preconditioner; to a residual of 1e-8 of the right-hand
    /// side; in the matrix's type; on the first backend that can.
    pub fn new(matrix: impl Into<Matrix>) -> Self {
        Solve {
            matrix: matrix.into(),
            method: None,
            preconditioner: Preconditioning::None,
            cache: SolveCache::Auto,
            parameters: Parameters { relative: 1e-8, ..Parameters::DEFAULT },
            precision: None,
            choice: Choice::Auto,
            devices: None,
            opened: None,
        }
    }

    /// Chooses the method.
    pub fn method(self, method: Method) -> Self {
        Solve { method: Some(method), ..self }
    }

    /// Chooses the preconditioner.
    pub fn preconditioner(self, preconditioner: Preconditioning) -> Self {
        Solve { preconditioner, ..self }
    }

    /// Chooses the data that stays on the chip.
    pub fn cache(self, cache: SolveCache) -> Self {
        Solve { cache, ..self }
    }

    /// Stops when the residual's norm is at most this times that of the right-hand side.
    pub fn tolerance(mut self, relative: f64) -> Self {
        self.parameters.relative = relative;
        self
    }

    /// Sets the most iterations.
    pub fn max_iterations(mut self, iterations: usize) -> Self {
        self.parameters.iterations = iterations;
        self
    }

    /// Sets the longest time, checked between iterations.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.parameters.time = Some(limit);
        self
    }

    /// Sets everything that decides when to stop, at once.
    pub fn parameters(self, parameters: Parameters) -> Self {
        Solve { parameters, ..self }
    }

    /// Chooses the type to compute in.
    pub fn precision(self, precision: Precision) -> Self {
        Solve { precision: Some(precision), ..self }
    }

    /// Chooses the backend.
    pub fn backend(self, choice: Choice) -> Self {
        Solve { choice, ..self }
    }

    /// Takes a backend that is open already, instead of a choice.
    pub fn on(self, opened: &Opened) -> Self {
        Solve { opened: Some(opened.clone()), ..self }
    }

    /// Solves on several devices of the backend, each with a slab of rows, with the bits of one device. Fewer solve where
    /// there are too few rows, and a note of the plan says so. Unless given: what the environment variable `ABIDE_DEVICES`
    /// says, else one. The CPU's devices are groups of its threads, CUDA's the GPUs of this host; wgpu solves on one.
    ///
    /// ```
    /// use abide::prelude::*;
    /// use abide::sparse::laplacian_2d;
    ///
    /// let a = laplacian_2d(30, 31, DType::F64)?;
    /// let b = Array::F64(vec![1.0; a.rows()]);
    /// let mut on = |devices| Solve::new(a.clone()).backend(Choice::CPU).devices(devices).open()?.solve(&b);
    /// let (one, three) = (on(1)?, on(3)?);
    /// assert_eq!(three.report.ranks.len(), 3);
    /// assert!(one.x.same_bits(&three.x));
    /// # Ok::<(), SolverError>(())
    /// ```
    pub fn devices(self, devices: impl Into<Devices>) -> Self {
        Solve { devices: Some(devices.into()), ..self }
    }

    /// Checks the matrix and the options, plans, and loads the matrix.
    ///
    /// # Errors
    ///
    /// Faults of the matrix, each with its own [`SolverError`]; [`SolverError::Invalid`] where no backend can
    /// solve the system.
    pub fn open(self) -> Result<System, SolverError> {
        standard(|| self.loaded())
    }

    fn loaded(self) -> Result<System, SolverError> {
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
        let devices = match (&self.opened, self.devices) {
            (Some(opened), Some(several)) if !several.is_one() => {
                return Err(Error::unsupported(
                    format!("backend {}", opened.backend.name()),
                    format!("{several} were asked for of a backend that is open already"),
                    "open it by backend::open_on, or choose it by Solve::backend",
                )
                .into());
            }
            (Some(_), _) => Devices::Count(1),
            (None, asked) => backend::devices(asked)?,
        };
        let opened = self.opened.as_ref();
        let begun =
            begin::begin(self.choice, &devices, opened, &matrix, precision, &options, &self.parameters)?;
        notes.extend(backend::cache_refusal());
        notes.extend(begun.notes);
        Ok(System {
            backend: begun.backend,
            session: Held::new(begun.session, begun.kind),
            notes,
            matrix,
            parameters: self.parameters,
        })
    }
}

/// A matrix loaded on a backend, to be solved with for one right-hand side after the other.
pub struct System {
    backend: &'static str,
    session: Held<dyn LinearSession>,
    notes: Vec<String>,
    matrix: Matrix,
    parameters: Parameters,
}

/// The result of a solve.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// The solution.
    pub x: Array,
    /// The report of the solve.
    pub report: Report,
}

impl System {
    /// Returns the name of the backend that solves.
    pub fn backend(&self) -> &'static str {
        self.backend
    }

    /// Returns the plan of the solves.
    pub fn plan(&self) -> &SolvePlan {
        self.session.anywhere().plan()
    }

    /// Returns what was chosen for the caller, and why other backends were passed over.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the matrix, in the type of the vectors.
    pub fn matrix(&self) -> &Matrix {
        &self.matrix
    }

    /// Solves `A x = b` from 0; `b` has the type of the vectors and one value per row.
    pub fn solve(&mut self, b: &Array) -> Result<Solution, SolverError> {
        let mut x = Array::zeros(self.matrix.dtype(), self.matrix.rows())?;
        let report = self.solve_from(b, &mut x)?;
        Ok(Solution { x, report })
    }

    /// Improves `x`, which also holds the last iterate after an error.
    pub fn solve_from(&mut self, b: &Array, x: &mut Array) -> Result<Report, SolverError> {
        self.solve_observed(b, x, &mut |_, _| ControlFlow::Continue(()))
    }

    /// Improves `x` as [`solve_from`](System::solve_from) does; `observe` sees the number and the residual of
    /// every iterate, and may end the run.
    pub fn solve_observed(
        &mut self,
        b: &Array,
        x: &mut Array,
        observe: &mut Observe<'_>,
    ) -> Result<Report, SolverError> {
        self.solve_with(b, x, &self.parameters.clone(), observe)
    }

    /// Improves `x` as [`solve_observed`](System::solve_observed) does, with other parameters this once.
    pub fn solve_with(
        &mut self,
        b: &Array,
        x: &mut Array,
        parameters: &Parameters,
        observe: &mut Observe<'_>,
    ) -> Result<Report, SolverError> {
        self.matrix.check_vector("b", b)?;
        self.matrix.check_vector("x", x)?;
        let session = self.session.here()?;
        let observe: &mut Observe<'_> = &mut |iteration, residual| kept(|| observe(iteration, residual));
        let mut outcome = standard(|| correct::solve(session, &self.matrix, b, x, parameters, observe));
        let ranks = session.take_ranks();
        match &mut outcome {
            Ok(report) => report.ranks = ranks,
            Err(error) => {
                if let Some(report) = error.report_mut() {
                    report.ranks = ranks;
                }
            }
        }
        outcome
    }
}

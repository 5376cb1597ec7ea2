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

mod attempts;
mod begin;
mod conditioned;
mod correct;
mod files;
pub mod named;
mod nullspace;
mod operator;
mod range;
mod system;
mod vectors;

pub use crate::solver::*;
pub use files::{read_matrix, read_vector};
pub use operator::{Inverse, solve_operator, threaded_operator};
pub use system::{Solution, System};
pub use vectors::{ones_vector, random_vector, true_residual};

use std::time::Duration;

use abide_core::floating::standard;

use crate::backend::{self, Devices, Opened};
use crate::held::Held;
use crate::{Choice, DType, Error, Result};

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
    assume_symmetric: bool,
    nullspace: Nullspace,
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
    /// diagonal of one sign, else by GMRES ([`Gmres::suited`]); by GMRES too where conjugate gradients find the
    /// matrix indefinite; without preconditioner; to a residual of 1e-8 of the right-hand side; in the matrix's
    /// type; on the first backend that can.
    pub fn new(matrix: impl Into<Matrix>) -> Self {
        Solve {
            matrix: matrix.into(),
            method: None,
            preconditioner: Preconditioning::None,
            cache: SolveCache::Auto,
            assume_symmetric: false,
            nullspace: Nullspace::None,
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

    /// Takes the matrix as symmetric without a look at it. Conjugate gradients on a matrix that is not may go
    /// astray.
    pub fn assume_symmetric(self, assume: bool) -> Self {
        Solve { assume_symmetric: assume, ..self }
    }

    /// Says which vectors the matrix takes to 0. Their part is taken from the right-hand side, the first guess and
    /// the solution, so that systems are solved that have no solution without it, or many; norms are those of what
    /// is left.
    ///
    /// ```
    /// use abide::prelude::*;
    /// use abide::solve::{GridOperator, Nullspace, named};
    ///
    /// let domain = Shape::new(&[20, 30])?;
    /// let walls = Boundaries::all(Boundary::Mirror);
    /// let neumann = GridOperator::new(named::operator("laplacian2d")?, domain, walls, DType::F64)?;
    /// let b = Array::from_fn(DType::F64, 600, |i| i as f64);
    /// let x = Solve::new(neumann).nullspace(Nullspace::Constant).open()?.solve(&b)?.x;
    /// assert!(x.to_f64().iter().sum::<f64>().abs() < 1e-6);
    /// # Ok::<(), SolverError>(())
    /// ```
    pub fn nullspace(self, nullspace: Nullspace) -> Self {
        Solve { nullspace, ..self }
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

    /// Returns the type to compute in: the chosen one, else the matrix's.
    pub fn chosen_precision(&self) -> Precision {
        self.precision.unwrap_or(Precision::Plain(self.matrix.dtype()))
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
        let precision = self.chosen_precision();
        let matrix = begin::cast(&self.matrix, precision.dtype())?;
        let mut notes = Vec::new();
        if self.nullspace == Nullspace::Constant {
            matrix.check_extents()?;
            nullspace::check(&matrix)?;
        }
        // Of a negative definite matrix the opposite is positive definite.
        let definite = self.method.is_none_or(|method| method.needs_definite());
        let mut negated = None;
        if definite && matrix.check_extents().is_ok() && matrix.has_negative_diagonal()? {
            let symmetric = self.assume_symmetric || matrix.is_symmetric()?;
            negated = if symmetric { begin::negated(&matrix)? } else { None };
        }
        if negated.is_some() {
            notes.push("the diagonal is negative: -A x = -b is solved in place of A x = b".to_owned());
        }
        let solved = negated.as_ref().unwrap_or(&matrix);
        let method = match self.method {
            Some(method) => method,
            None => {
                let (method, why) = begin::suitable(solved, self.assume_symmetric)?;
                notes.push(why);
                method
            }
        };
        let options = SolveOptions {
            method,
            preconditioner: self.preconditioner,
            cache: self.cache,
            assume_symmetric: self.assume_symmetric,
        };
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
        let place = begin::Place { choice: self.choice, devices, opened: self.opened, precision };
        let begun = begin::begin(&place, solved, &options, &self.parameters)?;
        notes.extend(backend::cache_refusal());
        notes.extend(begun.notes);
        Ok(System {
            place,
            options,
            was_chosen: self.method.is_none(),
            nullspace: self.nullspace,
            backend: begun.backend,
            session: Held::new(begun.session, begun.kind),
            notes,
            matrix,
            negated,
            parameters: self.parameters,
        })
    }
}

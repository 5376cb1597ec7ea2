//! A system that is open: solved for one right-hand side after the other.

use std::ops::ControlFlow;

use abide_core::backend::{LinearSession, Observe};
use abide_core::floating::{kept, standard};
use abide_core::solver::{
    Gmres, Matrix, Method, Nullspace, Parameters, Report, SolveOptions, SolvePlan, SolverError,
};
use abide_core::with_array;
use abide_solvers::{check_finite, check_lengths};

use super::begin::{self, Place};
use super::vectors::true_residual;
use super::{conditioned, nullspace};
use crate::held::Held;
use crate::{Array, Result};

/// A matrix loaded on a backend, to be solved with for one right-hand side after the other.
pub struct System {
    /// What a session of another method is opened by.
    pub(super) place: Place,
    pub(super) options: SolveOptions,
    /// Whether the method was chosen for the caller.
    pub(super) was_chosen: bool,
    pub(super) nullspace: Nullspace,
    pub(super) backend: &'static str,
    pub(super) session: Held<dyn LinearSession>,
    pub(super) notes: Vec<String>,
    pub(super) matrix: Matrix,
    /// The matrix with every sign changed, where the session solves with that.
    pub(super) negated: Option<Matrix>,
    pub(super) parameters: Parameters,
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

    /// Returns what was chosen for the caller, in solves too, and why other backends were passed over.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the matrix, in the type of the vectors.
    pub fn matrix(&self) -> &Matrix {
        &self.matrix
    }

    /// Solves `A x = b` from 0; `b` has the type of the vectors and one value per row.
    ///
    /// ```
    /// use abide::prelude::*;
    /// use abide::sparse::laplacian_2d;
    ///
    /// let mut system = Solve::new(laplacian_2d(8, 9, DType::F64)?).backend(Choice::CPU).open()?;
    /// let Solution { x, report } = system.solve(&Array::F64(vec![1.0; 72]))?;
    /// assert!(x.len() == 72 && report.iterations > 0);
    /// assert!(matches!(system.solve(&Array::F64(vec![1.0; 71])), Err(SolverError::Invalid(_))));
    /// # Ok::<(), SolverError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`System::solve_with`]; [`SolverError::Invalid`] also where there is no memory for `x`.
    pub fn solve(&mut self, b: &Array) -> Result<Solution, SolverError> {
        let mut x = Array::zeros(self.matrix.dtype(), self.matrix.rows())?;
        let report = self.solve_from(b, &mut x)?;
        Ok(Solution { x, report })
    }

    /// Improves `x`, which also holds an iterate after an error: the last, or the best that is known where a
    /// method broke down or its matrix is singular.
    ///
    /// A right-hand side near the ends of its type's range is multiplied by a power of two for the solve.
    /// BiCGStab starts anew where it breaks down ([`Report::restarts`]).
    ///
    /// # Errors
    ///
    /// Those of [`System::solve_with`].
    pub fn solve_from(&mut self, b: &Array, x: &mut Array) -> Result<Report, SolverError> {
        self.solve_observed(b, x, &mut |_, _| ControlFlow::Continue(()))
    }

    /// Improves `x` as [`solve_from`](System::solve_from) does; `observe` sees the number and the residual of
    /// every iterate, and may end the run.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    ///
    /// use abide::prelude::*;
    /// use abide::sparse::laplacian_2d;
    ///
    /// let mut system = Solve::new(laplacian_2d(8, 9, DType::F64)?).backend(Choice::CPU).open()?;
    /// let (b, mut x) = (Array::F64(vec![1.0; 72]), Array::F64(vec![0.0; 72]));
    /// let outcome = system.solve_observed(&b, &mut x, &mut |iteration, _residual| match iteration {
    ///     3 => ControlFlow::Break(()),
    ///     _ => ControlFlow::Continue(()),
    /// });
    /// assert!(matches!(outcome, Err(SolverError::Stopped { .. })));
    /// # Ok::<(), SolverError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`System::solve_with`].
    pub fn solve_observed(
        &mut self,
        b: &Array,
        x: &mut Array,
        observe: &mut Observe<'_>,
    ) -> Result<Report, SolverError> {
        self.solve_with(b, x, &self.parameters.clone(), observe)
    }

    /// Improves `x` as [`solve_observed`](System::solve_observed) does, with other parameters this once.
    ///
    /// # Errors
    ///
    /// [`SolverError::Invalid`] for vectors of another type or length, for parameters without a meaning, and with the
    /// [`Error`](crate::Error) of a device that fails; [`SolverError::NotFinite`] with the row of a value of `b` or
    /// `x` that is not finite, or where a NaN or an infinity appears; [`SolverError::NotConverged`] where a limit came
    /// first, and [`SolverError::Stopped`] where `observe` did; [`SolverError::Stagnation`],
    /// [`SolverError::Breakdown`], [`SolverError::Indefinite`], [`SolverError::SingularToRounding`],
    /// [`SolverError::Inconsistent`] and [`SolverError::OutOfRange`] where the method cannot go on. All but the first
    /// carry a report.
    pub fn solve_with(
        &mut self,
        b: &Array,
        x: &mut Array,
        parameters: &Parameters,
        observe: &mut Observe<'_>,
    ) -> Result<Report, SolverError> {
        self.matrix.check_vector("b", b)?;
        self.matrix.check_vector("x", x)?;
        check_lengths(self.matrix.rows(), b.len(), x.len())?;
        let profile = self.plan().method.profile();
        with_array!(b, b => check_finite(profile, "the right-hand side b", b))?;
        with_array!(&*x, x => check_finite(profile, "the first guess x", x))?;
        self.session.here()?;
        let observe: &mut Observe<'_> = &mut |iteration, residual| kept(|| observe(iteration, residual));
        let mut outcome = standard(|| conditioned::solve(self, b, x, parameters, observe));
        let ranks = self.session.here()?.take_ranks();
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

    /// Returns the norm of `b - A x` in f64, whatever computed `x` and in which type. Where the matrix's null space
    /// is known, it is that of what is left of `b`.
    ///
    /// # Errors
    ///
    /// [`SolverError::Invalid`](abide_core::solver::SolverError::Invalid)'s, for vectors of another length.
    pub fn true_residual(&self, b: &Array, x: &Array) -> Result<f64> {
        if self.nullspace == Nullspace::None {
            return true_residual(&self.matrix, b, x);
        }
        let mut projected = b.try_clone()?;
        nullspace::project(&mut projected);
        true_residual(&self.matrix, &projected, x)
    }

    /// Returns the matrix that the session solves with.
    pub(super) fn solved(&self) -> &Matrix {
        self.negated.as_ref().unwrap_or(&self.matrix)
    }

    /// Opens a session of GMRES in place of that of the method that was chosen. Returns whether there is one; a
    /// note says why not.
    pub(super) fn take_gmres(&mut self) -> bool {
        let method = Method::Gmres(Gmres::suited(self.matrix.rows()));
        let options = SolveOptions { method, ..self.options };
        match begin::begin(&self.place, self.solved(), &options, &self.parameters) {
            Ok(begun) => {
                self.session = Held::new(begun.session, begun.kind);
                (self.backend, self.options) = (begun.backend, options);
                self.was_chosen = false;
                true
            }
            Err(error) => {
                self.notes.push(format!("gmres could not take the method's place: {error}"));
                false
            }
        }
    }
}

//! Systems whose matrix, or whose approximate inverse, is code of the caller's.

use abide_core::backend::Observe;
use abide_core::floating::{kept, standard};
use abide_core::solver::{Method, Operator, Parameters, Preconditioning, Report, SolverError};
use abide_core::{Real, Result};
use abide_cpu::Threads;
use abide_solvers::{
    Engine, Equations, Preconditioner, build_preconditioner, check_finite, check_lengths, solver,
};

pub use abide_cpu::threaded_operator;

/// An approximate inverse of the matrix.
#[derive(Clone, Copy)]
pub enum Inverse<'a, T> {
    /// One of Abide's, made of what the operator knows of itself.
    Named(Preconditioning),
    /// An operator that takes a residual to an approximate error. It is taken as linear, and for conjugate gradients as
    /// symmetric positive definite.
    Operator(&'a dyn Operator<T>),
}

/// Solves `A x = b` on the CPU for a matrix that is known by its products, with an approximate inverse. `x` holds the first guess,
/// and afterwards the last iterate, even after an error. Dot products are those of stored matrices, to the bit. Nothing is
/// known of the matrix, so nothing is checked: what a method needs of it is the caller's to see to.
///
/// ```
/// use std::ops::ControlFlow;
///
/// use abide::prelude::*;
/// use abide::solve::{Inverse, Operator, Parameters, solve_operator};
///
/// /// A string of springs between two walls.
/// struct Springs(usize);
///
/// impl Operator<f64> for Springs {
///     fn rows(&self) -> usize {
///         self.0
///     }
///
///     fn apply(&self, x: &[f64], y: &mut [f64]) {
///         let at = |k: Option<usize>| k.and_then(|k| x.get(k)).copied().unwrap_or(0.0);
///         for (k, y) in y.iter_mut().enumerate() {
///             *y = 2.0 * x[k] - at(k.checked_sub(1)) - at(Some(k + 1));
///         }
///     }
/// }
///
/// let (b, mut x) = (vec![1.0; 99], vec![0.0; 99]);
/// let none = Inverse::Named(Preconditioning::None);
/// let go_on = &mut |_, _| ControlFlow::Continue(());
/// solve_operator(&Method::Cg, &Springs(99), none, &b, &mut x, &Parameters::DEFAULT, go_on)?;
/// assert!((x[49] - 1250.0).abs() < 1e-3);
/// # Ok::<(), SolverError>(())
/// ```
///
/// # Errors
///
/// [`SolverError::Invalid`] for vectors of another length and for parameters without a meaning; those of the method and of
/// the preconditioner.
pub fn solve_operator<T: Real>(
    method: &Method,
    a: &dyn Operator<T>,
    inverse: Inverse<'_, T>,
    b: &[T],
    x: &mut [T],
    parameters: &Parameters,
    observe: &mut Observe<'_>,
) -> Result<Report, SolverError> {
    check_lengths(a.rows(), b.len(), x.len())?;
    check_finite(method.profile(), "the right-hand side b", b)?;
    check_finite(method.profile(), "the first guess x", x)?;
    let engine = Threads::<T>::new(None, a.rows())?;
    let observe: &mut Observe<'_> = &mut |iteration, residual| kept(|| observe(iteration, residual));
    standard(|| {
        engine.run(|| {
            let mut m: Box<dyn Preconditioner<T, Threads<T>> + '_> = match &inverse {
                Inverse::Named(named) => build_preconditioner(named, &engine, a)?,
                Inverse::Operator(own) => Box::new(Applied(*own)),
            };
            let equations = Equations { a, m: &mut *m, b };
            solver::<T, Threads<T>>(method).solve_observed(&engine, equations, x, parameters, observe)
        })
    })
}

/// A caller's approximate inverse as a preconditioner.
struct Applied<'a, T>(&'a dyn Operator<T>);

impl<T: Real> Preconditioner<T, Threads<T>> for Applied<'_, T> {
    fn name(&self) -> &'static str {
        "the caller's"
    }

    fn rows(&self) -> Option<usize> {
        Some(self.0.rows())
    }

    fn apply(&mut self, _engine: &Threads<T>, r: &[T], z: &mut [T]) {
        self.0.apply(r, z);
    }
}

//! Preconditioners: approximate inverses `M^-1` that are cheap to apply.

mod block;
mod ilu;
mod polynomial;

use std::sync::Arc;

use abide_core::solver::Operator;
use abide_core::sparse::Csr;
use abide_core::{Error, Real, Result};

use crate::engine::{Engine, Serial};

pub use block::BlockDiagonal;
pub use ilu::Ilu;
pub use polynomial::ChebyshevPolynomial;

/// A fixed linear operator `M^-1`, near the inverse of `A`.
///
/// The CG methods and Chebyshev iteration need it symmetric positive definite.
pub trait Preconditioner<T: Real, E: Engine<T> = Serial>: Send {
    /// Returns the name under which the preconditioner is chosen and reported.
    fn name(&self) -> &'static str;

    /// Returns the rows of the operator for which the preconditioner was made; `None` if any will do.
    fn rows(&self) -> Option<usize> {
        None
    }

    /// Computes `z = M^-1 r`, without allocating.
    fn apply(&mut self, engine: &E, r: &[T], z: &mut [T]);

    /// Returns whether `M^-1` is the identity.
    fn is_identity(&self) -> bool {
        false
    }
}

/// Returns all entries of an operator, for the preconditioner of this name.
pub(crate) fn entries_of<T: Real>(a: &dyn Operator<T>, name: &str) -> Result<Arc<Csr>> {
    let what = format!("the {name} preconditioner");
    if a.rows() != a.all_rows() {
        let reason = "several devices have rows of the matrix each, and it takes all of them at once";
        return Err(Error::unsupported(
            what,
            reason,
            "solve on one device, or take jacobi, block-jacobi or chebyshev",
        ));
    }
    let unknown = || Error::invalid(what, "the operator does not know its entries", "use no preconditioner");
    a.entries()?.ok_or_else(unknown)
}

/// No preconditioner: `z = r`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Identity;

impl<T: Real, E: Engine<T>> Preconditioner<T, E> for Identity {
    fn name(&self) -> &'static str {
        "none"
    }

    fn apply(&mut self, engine: &E, r: &[T], z: &mut [T]) {
        engine.update([z], [r], |[_], [r]| [r]);
    }

    fn is_identity(&self) -> bool {
        true
    }
}

/// Jacobi's preconditioner: `M` is the diagonal of `A` (Saad, Iterative Methods for Sparse Linear Systems,
/// 2nd ed., section 10.2).
///
/// Memory: 1 vector. Reductions: none.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagonal<T> {
    inverse: Vec<T>,
}

impl<T: Real> Diagonal<T> {
    /// Makes the preconditioner of the operator's own diagonal. Fails if the diagonal is unknown, or has a
    /// zero or a value that is not finite.
    pub fn new(a: &dyn Operator<T>) -> Result<Self> {
        let Some(mut diagonal) = a.diagonal() else {
            return Err(Error::invalid(
                "the operator",
                "it does not know its diagonal",
                "use no preconditioner",
            ));
        };
        if diagonal.len() != a.rows() {
            let reason = format!("its diagonal has {} values for {} rows", diagonal.len(), a.rows());
            return Err(Error::invalid("the operator", reason, "give one value a row"));
        }
        for (row, value) in diagonal.iter_mut().enumerate() {
            let inverse = T::ONE / *value;
            if *value == T::ZERO || !value.is_finite() || !inverse.is_finite() {
                let what = format!("the diagonal entry of row {}", a.first_row() + row);
                let reason = format!("{:e} has no finite inverse", value.to_f64());
                return Err(Error::invalid(what, reason, "reorder the rows or use another preconditioner"));
            }
            *value = inverse;
        }
        Ok(Diagonal { inverse: diagonal })
    }

    /// Returns the inverse of each diagonal entry.
    pub fn inverse(&self) -> &[T] {
        &self.inverse
    }

    pub(crate) fn into_inverse(self) -> Vec<T> {
        self.inverse
    }
}

impl<T: Real, E: Engine<T>> Preconditioner<T, E> for Diagonal<T> {
    fn name(&self) -> &'static str {
        "jacobi"
    }

    fn rows(&self) -> Option<usize> {
        Some(self.inverse.len())
    }

    fn apply(&mut self, engine: &E, r: &[T], z: &mut [T]) {
        engine.update([z], [r, &self.inverse], |[_], [r, d]| [d * r]);
    }
}

impl<T: Real, E: Engine<T>, P: Preconditioner<T, E> + ?Sized> Preconditioner<T, E> for Box<P> {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn rows(&self) -> Option<usize> {
        (**self).rows()
    }

    fn apply(&mut self, engine: &E, r: &[T], z: &mut [T]) {
        (**self).apply(engine, r, z);
    }

    fn is_identity(&self) -> bool {
        (**self).is_identity()
    }
}

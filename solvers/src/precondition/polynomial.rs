//! The Chebyshev polynomial preconditioner.

use abide_core::solver::{Bounds, Operator, check_degree};
use abide_core::{Error, Real, Result};

use super::{Diagonal, Preconditioner};
use crate::engine::{Engine, zeros};
use crate::recurrence::Recurrence;

/// The preconditioner `M^-1 = s(D^-1 A) D^-1`, where `1 - t s(t)` is the Chebyshev polynomial of degree
/// `degree + 1` that is least on the bounds and 1 at 0.
///
/// Source: Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., section 12.3.2. The preconditioner is
/// `degree + 1` steps of Chebyshev iteration from 0. It is positive definite if `D^-1 A` has its eigenvalues
/// above 0 and not above the upper bound. `D` is the diagonal of `A` or the identity. Memory: 3 vectors, and
/// the diagonal. Per application: `degree` products with `A`, no reduction. It suits machines whose
/// synchronisation is expensive.
pub struct ChebyshevPolynomial<'a, T> {
    a: Box<dyn Operator<T> + 'a>,
    scale: Option<Diagonal<T>>,
    bounds: Bounds,
    degree: usize,
    residual: Vec<T>,
    direction: Vec<T>,
    product: Vec<T>,
}

impl<'a, T: Real> ChebyshevPolynomial<'a, T> {
    /// Makes the polynomial of degree `degree` in `A`, or in `D^-1 A` if `scale` holds the diagonal; `bounds`
    /// are those of the eigenvalues of that matrix.
    ///
    /// If the lower bound is above the least eigenvalue (say a thirtieth of the upper bound), the lowest
    /// eigenvalues are left to the method outside.
    ///
    /// # Errors
    ///
    /// A degree above [`MAX_DEGREE`](abide_core::solver::MAX_DEGREE), and a scale of another length than the operator has rows.
    pub fn new(
        a: impl Operator<T> + 'a,
        scale: Option<Diagonal<T>>,
        bounds: Bounds,
        degree: usize,
    ) -> Result<Self> {
        check_degree(degree)?;
        let n = a.rows();
        if let Some(rows) = scale.as_ref().map(|scale| scale.inverse().len()).filter(|&rows| rows != n) {
            let reason = format!("{rows} values for a matrix of {n} rows");
            return Err(Error::invalid("the scale", reason, "take the diagonal of the same operator"));
        }
        Ok(ChebyshevPolynomial {
            a: Box::new(a),
            scale,
            bounds,
            degree,
            residual: zeros(n)?,
            direction: zeros(n)?,
            product: zeros(n)?,
        })
    }
}

impl<T: Real, E: Engine<T>> Preconditioner<T, E> for ChebyshevPolynomial<'_, T> {
    fn name(&self) -> &'static str {
        "chebyshev"
    }

    fn rows(&self) -> Option<usize> {
        Some(self.a.rows())
    }

    fn apply(&mut self, engine: &E, r: &[T], z: &mut [T]) {
        let mut recurrence = Recurrence::new(self.bounds);
        let first: T = recurrence.first();
        let (residual, direction, product) = (&mut self.residual, &mut self.direction, &mut self.product);
        let inverse = self.scale.as_ref().map(Diagonal::inverse);
        match inverse {
            Some(inverse) => {
                engine.update([residual, direction, z], [r, inverse], |_, [r, s]| {
                    [r, first * (s * r), first * (s * r)]
                });
            }
            None => engine.update([residual, direction, z], [r], |_, [r]| [r, first * r, first * r]),
        }
        for _ in 0..self.degree {
            self.a.apply(direction, product);
            let (old, new): (T, T) = recurrence.step();
            match inverse {
                Some(inverse) => {
                    engine.update([residual, direction, z], [product, inverse], |[r, d, z], [ad, s]| {
                        let r = r - ad;
                        let d = old * d + new * (s * r);
                        [r, d, z + d]
                    })
                }
                None => engine.update([residual, direction, z], [product], |[r, d, z], [ad]| {
                    let r = r - ad;
                    let d = old * d + new * r;
                    [r, d, z + d]
                }),
            }
        }
    }
}

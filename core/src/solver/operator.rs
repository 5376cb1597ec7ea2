//! The operations that a solver needs of a matrix.

use crate::real::Real;

/// A square linear operator: a sparse matrix, or a stencil that is never stored.
pub trait Operator<T: Real>: Send + Sync {
    /// Returns the number of rows, which equals that of columns.
    fn rows(&self) -> usize;

    /// Computes `y = A x`; both vectors have [`rows`](Operator::rows) values.
    fn apply(&self, x: &[T], y: &mut [T]);

    /// Returns the diagonal, for Jacobi's method and preconditioners; `None` if it is not known.
    fn diagonal(&self) -> Option<Vec<T>> {
        None
    }

    /// Returns the block of rows and columns `start..start + size`, row by row; `None` if entries are not
    /// known.
    ///
    /// It is called once per block, before any loop.
    fn diagonal_block(&self, start: usize, size: usize) -> Option<Vec<T>> {
        let _ = (start, size);
        None
    }
}

/// A pointer to an operator is an operator too.
macro_rules! forwarded {
    ($($pointer:ty),*) => {$(
        impl<T: Real, O: Operator<T> + ?Sized> Operator<T> for $pointer {
            fn rows(&self) -> usize {
                (**self).rows()
            }

            fn apply(&self, x: &[T], y: &mut [T]) {
                (**self).apply(x, y);
            }

            fn diagonal(&self) -> Option<Vec<T>> {
                (**self).diagonal()
            }

            fn diagonal_block(&self, start: usize, size: usize) -> Option<Vec<T>> {
                (**self).diagonal_block(start, size)
            }
        }
    )*};
}

forwarded!(&O, std::sync::Arc<O>);

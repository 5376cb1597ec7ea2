//! What a solver asks of a matrix.

use crate::real::Real;

/// A square linear operator: a sparse matrix, or a stencil that is never stored.
pub trait Operator<T: Real>: Send + Sync {
    /// Rows, which are as many as columns.
    fn rows(&self) -> usize;

    /// `y = A x`; both have [`rows`](Operator::rows) values.
    fn apply(&self, x: &[T], y: &mut [T]);

    /// The diagonal, for Jacobi's method and preconditioners; nothing where it is not known.
    fn diagonal(&self) -> Option<Vec<T>> {
        None
    }

    /// The block of rows and columns `start..start + size`, row by row; nothing where entries are not known.
    ///
    /// Asked for once a block, before any loop.
    fn diagonal_block(&self, start: usize, size: usize) -> Option<Vec<T>> {
        let _ = (start, size);
        None
    }
}

/// A shared operator is one.
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

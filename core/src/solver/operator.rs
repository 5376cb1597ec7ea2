//! The operations that a solver needs of a matrix.

use std::sync::Arc;

use crate::error::Result;
use crate::real::Real;
use crate::sparse::Csr;

/// A square linear operator: a sparse matrix, or a stencil that is never stored.
pub trait Operator<T: Real>: Send + Sync {
    /// Returns the number of rows, which equals that of columns unless other devices have rows too.
    fn rows(&self) -> usize;

    /// Returns the number of the first row within the whole system: 0, unless other devices have the rows before it.
    fn first_row(&self) -> usize {
        0
    }

    /// Returns the number of rows of the whole system, of which other devices may have some.
    fn all_rows(&self) -> usize {
        self.rows()
    }

    /// Computes `y = A x`; both vectors have [`rows`](Operator::rows) values.
    fn apply(&self, x: &[T], y: &mut [T]);

    /// Returns the diagonal, for Jacobi's method and preconditioners; `None` if it is not known.
    fn diagonal(&self) -> Option<Vec<T>> {
        None
    }

    /// Returns all entries, in the operator's type, for preconditioners that factor or coarsen the matrix; `None` if they are not
    /// known. It is called once, before any loop.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`](crate::Error::Limit) where the machine has no memory for them.
    fn entries(&self) -> Result<Option<Arc<Csr>>> {
        Ok(None)
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

            fn first_row(&self) -> usize {
                (**self).first_row()
            }

            fn all_rows(&self) -> usize {
                (**self).all_rows()
            }

            fn apply(&self, x: &[T], y: &mut [T]) {
                (**self).apply(x, y);
            }

            fn diagonal(&self) -> Option<Vec<T>> {
                (**self).diagonal()
            }

            fn entries(&self) -> Result<Option<Arc<Csr>>> {
                (**self).entries()
            }

            fn diagonal_block(&self, start: usize, size: usize) -> Option<Vec<T>> {
                (**self).diagonal_block(start, size)
            }
        }
    )*};
}

forwarded!(&O, Arc<O>);

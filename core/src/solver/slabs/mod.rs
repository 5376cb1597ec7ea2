//! Systems whose rows are divided among ranks: a rank's *slab* is a range of rows, and the same part of each vector.

mod reads;

use std::ops::Range;
use std::sync::Arc;

use super::matrix::Matrix;
use crate::real::Real;

pub use reads::Reads;

/// A rank's slab of a system.
#[derive(Debug, Clone, PartialEq)]
pub struct RowSlab {
    /// The rank.
    pub rank: usize,
    /// The rows of every rank, in order; they cover all rows.
    pub own: Vec<Range<usize>>,
    /// The slab's rows. Stored ones have a column for each entry that they read, in the order of `reads`; a stencil is that
    /// of the whole domain.
    pub matrix: Matrix,
    /// The entries that the rows read, and the own ones.
    pub reads: Reads,
    /// The own entries that other ranks read, for each of them, by their numbers in the whole vector.
    pub given: Vec<(usize, Vec<Range<usize>>)>,
    /// The entries of other ranks that the rows read, for each of them.
    pub taken: Vec<(usize, Vec<Range<usize>>)>,
}

impl RowSlab {
    /// Returns the slab's rows, by their numbers in the whole system.
    pub fn rows(&self) -> Range<usize> {
        self.own[self.rank].clone()
    }

    /// Returns the number of rows of the whole system.
    pub fn all(&self) -> usize {
        self.own.last().map_or(0, |own| own.end)
    }

    /// Returns the product with the slab's rows, one after the other: the bits of [`Matrix::operator`].
    pub fn product<T: Real>(self: &Arc<Self>) -> Box<SlabProduct<T>> {
        let slab = Arc::clone(self);
        Box::new(move |read: &[T], product: &mut [T]| match &slab.matrix {
            Matrix::Stored(matrix) => matrix.multiply_rows(0, read, product),
            Matrix::Stencil(operator) => {
                for (row, product) in slab.rows().zip(product) {
                    *product = operator.product_of(row, |at| read[slab.reads.place(at)]);
                }
            }
        })
    }
}

/// The product of a slab's rows with the entries that they read, one value for each row.
pub type SlabProduct<T> = dyn Fn(&[T], &mut [T]) + Send + Sync;

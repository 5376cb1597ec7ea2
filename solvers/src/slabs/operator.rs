//! The operator of a slab.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use abide_core::communicator::Endpoint;
use abide_core::solver::{Matrix, Operator, RowSlab, SlabProduct};
use abide_core::{Array, Real, Result};

use crate::engine::zeros;

/// A rank's rows of an operator: a product first fetches the entries that the rows read from the ranks that own them.
pub struct SlabOperator<T> {
    slab: Arc<RowSlab>,
    product: Box<SlabProduct<T>>,
    endpoint: Endpoint,
    /// The number of values that each rank sends.
    counts: Vec<(usize, usize)>,
    /// What the rows read.
    read: Mutex<Vec<T>>,
}

impl<T: Real> SlabOperator<T> {
    pub(super) fn new(slab: &Arc<RowSlab>, product: Box<SlabProduct<T>>, endpoint: Endpoint) -> Result<Self> {
        let counts = slab.taken.iter().map(|(rank, ranges)| (*rank, entries(ranges))).collect();
        let read = Mutex::new(zeros(slab.reads.len())?);
        Ok(SlabOperator { slab: Arc::clone(slab), product, endpoint, counts, read })
    }

    /// Fills what the rows read; `None` where another rank's entries did not come.
    fn fetch(&self, x: &[T], read: &mut [T]) -> Option<()> {
        let (slab, first) = (&self.slab, self.slab.rows().start);
        let part = |ranges: &[Range<usize>]| -> Array {
            let mut values = Vec::with_capacity(entries(ranges));
            for range in ranges {
                values.extend_from_slice(&x[range.start - first..range.end - first]);
            }
            T::into_array(values)
        };
        let given: Vec<_> = slab.given.iter().map(|(rank, ranges)| (*rank, part(ranges))).collect();
        let taken = self.endpoint.neighbour_exchange(T::DTYPE, &given, &self.counts).ok()?;
        let place = slab.reads.place(first);
        read[place..place + x.len()].copy_from_slice(x);
        for ((_, ranges), values) in slab.taken.iter().zip(&taken) {
            let mut rest = T::slice(values)?;
            for range in ranges {
                let (own, others) = rest.split_at_checked(range.len())?;
                let place = slab.reads.place(range.start);
                read[place..place + own.len()].copy_from_slice(own);
                rest = others;
            }
        }
        Some(())
    }
}

impl<T: Real> Operator<T> for SlabOperator<T> {
    fn rows(&self) -> usize {
        self.slab.rows().len()
    }

    fn first_row(&self) -> usize {
        self.slab.rows().start
    }

    fn all_rows(&self) -> usize {
        self.slab.all()
    }

    fn apply(&self, x: &[T], y: &mut [T]) {
        // Products come one at a time.
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        match self.fetch(x, &mut read) {
            Some(()) => (self.product)(&read, y),
            None => y.fill(T::from_f64(f64::NAN)),
        }
    }

    fn diagonal(&self) -> Option<Vec<T>> {
        let (slab, first) = (&self.slab, self.slab.rows().start);
        Some(match &slab.matrix {
            Matrix::Stored(matrix) => (0..self.rows())
                .map(|row| T::from_f64(matrix.get(row, slab.reads.place(first + row))))
                .collect(),
            Matrix::Stencil(operator) => slab.rows().map(|row| operator.diagonal_at(row)).collect(),
        })
    }

    fn diagonal_block(&self, start: usize, size: usize) -> Option<Vec<T>> {
        let (slab, first) = (&self.slab, self.slab.rows().start);
        let matrix = match &slab.matrix {
            Matrix::Stored(matrix) => matrix,
            Matrix::Stencil(operator) => {
                return Operator::<T>::diagonal_block(&**operator, first + start, size);
            }
        };
        // Own entries lie side by side.
        let corner = slab.reads.place(first + start);
        let mut block = vec![T::ZERO; size * size];
        for i in 0..size {
            for (column, value) in
                matrix.row(start + i).filter(|(column, _)| (corner..corner + size).contains(column))
            {
                block[i * size + column - corner] = T::from_f64(value);
            }
        }
        Some(block)
    }
}

/// Returns the number of entries of some ranges.
fn entries(ranges: &[Range<usize>]) -> usize {
    ranges.iter().map(Range::len).sum()
}

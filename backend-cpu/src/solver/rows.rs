//! The product with compressed rows, in bands of about as many entries.

use std::sync::Arc;

use abide_core::solver::Operator;
use abide_core::sparse::{Csr, Offsets};
use abide_core::{Real, Result};
use multiversion::multiversion;

use super::plan::WORK;
use crate::threads::join;

/// A matrix whose rows are shared among threads.
pub struct Rows<T> {
    matrix: Arc<Csr>,
    /// The reference's operator, for questions that are asked once.
    plain: Arc<dyn Operator<T>>,
    /// The first row of each band, and the number of rows.
    bands: Vec<usize>,
}

impl<T: Real> Rows<T> {
    pub fn new(matrix: Arc<Csr>, plain: Arc<dyn Operator<T>>) -> Self {
        let mut bands = vec![0];
        let mut work = 0;
        for row in 0..matrix.rows() {
            // A row costs its entries, and something even where it has no entry.
            work += matrix.range(row).len() + 1;
            if work >= WORK {
                bands.push(row + 1);
                work = 0;
            }
        }
        if bands.last() != Some(&matrix.rows()) {
            bands.push(matrix.rows());
        }
        Rows { matrix, plain, bands }
    }

    fn multiply(&self, bands: &[usize], x: &[T], y: &mut [T]) {
        match *bands {
            [start, _] => some_rows(&self.matrix, start, x, y),
            [start, ..] if bands.len() > 2 => {
                let middle = bands.len() / 2;
                let (low, high) = y.split_at_mut(bands[middle] - start);
                join(
                    || self.multiply(&bands[..=middle], x, low),
                    || self.multiply(&bands[middle..], x, high),
                );
            }
            _ => {}
        }
    }
}

impl<T: Real> Operator<T> for Rows<T> {
    fn rows(&self) -> usize {
        self.matrix.rows()
    }

    fn apply(&self, x: &[T], y: &mut [T]) {
        self.multiply(&self.bands, x, y);
    }

    fn entries(&self) -> Result<Option<Arc<Csr>>> {
        self.plain.entries()
    }

    fn diagonal(&self) -> Option<Vec<T>> {
        self.plain.diagonal()
    }

    fn diagonal_block(&self, start: usize, size: usize) -> Option<Vec<T>> {
        self.plain.diagonal_block(start, size)
    }
}

/// A row offset of either width.
trait Offset: Copy + Sync {
    fn at(self) -> usize;
}

impl Offset for u32 {
    fn at(self) -> usize {
        self as usize
    }
}

impl Offset for u64 {
    fn at(self) -> usize {
        self as usize
    }
}

/// Computes the rows from `first` on, as many as `y` has values; zeros where `T` is not the matrix's type.
pub fn some_rows<T: Real>(matrix: &Csr, first: usize, x: &[T], y: &mut [T]) {
    let Some(values) = T::slice(matrix.values()) else { return y.fill(T::ZERO) };
    match matrix.offsets() {
        Offsets::U32(offsets) => rows(&offsets[first..=first + y.len()], matrix.indices(), values, x, y),
        Offsets::U64(offsets) => rows(&offsets[first..=first + y.len()], matrix.indices(), values, x, y),
    }
}

/// Computes the rows of a band; compiled for each instruction set. The multiply-adds of a row come one after
/// the other, as the order of the sum demands; rows overlap in the pipeline.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
fn rows<T: Real, O: Offset>(offsets: &[O], indices: &[u32], values: &[T], x: &[T], y: &mut [T]) {
    for (sum, ends) in y.iter_mut().zip(offsets.windows(2)) {
        let range = ends[0].at()..ends[1].at();
        let mut entries = values[range.clone()].iter().zip(&indices[range]);
        *sum = match entries.next() {
            Some((&value, &column)) => {
                let first = value * x[column as usize];
                entries.fold(first, |sum, (&value, &column)| value.mul_add(x[column as usize], sum))
            }
            None => T::ZERO,
        };
    }
}

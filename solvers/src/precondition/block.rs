//! Block-Jacobi: the inverses of the blocks on the diagonal.

use abide_core::solver::{Operator, check_block_size};
use abide_core::{Error, Real, Result};

use super::Preconditioner;
use crate::engine::{Engine, zeros};

/// Block-Jacobi's preconditioner: `M` is the blocks of `size` consecutive rows on the diagonal of `A`.
///
/// Source: Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., section 4.1.1. The blocks are inverted
/// before the loop, by Gauss–Jordan elimination with partial pivoting in f64, so that applying them is a
/// product. Symmetric blocks have symmetric inverses, to the bit. Memory: `size` vectors. Reductions: none.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockDiagonal<T> {
    size: usize,
    rows: usize,
    /// The inverses, block after block, row by row.
    inverses: Vec<T>,
}

impl<T: Real> BlockDiagonal<T> {
    /// Makes the preconditioner of the operator's own blocks of `size` rows (the last may be smaller). Fails
    /// if the operator's entries are not known, a block is singular, or `size` is 0.
    pub fn new(a: &dyn Operator<T>, size: usize) -> Result<Self> {
        check_block_size(size)?;
        let rows = a.rows();
        let size = size.min(rows.max(1));
        let last = rows % size;
        let Some(total) = (rows - last).checked_mul(size).and_then(|whole| whole.checked_add(last * last))
        else {
            return Err(Error::limit(
                "the rows of a block of block-Jacobi",
                size,
                "the memory there is",
                "take 8",
            ));
        };
        let mut inverses = zeros::<T>(total)?;
        let mut filled = 0;
        for start in (0..rows).step_by(size) {
            let n = size.min(rows - start);
            let block = a.diagonal_block(start, n).filter(|block| block.len() == n * n).ok_or_else(|| {
                Error::invalid(
                    "the operator",
                    "it does not know its blocks",
                    "use a preconditioner that needs none",
                )
            })?;
            let block: Vec<f64> = block.into_iter().map(Real::to_f64).collect();
            let inverse = inverse(&block, n).ok_or_else(|| {
                let first = a.first_row() + start;
                let what = format!("the diagonal block of rows {first} to {}", first + n - 1);
                Error::invalid(
                    what,
                    "it is singular or not finite",
                    "take another size or another preconditioner",
                )
            })?;
            for (to, from) in inverses[filled..filled + n * n].iter_mut().zip(inverse) {
                *to = T::from_f64(from);
            }
            filled += n * n;
        }
        Ok(BlockDiagonal { size, rows, inverses })
    }

    /// Returns the rows of a block; the last may have fewer.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the inverses, block after block, row by row.
    pub fn inverses(&self) -> &[T] {
        &self.inverses
    }
}

impl<T: Real, E: Engine<T>> Preconditioner<T, E> for BlockDiagonal<T> {
    fn name(&self) -> &'static str {
        "block-jacobi"
    }

    fn rows(&self) -> Option<usize> {
        Some(self.rows)
    }

    fn apply(&mut self, engine: &E, r: &[T], z: &mut [T]) {
        let (size, rows, inverses) = (self.size, self.rows, &self.inverses);
        engine.chunks(z, size, |start, z| {
            // All blocks before this one are whole.
            let n = size.min(rows - start);
            let block = &inverses[start * size..start * size + n * n];
            let r = &r[start..start + n];
            for (z, row) in z.iter_mut().zip(block.chunks_exact(n)) {
                *z = row.iter().zip(r).fold(T::ZERO, |sum, (a, r)| sum + *a * *r);
            }
        });
    }
}

/// Returns the inverse of an n by n matrix, row by row; `None` if a pivot vanishes or a value is not finite.
fn inverse(matrix: &[f64], n: usize) -> Option<Vec<f64>> {
    let mut a = matrix.to_vec();
    let mut inverse = vec![0.0; n * n];
    for i in 0..n {
        inverse[i * n + i] = 1.0;
    }
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| a[i * n + k].abs().total_cmp(&a[j * n + k].abs()))?;
        for j in 0..n {
            a.swap(k * n + j, pivot * n + j);
            inverse.swap(k * n + j, pivot * n + j);
        }
        let scale = a[k * n + k];
        if scale == 0.0 {
            return None;
        }
        for j in 0..n {
            a[k * n + j] /= scale;
            inverse[k * n + j] /= scale;
        }
        for i in (0..n).filter(|&i| i != k) {
            let factor = a[i * n + k];
            for j in 0..n {
                a[i * n + j] -= factor * a[k * n + j];
                inverse[i * n + j] -= factor * inverse[k * n + j];
            }
        }
    }
    let symmetric = (0..n).all(|i| (0..i).all(|j| matrix[i * n + j] == matrix[j * n + i]));
    if symmetric {
        for i in 0..n {
            for j in 0..i {
                let mean = (inverse[i * n + j] + inverse[j * n + i]) / 2.0;
                inverse[i * n + j] = mean;
                inverse[j * n + i] = mean;
            }
        }
    }
    inverse.iter().all(|value| value.is_finite()).then_some(inverse)
}

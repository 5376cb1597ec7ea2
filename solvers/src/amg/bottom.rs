//! The coarsest matrix, solved by elimination.

use abide_core::sparse::Csr;
use abide_core::{Real, Result, memory};

/// Rows up to which a matrix is solved by elimination.
pub const MOST: usize = 200;

/// The factors L and D of a dense symmetric matrix.
pub struct Bottom {
    rows: usize,
    /// L below the diagonal, row by row, and what divides by D on it: 0 where the matrix is singular.
    factors: Vec<f64>,
    y: Vec<f64>,
    /// Whether the matrix takes constants to 0. They are left out then: what an unknown that is 0 would add of them to every
    /// solution, conjugate gradients would take for a direction.
    keeps_constants_out: bool,
}

/// Rows that add up to less than this share of their diagonal entry take constants to 0.
const NOTHING: f64 = 1e-10;
/// A pivot below this share of its diagonal entry is what rounding leaves of a singular matrix.
const SINGULAR: f64 = 1e-12;

impl Bottom {
    /// Factors a matrix. Where a row depends on those before it, its unknown is 0.
    pub fn new(matrix: &Csr) -> Result<Bottom> {
        let rows = matrix.rows();
        let room = |len| memory::filled(0.0, len, "the coarsest matrix", "take another preconditioner");
        let (mut factors, y) = (room(rows * rows)?, room(rows)?);
        let mut keeps_constants_out = true;
        for row in 0..rows {
            let mut sum = 0.0;
            for (column, value) in matrix.row(row) {
                factors[row * rows + column] = value;
                sum += value;
            }
            keeps_constants_out &= sum.abs() <= NOTHING * factors[row * rows + row].abs();
        }
        for k in 0..rows {
            let own = factors[k * rows + k];
            let mut pivot = own;
            for j in 0..k {
                // Until here the entry is L D.
                let scaled = factors[k * rows + j];
                let value = scaled * factors[j * rows + j];
                factors[k * rows + j] = value;
                pivot -= scaled * value;
            }
            factors[k * rows + k] = if pivot > SINGULAR * own { 1.0 / pivot } else { 0.0 };
            for i in k + 1..rows {
                let mut sum = factors[i * rows + k];
                for j in 0..k {
                    sum -= factors[i * rows + j] * factors[k * rows + j];
                }
                factors[i * rows + k] = sum;
            }
        }
        Ok(Bottom { rows, factors, y, keeps_constants_out })
    }

    /// Solves for `b`, in f64 whatever the type of vectors.
    pub fn solve<T: Real>(&mut self, b: &[T], x: &mut [T]) {
        let (n, l, y) = (self.rows, &self.factors, &mut self.y);
        y.iter_mut().zip(b).for_each(|(y, b)| *y = b.to_f64());
        if self.keeps_constants_out {
            centre(y);
        }
        for i in 0..n {
            let row = &l[i * n..i * n + i];
            y[i] = row.iter().zip(&y[..i]).fold(y[i], |sum, (l, y)| sum - l * y);
        }
        for i in 0..n {
            y[i] *= l[i * n + i];
        }
        for i in (0..n).rev() {
            let own = y[i];
            for j in 0..i {
                y[j] -= l[i * n + j] * own;
            }
        }
        if self.keeps_constants_out {
            centre(y);
        }
        x.iter_mut().zip(&*y).for_each(|(x, y)| *x = T::from_f64(*y));
    }
}

/// Takes the mean away.
fn centre(values: &mut [f64]) {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    values.iter_mut().for_each(|value| *value -= mean);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::laplacian_2d;
    use abide_core::sparse::Triplets;
    use abide_core::{Array, DType};

    #[test]
    fn systems_are_solved_to_rounding() {
        let matrix = laplacian_2d(7, 9, DType::F64).unwrap();
        let x: Vec<f64> = (0..63).map(|k| ((k * 37) % 11) as f64 - 4.0).collect();
        let b = matrix.matvec(&Array::F64(x.clone())).unwrap().to_f64();
        let mut found = vec![0.0; 63];
        Bottom::new(&matrix).unwrap().solve(&b, &mut found);
        assert!(x.iter().zip(&found).all(|(x, found)| (x - found).abs() < 1e-12));
    }

    /// A ring without anything that holds it is singular: what is found solves it, and has no mean.
    #[test]
    fn a_singular_system_is_solved_where_it_has_a_solution() {
        let mut ring = Triplets::new(10, 10).unwrap();
        for row in 0..10 {
            for (to, value) in [(row, 2.0), ((row + 1) % 10, -1.0), ((row + 9) % 10, -1.0)] {
                ring.push(row, to, value).unwrap();
            }
        }
        let ring = ring.into_csr().unwrap();
        let b: Vec<f64> = (0..10).map(|k| f64::from(k) - 4.5).collect();
        let mut x = vec![f64::NAN; 10];
        Bottom::new(&ring).unwrap().solve(&b, &mut x);
        let back = ring.matvec(&Array::F64(x.clone())).unwrap().to_f64();
        assert!(b.iter().zip(&back).all(|(b, back)| (b - back).abs() < 1e-12), "{back:?}");
        assert!(x.iter().sum::<f64>().abs() < 1e-12, "{x:?}");
    }
}

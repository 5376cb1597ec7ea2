//! Products of two matrices, and of some rows with a vector.

use super::csr::{Csr, Offsets};
use super::rows::{Rows, filled};
use crate::error::{Error, Result};
use crate::real::{Array, Real};

impl Csr {
    /// Returns the product with another matrix. An entry is a sum of rounded products, by ascending column of this matrix;
    /// entries that cancel are kept.
    ///
    /// ```
    /// use abide_core::sparse::Triplets;
    ///
    /// let mut turn = Triplets::new(2, 2)?;
    /// turn.push(0, 1, -1.0)?;
    /// turn.push(1, 0, 1.0)?;
    /// let turn = turn.into_csr()?;
    /// let half = turn.matmul(&turn)?;
    /// assert_eq!([half.get(0, 0), half.get(1, 1), half.get(0, 1)], [-1.0, -1.0, 0.0]);
    /// # Ok::<(), abide_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] where extents or types do not fit, [`Error::Limit`] where the machine has no memory for the product.
    pub fn matmul(&self, other: &Csr) -> Result<Csr> {
        if self.columns() != other.rows() {
            let reason =
                format!("the first has {} columns, the second {} rows", self.columns(), other.rows());
            return Err(Error::invalid("product of two matrices", reason, "give as many rows as columns"));
        }
        match (self.values(), other.values()) {
            (Array::F32(a), Array::F32(b)) => self.product(a, other, b),
            (Array::F64(a), Array::F64(b)) => self.product(a, other, b),
            _ => {
                let reason = format!("the first is {}, the second {}", self.dtype(), other.dtype());
                Err(Error::invalid("product of two matrices", reason, "cast one of them"))
            }
        }
    }

    /// Gustavson, ACM Trans. Math. Softw. 4 (1978), 250–269: rows are gathered in a dense vector.
    fn product<T: Real>(&self, a: &[T], other: &Csr, b: &[T]) -> Result<Csr> {
        /// Of a column that no row has touched yet.
        const NEVER: u32 = u32::MAX;
        let mut last: Vec<u32> = filled(NEVER, other.columns())?;
        let mut entries = 0;
        for row in 0..self.rows() {
            for &middle in &self.indices()[self.range(row)] {
                for &column in &other.indices()[other.range(middle as usize)] {
                    entries += usize::from(last[column as usize] != row as u32);
                    last[column as usize] = row as u32;
                }
            }
        }
        last.fill(NEVER);
        let mut sums: Vec<T> = filled(T::ZERO, other.columns())?;
        let mut product = Rows::new(self.rows(), other.columns(), entries)?;
        let mut touched: Vec<u32> = Vec::new();
        for row in 0..self.rows() {
            touched.clear();
            for at in self.range(row) {
                let middle = self.indices()[at] as usize;
                for beside in other.range(middle) {
                    let column = other.indices()[beside];
                    let sum = &mut sums[column as usize];
                    if last[column as usize] == row as u32 {
                        *sum = *sum + a[at] * b[beside];
                    } else {
                        *sum = a[at] * b[beside];
                        last[column as usize] = row as u32;
                        touched.push(column);
                    }
                }
            }
            touched.sort_unstable();
            for &column in &touched {
                product.push(column as usize, sums[column as usize]);
            }
            product.end();
        }
        product.finish()
    }

    /// Computes the product of the rows from `first` on, as many as `y` has values, with a vector, in the order of
    /// [`Csr::matvec`]; zeros where `T` is not the matrix's type.
    pub fn multiply_rows<T: Real>(&self, first: usize, x: &[T], y: &mut [T]) {
        let Some(values) = T::slice(self.values()) else { return y.fill(T::ZERO) };
        match self.offsets() {
            Offsets::U32(offsets) => sums(&offsets[first..=first + y.len()], self.indices(), values, x, y),
            Offsets::U64(offsets) => sums(&offsets[first..=first + y.len()], self.indices(), values, x, y),
        }
    }
}

/// Computes the products of rows whose entries lie between these offsets.
fn sums<T: Real, O: Copy + AsPlace>(offsets: &[O], indices: &[u32], values: &[T], x: &[T], y: &mut [T]) {
    for (sum, ends) in y.iter_mut().zip(offsets.windows(2)) {
        let range = ends[0].place()..ends[1].place();
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

/// A row offset of either width.
trait AsPlace {
    fn place(self) -> usize;
}

impl AsPlace for u32 {
    fn place(self) -> usize {
        self as usize
    }
}

impl AsPlace for u64 {
    fn place(self) -> usize {
        self as usize
    }
}

#[cfg(test)]
mod tests {
    use crate::sparse::Triplets;

    /// Products have the entries of dense ones, whatever the extents.
    #[test]
    fn products_are_those_of_dense_matrices() {
        let mut random = fastrand::Rng::with_seed(7);
        for (rows, middle, columns) in [(1, 1, 1), (5, 3, 8), (13, 21, 4), (30, 30, 30)] {
            let mut make = |rows: usize, columns: usize| {
                let mut dense = vec![0.0; rows * columns];
                let mut own = Triplets::new(rows, columns).unwrap();
                for (at, entry) in dense.iter_mut().enumerate() {
                    if random.f64() < 0.3 {
                        *entry = f64::from(random.i32(-9..=9));
                        own.push(at / columns, at % columns, *entry).unwrap();
                    }
                }
                (dense, own.into_csr().unwrap())
            };
            let ((a, stored_a), (b, stored_b)) = (make(rows, middle), make(middle, columns));
            let product = stored_a.matmul(&stored_b).unwrap();
            let x: Vec<f64> = (0..columns).map(|k| k as f64 - 1.5).collect();
            let mut y = vec![f64::NAN; rows - rows / 2];
            product.multiply_rows(rows / 2, &x, &mut y);
            for row in 0..rows {
                let entry =
                    |column: usize| (0..middle).map(|k| a[row * middle + k] * b[k * columns + column]).sum();
                let dense: Vec<f64> = (0..columns).map(entry).collect();
                assert!((0..columns).all(|column| product.get(row, column) == dense[column]), "row {row}");
                if row >= rows / 2 {
                    let sum: f64 = dense.iter().zip(&x).map(|(a, x)| a * x).sum();
                    assert_eq!(y[row - rows / 2], sum, "row {row}");
                }
            }
        }
        let narrow = Triplets::<f64>::new(2, 3).unwrap().into_csr().unwrap();
        assert!(narrow.matmul(&narrow).unwrap_err().to_string().contains("3 columns, the second 2 rows"));
    }
}

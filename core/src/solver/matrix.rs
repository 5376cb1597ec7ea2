//! The matrix of a system: a stored one, or a linear stencil that is never stored.

use std::sync::Arc;

use super::grid_operator::GridOperator;
use super::{Operator, SolveOptions, SolverError};
use crate::error::{Error, Result};
use crate::real::{Array, DType, Real};
use crate::sparse::Csr;
use crate::with_array;

/// A square matrix that backends solve with; copies share the entries.
#[derive(Debug, Clone, PartialEq)]
pub enum Matrix {
    /// Compressed rows.
    Stored(Arc<Csr>),
    /// A linear stencil with its boundary.
    Stencil(Arc<GridOperator>),
}

impl From<Csr> for Matrix {
    fn from(matrix: Csr) -> Self {
        Matrix::Stored(Arc::new(matrix))
    }
}

impl From<GridOperator> for Matrix {
    fn from(operator: GridOperator) -> Self {
        Matrix::Stencil(Arc::new(operator))
    }
}

impl Matrix {
    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        match self {
            Matrix::Stored(matrix) => matrix.rows(),
            Matrix::Stencil(operator) => operator.shape().cells(),
        }
    }

    /// Returns the number of entries: those stored, or for a stencil the most that a stored matrix would
    /// have, one for each cell and tap.
    pub fn nonzeros(&self) -> usize {
        match self {
            Matrix::Stored(matrix) => matrix.nnz(),
            Matrix::Stencil(operator) => {
                operator.shape().cells().saturating_mul(operator.stencil().taps().len())
            }
        }
    }

    /// Returns the type of the entries and of the vectors.
    pub fn dtype(&self) -> DType {
        match self {
            Matrix::Stored(matrix) => matrix.dtype(),
            Matrix::Stencil(operator) => operator.dtype(),
        }
    }

    /// Returns the bytes of the stored arrays; 0 for a stencil.
    pub fn bytes(&self) -> usize {
        match self {
            Matrix::Stored(matrix) => matrix.bytes(),
            Matrix::Stencil(_) => 0,
        }
    }

    /// Returns the same matrix with entries rounded to `dtype`. Fails if one of them, or a whole row, is
    /// beyond the type's range.
    pub fn cast(&self, dtype: DType) -> Result<Matrix> {
        Ok(match self {
            _ if dtype == self.dtype() => self.clone(),
            Matrix::Stored(matrix) => rounded(matrix, dtype)?.into(),
            Matrix::Stencil(operator) => operator.cast(dtype)?.into(),
        })
    }

    /// Returns the reference's operator: plain loops on one thread. Fails if `T` is not the matrix's type.
    ///
    /// A row's product is a plain multiplication and then one fused multiply-add for each later entry or tap,
    /// in order.
    pub fn operator<T: Real>(&self) -> Result<Arc<dyn Operator<T>>> {
        if T::DTYPE != self.dtype() {
            let reason = format!("it is {}, and {} was asked for", self.dtype(), T::DTYPE);
            return Err(Error::invalid("the matrix", reason, "cast it"));
        }
        Ok(match self {
            Matrix::Stored(matrix) => Arc::new(Stored(Arc::clone(matrix))),
            Matrix::Stencil(operator) => Arc::clone(operator) as Arc<dyn Operator<T>>,
        })
    }

    /// Checks what can be seen of a system before anything is computed. Fails if the matrix is not square,
    /// has no rows, an entry that is not finite or a row of zeros, or if the method needs a symmetric
    /// positive definite matrix and this one is not.
    ///
    /// A backend calls this once, when it opens a session. The check is one pass over the entries; for a
    /// stencil, over a few cells.
    pub fn check(&self, options: &SolveOptions) -> Result<(), SolverError> {
        self.check_extents()?;
        match self {
            Matrix::Stored(matrix) => check_stored(matrix, options),
            Matrix::Stencil(operator) => check_stored(&operator.sample()?, options),
        }
    }

    /// Fails unless the matrix is square and has rows, which planners take for granted.
    pub fn check_extents(&self) -> Result<()> {
        let (rows, columns) = match self {
            Matrix::Stored(matrix) => (matrix.rows(), matrix.columns()),
            Matrix::Stencil(_) => (self.rows(), self.rows()),
        };
        if rows != columns {
            let reason = format!("it has {rows} rows and {columns} columns");
            return Err(Error::invalid("the matrix", reason, "a system needs as many equations as unknowns"));
        }
        if rows == 0 {
            return Err(Error::invalid("the matrix", "it has no rows", "give at least one"));
        }
        Ok(())
    }

    /// Returns a stored matrix that has every kind of row that this one has: the matrix itself, or for a
    /// stencil that of the least domain on which it meets each side of its boundary as on its own.
    pub fn sample(&self) -> Result<Arc<Csr>> {
        Ok(match self {
            Matrix::Stored(matrix) => Arc::clone(matrix),
            Matrix::Stencil(operator) => Arc::new(operator.sample()?),
        })
    }

    /// Returns the matrix with every sign changed; `None` where that cannot be written as an operator. Fails if
    /// the machine has no memory for a stored one.
    pub fn negated(&self) -> Result<Option<Matrix>> {
        Ok(match self {
            Matrix::Stored(matrix) => Some(matrix.negated()?.into()),
            Matrix::Stencil(operator) => operator.negated().map(Matrix::from),
        })
    }

    /// Returns whether every entry of the diagonal is below 0.
    pub fn has_negative_diagonal(&self) -> Result<bool> {
        let sample = self.sample()?;
        Ok((0..sample.rows().min(sample.columns())).all(|row| sample.get(row, row) < 0.0))
    }

    /// Returns whether the matrix equals its transpose, up to rounding.
    pub fn is_symmetric(&self) -> Result<bool> {
        if self.check_extents().is_err() {
            return Ok(false);
        }
        Ok(match self {
            Matrix::Stored(matrix) => matrix.asymmetry()?.is_none(),
            Matrix::Stencil(operator) => operator.sample()?.asymmetry()?.is_none(),
        })
    }

    /// Checks that a vector has the matrix's type; its length is for the solver to check.
    pub fn check_vector(&self, name: &str, vector: &Array) -> Result<()> {
        if vector.dtype() == self.dtype() {
            return Ok(());
        }
        let reason = format!("it is {}, the matrix {}", vector.dtype(), self.dtype());
        Err(Error::invalid(format!("the vector {name}"), reason, "cast it with Array::cast"))
    }
}

/// Rounds the matrix to another type. An entry that becomes 0 is rounded like any other; a row that becomes 0
/// would make another system.
fn rounded(matrix: &Csr, dtype: DType) -> Result<Csr> {
    let cast = matrix.cast(dtype)?;
    let fault = |what: String, reason: &str| {
        Error::invalid(what, format!("{reason} the range of {dtype}"), "scale the system or solve it in f64")
    };
    for row in 0..matrix.rows() {
        let mut is_lost = false;
        for (entry, (column, value)) in matrix.row(row).zip(cast.row(row)) {
            if entry.1.is_finite() && !value.is_finite() {
                let what = format!("the entry {:e} of row {row}, column {column} of the matrix", entry.1);
                return Err(fault(what, "it is beyond"));
            }
            is_lost |= value == 0.0 && entry.1 != 0.0;
        }
        if is_lost && cast.row(row).all(|(_, value)| value == 0.0) {
            return Err(fault(
                format!("row {row} of the matrix"),
                "it has no entries but 0 and such as are below",
            ));
        }
    }
    Ok(cast)
}

fn check_stored(matrix: &Csr, options: &SolveOptions) -> Result<(), SolverError> {
    with_array!(matrix.values(), values => check_rows(matrix, values))?;
    if !options.method.needs_symmetric() {
        return Ok(());
    }
    let method = options.method.name();
    if !options.assume_symmetric
        && let Some((row, column)) = matrix.asymmetry()?
    {
        let (value, mirror) = (matrix.get(row, column), matrix.get(column, row));
        return Err(SolverError::NotSymmetric { method, row, column, value, mirror });
    }
    if !options.method.needs_definite() {
        return Ok(());
    }
    let bad = (0..matrix.rows()).map(|row| (row, matrix.get(row, row))).find(|&(_, value)| value <= 0.0);
    bad.map_or(Ok(()), |(row, value)| Err(SolverError::NotPositive { method, row, value }))
}

fn check_rows<T: Real>(matrix: &Csr, values: &[T]) -> Result<(), SolverError> {
    for row in 0..matrix.rows() {
        let range = matrix.range(row);
        let mut empty = true;
        for at in range {
            let value = values[at];
            if !value.is_finite() {
                let what = format!("the entry of row {row}, column {} of the matrix", matrix.indices()[at]);
                return Err(Error::invalid(what, format!("it is {value}"), "give finite entries").into());
            }
            empty &= value == T::ZERO;
        }
        if empty {
            return Err(SolverError::Singular { row });
        }
    }
    Ok(())
}

/// Compressed rows as the reference's operator.
struct Stored(Arc<Csr>);

impl<T: Real> Operator<T> for Stored {
    fn rows(&self) -> usize {
        self.0.rows()
    }

    fn apply(&self, x: &[T], y: &mut [T]) {
        self.0.multiply_rows(0, x, y);
    }

    fn entries(&self) -> Result<Option<Arc<Csr>>> {
        Ok(Some(Arc::clone(&self.0)))
    }

    fn diagonal(&self) -> Option<Vec<T>> {
        Some((0..self.0.rows()).map(|row| T::from_f64(self.0.get(row, row))).collect())
    }

    fn diagonal_block(&self, start: usize, size: usize) -> Option<Vec<T>> {
        let mut block = vec![T::ZERO; size * size];
        for i in 0..size {
            for (column, value) in
                self.0.row(start + i).filter(|&(column, _)| (start..start + size).contains(&column))
            {
                block[i * size + column - start] = T::from_f64(value);
            }
        }
        Some(block)
    }
}

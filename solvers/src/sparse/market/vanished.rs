//! Values that become 0 because they are too small for the type in which they are read.
//!
//! Such a value among larger ones is rounding like any other. If nothing else is left in a row, the system
//! would be another one.

use std::path::Path;

use abide_core::sparse::Csr;
use abide_core::sparse::rows::filled;
use abide_core::{Array, Error, Real, Result, with_array};

/// The rows in which a value has vanished.
#[derive(Default)]
pub(super) struct Vanished {
    /// A mark for each row; empty before the first mark.
    rows: Vec<bool>,
}

impl Vanished {
    /// Marks a row of `rows`.
    pub fn mark(&mut self, row: usize, rows: usize) -> Result<()> {
        if self.rows.is_empty() {
            self.rows = filled(false, rows)?;
        }
        if let Some(mark) = self.rows.get_mut(row) {
            *mark = true;
        }
        Ok(())
    }

    /// Fails if a row of a matrix has nothing left.
    pub fn check_matrix(&self, matrix: &Csr, name: &Path) -> Result<()> {
        let mut marked = (0..self.rows.len()).filter(|&row| self.rows[row]);
        match marked.find(|&row| matrix.row(row).all(|(_, value)| value == 0.0)) {
            Some(row) => Err(error(name, format!("row {}", row + 1), matrix.values())),
            None => Ok(()),
        }
    }

    /// Fails if a vector has nothing left.
    pub fn check_vector(&self, vector: &Array, name: &Path) -> Result<()> {
        let empty =
            !self.rows.is_empty() && with_array!(vector, v => v.iter().all(|value| value.to_f64() == 0.0));
        if empty { Err(error(name, "the vector".to_owned(), vector)) } else { Ok(()) }
    }
}

fn error(name: &Path, what: String, values: &Array) -> Error {
    let message = format!("{what} has no values but 0 and such as are below the range of {}", values.dtype());
    Error::file(name, message, "scale the system or read it in a wider type")
}

/// Checks whether a word that was read as 0 stands for another number.
pub(super) fn is_not_zero(word: &[u8]) -> bool {
    word.iter().take_while(|byte| !byte.is_ascii_alphabetic()).any(|byte| matches!(byte, b'1'..=b'9'))
}

//! Making a matrix row by row, from the first to the last.

use super::MAX_EXTENT;
use super::csr::{Csr, Offsets};
use crate::error::{Error, Result};
use crate::memory;
use crate::real::Real;

/// A matrix whose rows are added from the first to the last, each by ascending column.
pub struct Rows<T> {
    columns: usize,
    offsets: Vec<u64>,
    indices: Vec<u32>,
    values: Vec<T>,
}

impl<T: Real> Rows<T> {
    /// Makes a matrix without rows yet, with room for `rows` rows and `entries` entries in all.
    pub fn new(rows: usize, columns: usize, entries: usize) -> Result<Self> {
        check_extents(rows, columns)?;
        let mut offsets = reserved(rows + 1)?;
        offsets.push(0);
        Ok(Rows { columns, offsets, indices: reserved(entries)?, values: reserved(entries)? })
    }

    /// Adds an entry to the row in the making; its column is beyond those of the entries before it.
    pub fn push(&mut self, column: usize, value: T) {
        debug_assert!(column < self.columns);
        self.indices.push(column as u32);
        self.values.push(value);
    }

    /// Adds all entries of the row in the making, given by ascending column; entries of the same column are
    /// added up in order.
    pub fn merge(&mut self, entries: impl IntoIterator<Item = (u32, T)>) {
        let start = self.indices.len();
        for (column, value) in entries {
            match (self.indices[start..].last(), self.values.last_mut()) {
                (Some(&last), Some(sum)) if last == column => *sum = *sum + value,
                _ => self.push(column as usize, value),
            }
        }
    }

    /// Ends the row in the making.
    pub fn end(&mut self) {
        self.offsets.push(self.indices.len() as u64);
    }

    /// Returns the matrix of the rows so far.
    pub fn finish(self) -> Result<Csr> {
        Ok(Csr::sorted(
            self.columns,
            Offsets::narrowest(self.offsets)?,
            self.indices,
            T::into_array(self.values),
        ))
    }
}

/// Fails unless both extents are within [`MAX_EXTENT`].
pub fn check_extents(rows: usize, columns: usize) -> Result<()> {
    for (name, extent) in [("rows", rows), ("columns", columns)] {
        if u32::try_from(extent).is_err() {
            return Err(Error::limit(
                format!("{name} of a matrix"),
                extent,
                MAX_EXTENT,
                "choose a smaller size",
            ));
        }
    }
    Ok(())
}

/// The use of the memory asked for here, and what to change if there is not enough.
const WHAT: &str = "a matrix";
const CHANGE: &str = "choose a smaller matrix or f32";

/// Returns an empty vector with room for `len` values. Fails if the machine does not have that much memory.
pub fn reserved<T>(len: usize) -> Result<Vec<T>> {
    memory::reserved(len, WHAT, CHANGE)
}

/// Returns `len` copies of `value`. Fails if the machine does not have that much memory.
pub fn filled<T: Clone>(value: T, len: usize) -> Result<Vec<T>> {
    memory::filled(value, len, WHAT, CHANGE)
}

/// Returns a copy. Fails if the machine does not have that much memory.
pub(super) fn copied<T: Copy>(values: &[T]) -> Result<Vec<T>> {
    memory::copied(values, WHAT, CHANGE)
}

/// Makes the error for memory that the machine does not have.
pub fn no_memory<T>(len: usize) -> Error {
    memory::refused::<T>(len, WHAT, CHANGE)
}

//! Matrices from entries in any order.

use super::csr::Csr;
use super::rows::{Rows, check_extents, filled, no_memory};
use crate::error::{Error, Result};
use crate::real::Real;

/// Entries of a matrix in any order. Entries at the same place are added up in the order in which they came.
///
/// ```
/// use abide_core::sparse::Triplets;
///
/// let mut triplets = Triplets::new(2, 3)?;
/// triplets.push(1, 2, 4.0)?;
/// triplets.push(0, 0, 1.0)?;
/// triplets.push(1, 2, 0.5)?;
/// let matrix = triplets.into_csr()?;
/// assert_eq!((matrix.nnz(), matrix.get(1, 2)), (2, 4.5));
/// # Ok::<(), abide_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Triplets<T> {
    rows: usize,
    columns: usize,
    entries: Vec<(u32, u32, T)>,
}

impl<T: Real> Triplets<T> {
    /// Makes a matrix without entries yet. Fails if an extent is beyond [`MAX_EXTENT`](super::MAX_EXTENT).
    pub fn new(rows: usize, columns: usize) -> Result<Self> {
        check_extents(rows, columns)?;
        Ok(Triplets { rows, columns, entries: Vec::new() })
    }

    /// Adds an entry; row and column are counted from 0. Fails if the entry lies outside the matrix or memory
    /// runs out.
    pub fn push(&mut self, row: usize, column: usize, value: T) -> Result<()> {
        if row >= self.rows || column >= self.columns {
            let (name, index, extent) =
                if row >= self.rows { ("row", row, self.rows) } else { ("column", column, self.columns) };
            return Err(Error::limit(
                format!("{name} of an entry"),
                index,
                format!("below {extent}"),
                format!("count {name}s from 0 or make the matrix larger"),
            ));
        }
        if self.entries.len() == self.entries.capacity() {
            self.entries.try_reserve(1).map_err(|_| no_memory::<(u32, u32, T)>(self.entries.len() + 1))?;
        }
        self.entries.push((row as u32, column as u32, value));
        Ok(())
    }

    /// Makes room for `entries` entries. Fails if the machine does not have that much memory.
    pub fn reserve(&mut self, entries: u64) -> Result<()> {
        let entries = usize::try_from(entries).unwrap_or(usize::MAX);
        self.entries.try_reserve_exact(entries).map_err(|_| no_memory::<(u32, u32, T)>(entries))
    }

    /// Returns how many entries were added.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether no entries were added.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the matrix. Fails if the machine does not have enough memory.
    pub fn into_csr(self) -> Result<Csr> {
        let Triplets { rows, columns, entries } = self;
        let mut ends: Vec<u64> = filled(0, rows + 1)?;
        for &(row, ..) in &entries {
            ends[row as usize + 1] += 1;
        }
        for row in 0..rows {
            ends[row + 1] += ends[row];
        }
        // This is a counting sort: `ends[row]` starts where the row does and ends where the next row starts.
        let mut sorted: Vec<(u32, T)> = filled((0, T::ZERO), entries.len())?;
        for &(row, column, value) in &entries {
            let place = &mut ends[row as usize];
            sorted[*place as usize] = (column, value);
            *place += 1;
        }
        drop(entries);
        let mut matrix = Rows::new(rows, columns, sorted.len())?;
        let mut start = 0;
        for &end in &ends[..rows] {
            let row = &mut sorted[start..end as usize];
            if row.windows(2).any(|pair| pair[0].0 > pair[1].0) {
                // The sort is stable: entries of one place stay in the order in which they came.
                row.sort_by_key(|&(column, _)| column);
            }
            matrix.merge(row.iter().copied());
            matrix.end();
            start = end as usize;
        }
        matrix.finish()
    }
}

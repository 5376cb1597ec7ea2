//! Spread rows: rows so long that one block would keep all others waiting for them. They are taken out of the
//! product and spread over all blocks.
//!
//! Each block holds their entries in the columns of its own rows. It can then compute its piece of their sums
//! as soon as it has published its own part of the exchanged vector, before the barrier that the exchange has
//! in any case. The pieces travel with the vector, and a spread row costs neither a barrier nor a gathered
//! value.

use std::ops::Range;

use abide_core::solver::plan::krylov::{Krylov, SPREAD_ROWS, Share};
use abide_core::sparse::Csr;
use abide_core::{DType, Error, Result};

use super::LONG;

/// A row with more entries than those of the mean block over this number is worth being spread: kept whole,
/// the row may leave its block with as much more to do.
const OF_A_SHARE: usize = 4;

/// Returns the length beyond which rows of a matrix are worth being spread over `blocks` blocks; `None` if no
/// row is that long. If there are more such rows than can be spread, the length is that of the longest row
/// that stays whole.
pub fn threshold(matrix: &Csr, blocks: usize) -> Option<usize> {
    let mean = matrix.nnz() as f64 / matrix.rows().max(1) as f64;
    let least = (matrix.nnz() / (OF_A_SHARE * blocks)).max((LONG * mean.max(1.0)) as usize);
    let mut long: Vec<usize> =
        (0..matrix.rows()).map(|row| matrix.range(row).len()).filter(|&n| n > least).collect();
    long.sort_unstable_by(|a, b| b.cmp(a));
    let threshold = long.get(SPREAD_ROWS).copied().unwrap_or(least);
    long.first().is_some_and(|&longest| longest > threshold).then_some(threshold)
}

/// Returns a note on the rows that are spread, in words.
pub fn note(krylov: &Krylov) -> String {
    let entries: usize = krylov.shares.iter().map(|share| share.spread_entries).sum();
    let (rows, most) = (krylov.spread_rows.len(), krylov.spread.unwrap_or(0));
    let rows = if rows == 1 { "1 row".to_owned() } else { format!("{rows} rows") };
    format!(
        "{rows} of more than {most} entries, {entries} together, would keep all blocks waiting for one: each block sums the columns \
         of its own rows before it waits for the exchanged vector, so that there is no barrier more"
    )
}

/// A matrix taken apart: rows of no more than a number of entries, and spread rows, which are empty among the
/// former.
pub struct Parts<'a> {
    matrix: &'a Csr,
    /// The rows that are spread, ascending.
    pub spread: Vec<usize>,
    /// Entries of the spread rows before each spread row, and of all of them.
    before: Vec<usize>,
}

impl<'a> Parts<'a> {
    /// Takes out the rows of more than `threshold` entries; none if there is no threshold.
    pub fn new(matrix: &'a Csr, threshold: Option<usize>) -> Result<Self> {
        let is_long = |row: &usize| threshold.is_some_and(|most| matrix.range(*row).len() > most);
        let spread: Vec<usize> = (0..matrix.rows()).filter(is_long).collect();
        if spread.len() > SPREAD_ROWS {
            let change = "spread longer rows alone";
            return Err(Error::limit(
                "rows spread over all blocks of a solver",
                spread.len(),
                SPREAD_ROWS,
                change,
            ));
        }
        let mut before = vec![0];
        for &row in &spread {
            before.push(before[before.len() - 1] + matrix.range(row).len());
        }
        Ok(Parts { matrix, spread, before })
    }

    pub fn dtype(&self) -> DType {
        self.matrix.dtype()
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.matrix.rows()
    }

    /// Returns the indices of a row's entries in the matrix; an empty range for a spread row.
    pub fn range(&self, row: usize) -> Range<usize> {
        if self.spread.binary_search(&row).is_ok() { 0..0 } else { self.matrix.range(row) }
    }

    /// Returns the number of entries before a row, without those of spread rows; for the row after the last,
    /// all.
    pub fn start(&self, row: usize) -> usize {
        let all = self.matrix.offsets().get(row).unwrap_or(self.matrix.nnz());
        all - self.before[self.spread.partition_point(|&spread| spread < row)]
    }

    /// Returns the columns of all entries.
    pub fn indices(&self) -> &'a [u32] {
        self.matrix.indices()
    }

    /// Returns the number of entries of spread rows in the columns before `column`.
    pub fn spread_before(&self, column: usize) -> usize {
        self.spread.iter().map(|&row| self.in_columns(row, 0..column).len()).sum()
    }

    /// Returns the indices, in the matrix, of a share's piece of a spread row: its entries in the columns of
    /// the share's rows.
    pub fn piece(&self, row: usize, share: &Share) -> Range<usize> {
        self.in_columns(row, share.first..share.first + share.rows)
    }

    fn in_columns(&self, row: usize, columns: Range<usize>) -> Range<usize> {
        let range = self.matrix.range(row);
        let own = &self.matrix.indices()[range.clone()];
        let before = |end: usize| range.start + own.partition_point(|&column| (column as usize) < end);
        before(columns.start)..before(columns.end)
    }
}

//! A stretch of a level: rows side by side of a formula that is one sum, with all that they read in the
//! domain.
//!
//! A level comes to a few of its rows in each turn. Where they lie, and where the rows lie that they read, is
//! found when it comes to the first; from there on each turn goes on where the one before it ended.

use std::ops::Range;

use abide_core::Real;

use crate::sum::{Ahead, Rows, Sums};

/// Rows of a level that are still to come.
pub struct Stretch<T> {
    /// The next row.
    pub at: [isize; 2],
    /// Its sums and those of the rows after it.
    pub sums: Sums<T>,
    /// The cells at the ends of rows that are not computed but kept in the ring, as they are counted in the
    /// domain and from the first computed one; and where those cells come from.
    pub kept: Option<([Range<usize>; 2], isize, Rows<T>)>,
}

impl<T: Real> Stretch<T> {
    /// Computes the next rows, so many of them.
    ///
    /// # Safety
    ///
    /// As [`Sums::advance`], and nobody writes the cells that are kept.
    #[inline(always)]
    pub unsafe fn advance(&mut self, rows: usize) {
        let mut to = self.sums.to();
        // SAFETY: by the contract.
        unsafe { self.sums.advance(rows, Ahead { read: false, write: false }) };
        // Only now: these rows go where others lay that were read until the sums were done.
        if let Some((kept, first, from)) = &mut self.kept {
            for _ in 0..rows {
                for kept in &*kept {
                    for x in kept.clone() {
                        // SAFETY: rows in rings have room for the cells that are kept, and those of the
                        // domain have them.
                        unsafe { *to.row().offset(x as isize - *first) = *from.row().add(x) };
                    }
                }
                to.step();
                from.step();
            }
        }
        self.at[1] += rows as isize;
    }
}

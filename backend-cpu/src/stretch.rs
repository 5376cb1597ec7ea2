//! Stretches of a level: rows side by side of a formula that is one sum, where all that they read lies in the
//! domain.
//!
//! A level comes to a few of its rows in each turn. The places of these rows, and of the rows that they read,
//! are found when the level comes to the first one; from there on each turn goes on where the last one ended.

use std::ops::Range;

use abide_core::Real;

use crate::sum::{Ahead, Rows, Sums};

/// Rows of a level that are still to come.
pub struct Stretch<T> {
    /// The next row.
    pub at: [isize; 2],
    /// The sums of that row and of the rows after it.
    pub sums: Sums<T>,
    /// The cells at the ends of rows that are kept in the ring without being computed, as counted in the
    /// domain and from the first computed cell; and the rows from which they come.
    pub kept: Option<([Range<usize>; 2], isize, Rows<T>)>,
}

impl<T: Real> Stretch<T> {
    /// Computes the next `rows` rows.
    ///
    /// # Safety
    ///
    /// The conditions of [`Sums::advance`]; also, nobody writes the cells that are kept.
    #[inline(always)]
    pub unsafe fn advance(&mut self, rows: usize) {
        let mut to = self.sums.to();
        // SAFETY: the caller promises it.
        unsafe { self.sums.advance(rows, Ahead { read: false, write: false }) };
        // Only now, because these rows overwrite others that were read until the sums were done.
        if let Some((kept, first, from)) = &mut self.kept {
            for _ in 0..rows {
                for kept in &*kept {
                    for x in kept.clone() {
                        // SAFETY: rows in rings have room for the cells that are kept, and rows of the domain
                        // have these cells.
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

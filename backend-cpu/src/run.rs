//! Rows side by side, one after the other.
//!
//! To look up in the bytecode what a row needs takes as long as computing some hundred cells. So where the whole
//! formula is one sum of taps, as that of a linear stencil, it is looked up once for all rows.

use std::ops::Range;

use abide_core::Real;

use crate::bytecode::{Steps, Weighted};
use crate::chunk::{Memory, Row, Scratch, Sink, TapRow};
use crate::sum::Sums;

impl<M> Row<'_, M> {
    /// Computes the cells `cells` of `count` rows. `scratch` says where the rows lie that the taps of the
    /// first row read, and the walks there lead to those of the next.
    #[inline(always)]
    pub fn run<T: Real>(
        &self,
        scratch: &mut Scratch<T>,
        sink: &mut impl Sink<T>,
        cells: Range<isize>,
        count: usize,
    ) where
        M: Memory<T>,
    {
        if let Some(mut sums) = self.sums(scratch, sink, &cells, count) {
            // SAFETY: `Memory` and `Sink` promise what the call asks for.
            unsafe { sums.advance(count, self.ahead) };
            sink.done(count);
            return;
        }
        let safe = self.safe(&scratch.rows);
        for _ in 0..count {
            self.compute(scratch, sink, cells.clone(), &safe);
            for row in &mut scratch.rows {
                if let TapRow::At(_, walk) = row {
                    walk.step();
                }
            }
            sink.done(1);
        }
    }

    /// Returns the whole formula as sums for `count` rows; `None` where the formula is more than sums, or
    /// where a tap reaches beyond an end of its row.
    #[inline(always)]
    pub fn sums<T: Real>(
        &self,
        scratch: &Scratch<T>,
        sink: &mut impl Sink<T>,
        cells: &Range<isize>,
        count: usize,
    ) -> Option<Sums<T>>
    where
        M: Memory<T>,
    {
        let Steps::Sum(Weighted { terms, scale }) = &self.bytecode.steps else { return None };
        let safe = self.safe(&scratch.rows)?;
        if cells.start < safe.start || cells.end > safe.end {
            return None;
        }
        let (to, walk) = sink.all(0);
        let mut sums = Sums::new(to, walk, [count, cells.len()], scale.map(|scale| scratch.scalars[scale]));
        for term in terms {
            let tap = self.bytecode.taps[term.tap];
            // `safe` leaves out constants.
            let TapRow::At(buffer, walk) = scratch.rows[tap.row] else { return None };
            let along = (cells.start + tap.shift - self.held(buffer).start) as usize;
            sums.add(scratch.scalars[term.weight], self.memory.all(buffer), walk.shifted(along));
        }
        Some(sums)
    }
}

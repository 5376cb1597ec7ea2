//! Prefetches: requests of a pass to memory before it needs the cells.
//!
//! The first levels read planes in the domain and the last ones write some there. If each of them waited for
//! memory itself, memory would be idle while all others compute. So with each row that it computes, every
//! level prefetches a share of the rows that the next visit reads and writes. By then these rows lie in the
//! core's second-level cache: on one core `2d5pt` takes a fifth less time with 16 levels.

use std::ops::Range;

use abide_core::Real;

use crate::tile::{Pass, Tile};

/// Planes of a field in the domain that arrive or leave as the front moves on.
pub struct Prefetch {
    field: usize,
    /// Whether the planes are those after the pass, which are written.
    is_new: bool,
    /// Planes from the front to the plane that is read or written.
    lead: isize,
}

impl<T: Real> Pass<'_, T> {
    /// Collects the prefetches of a pass: for each field that levels read in the domain, the foremost plane
    /// that they read, and for each field that a level writes there, the plane that it writes.
    #[inline(always)]
    pub fn prefetches(&self, prefetches: &mut Vec<Prefetch>) {
        prefetches.clear();
        let stream = self.levels.stream;
        let mut add = |field: usize, is_new: bool, lead: isize| {
            for known in &mut *prefetches {
                if (known.field, known.is_new) == (field, is_new) {
                    known.lead = known.lead.max(lead);
                    return;
                }
            }
            prefetches.push(Prefetch { field, is_new, lead });
        };
        for level in &self.levels.levels {
            let (bytecode, lag) = (&self.bytecodes[level.stage], level.lag as isize);
            for row in &bytecode.rows {
                if level.sources[row.field].is_none() {
                    add(row.field, false, bytecode.lines[row.line][stream] - lag);
                }
            }
            for output in &level.outputs {
                if output.last {
                    add(output.field, true, -lag);
                }
            }
        }
    }

    /// Returns the cells of a row that a level prefetches; the shares of all levels make up the row.
    #[inline(always)]
    pub fn share(&self, number: usize, tile: &Tile) -> Range<usize> {
        let (halo, cells, count) = (self.levels.halo[2], &tile.cells[2], self.levels.levels.len());
        let (low, high) = (cells.start.saturating_sub(halo), (cells.end + halo).min(self.region.width()));
        let share = (high - low).div_ceil(count);
        (low + number * share).min(high)..(low + (number + 1) * share).min(high)
    }

    /// Prefetches a level's share of some rows while the level computes the rows from `at` on. The shares of all
    /// levels make up the planes of the next visit, and memory is busy all the time.
    #[inline(always)]
    pub fn ask(&self, prefetch: &Prefetch, at: [isize; 2], rows: usize, number: usize, share: &Range<usize>) {
        let levels = self.levels;
        let mut row = at;
        row[levels.stream] += (levels.levels[number].lag + levels.block) as isize + prefetch.lead;
        let extents = [0, 1].map(|axis| self.region.extent(axis) as isize);
        if row[0] < 0 || row[0] >= extents[0] {
            return;
        }
        let array = if prefetch.is_new { &self.new[prefetch.field] } else { &self.now[prefetch.field] };
        for y in row[1].max(0)..(row[1] + rows as isize).min(extents[1]) {
            let begin = self.region.row_index([row[0] as usize, y as usize]);
            array.ask(begin + share.start..begin + share.end);
        }
    }
}

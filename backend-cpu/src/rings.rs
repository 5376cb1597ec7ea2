//! Where the planes between the levels of a pass lie.

use std::ops::Range;

use abide_core::plan::{Ring, across};
use abide_core::{Real, Result, memory};
use bytemuck::allocation::try_zeroed_vec;

/// Bytes of a cache line, and of the widest vector of any machine that we know.
pub const LINE_BYTES: usize = 64;

/// Values whose first lies at the beginning of a cache line.
pub struct Storage<T> {
    /// All memory there is.
    pub values: Vec<T>,
    /// Where the first value lies in it.
    pub start: usize,
}

/// So many zeros, which take no memory before they are used; an error where the machine has not that much.
pub fn zeros<T: Real>(len: usize) -> Result<Vec<T>> {
    let change = "choose a smaller --depth or --size, or fewer threads (RAYON_NUM_THREADS)";
    try_zeroed_vec(len).map_err(|()| memory::refused::<T>(len, "the planes and rows at work", change))
}

impl<T: Real> Storage<T> {
    /// So many values, or an error where the machine has no memory for them.
    pub fn new(len: usize) -> Result<Self> {
        let values: Vec<T> = zeros(len.saturating_add(LINE_BYTES / size_of::<T>()))?;
        let start = values.as_ptr().align_offset(LINE_BYTES).min(LINE_BYTES / size_of::<T>());
        Ok(Storage { values, start })
    }

    /// No values, which takes no memory.
    pub fn empty() -> Self {
        Storage { values: Vec::new(), start: 0 }
    }

    /// The first values.
    #[inline(always)]
    pub fn first(&self, len: usize) -> &[T] {
        &self.values[self.start..self.start + len]
    }

    /// The first values, to be written.
    #[inline(always)]
    pub fn first_mut(&mut self, len: usize) -> &mut [T] {
        &mut self.values[self.start..self.start + len]
    }

    /// All values but those before the first.
    pub fn all_mut(&mut self) -> &mut [T] {
        &mut self.values[self.start..]
    }

    /// Makes room for so many values.
    pub fn fit(&mut self, len: usize) -> Result<()> {
        if self.values.len() < len.saturating_add(LINE_BYTES / size_of::<T>()) {
            // Not both at once.
            *self = Storage::empty();
            *self = Storage::new(len)?;
        }
        Ok(())
    }
}

/// Values from row to row of a ring: whole lines, an odd number of them, so that rows do not meet in the same
/// sets of a cache.
pub fn padded<T>(cells: usize) -> usize {
    let line = LINE_BYTES / size_of::<T>();
    (cells.div_ceil(line) | 1) * line
}

/// The place of a tile's window in its rings.
pub struct Window {
    /// The streamed axis.
    pub stream: usize,
    /// The first plane.
    pub first: isize,
    /// The first row of a plane.
    pub low: isize,
    /// The rows of a plane.
    pub rows: usize,
    /// The cells along rows.
    pub cells: Range<isize>,
    /// Values before the first cell of a row, so that the first computed one lies at the beginning of a cache
    /// line.
    pub lead: usize,
    /// Values from row to row.
    pub stride: usize,
}

impl Window {
    /// The values to put before a row's first cell where so many more precede the first computed one.
    #[inline(always)]
    pub fn lead<T>(before: usize) -> usize {
        before.next_multiple_of(LINE_BYTES / size_of::<T>()) - before
    }

    /// The index in a ring of the first cell of a row.
    #[inline(always)]
    pub fn index(&self, ring: Ring, row: [isize; 2]) -> usize {
        // Neither is near 2³¹, and a division of so few bits takes a third of the time.
        let plane =
            ((row[self.stream] - self.first - ring.shift as isize) as i32).rem_euclid(ring.planes as i32);
        (plane as usize * self.rows + (row[across(self.stream)] - self.low) as usize) * self.stride
            + self.lead
    }

    /// The rows of a ring from one on: the next of its plane, or where planes are rows, the next plane.
    #[inline(always)]
    pub fn walk(&self, ring: Ring, row: [isize; 2]) -> Walk {
        let len = ring.planes * self.rows * self.stride;
        Walk { at: self.index(ring, row), stride: self.stride, end: len, len }
    }
}

/// Where the rows of a buffer begin that lie side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Walk {
    /// The row it has come to.
    pub at: usize,
    /// Values from row to row.
    pub stride: usize,
    /// Where a ring ends, and its length.
    end: usize,
    len: usize,
}

impl Walk {
    /// Rows of an array of the domain, of so many cells each.
    #[inline(always)]
    pub fn domain(at: usize, width: usize) -> Walk {
        Walk { at, stride: width, end: usize::MAX, len: 0 }
    }

    /// The same cells further along their rows, or in a buffer that lies so far into another.
    #[inline(always)]
    pub fn shifted(self, values: usize) -> Walk {
        Walk { at: self.at + values, end: self.end.saturating_add(values), ..self }
    }

    /// Panics unless so many rows, of so many values each, lie in a buffer of this length.
    #[inline(always)]
    pub fn check(mut self, [rows, len]: [usize; 2], buffer: usize) {
        let reach = |walk: Walk, more: usize| {
            let end =
                more.checked_mul(walk.stride).and_then(|more| walk.at.checked_add(more)?.checked_add(len));
            assert!(
                end.is_some_and(|end| end <= buffer),
                "{rows} rows of {len} values at {} of {buffer}",
                walk.at
            );
        };
        if rows == 0 {
            return;
        }
        if self.end == usize::MAX {
            return reach(self, rows - 1);
        }
        // In a ring the walk comes to the same rows again, which are not many.
        for _ in 0..rows.min(self.len / self.stride.max(1) + 1) {
            reach(self, 0);
            self.step();
        }
    }

    /// Moves on to the next row.
    #[inline(always)]
    pub fn step(&mut self) {
        let next = self.at + self.stride;
        self.at = if next < self.end { next } else { next - self.len };
    }
}

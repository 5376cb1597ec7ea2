//! Where the planes between the levels of a pass lie.

use std::ops::Range;

use abide_core::Real;
use abide_core::plan::across;

use crate::lanes::LINE_BYTES;

/// Values whose first lies at the beginning of a cache line.
pub struct Storage<T> {
    /// All memory there is.
    pub values: Vec<T>,
    /// Where the first value lies in it.
    pub start: usize,
}

impl<T: Real> Storage<T> {
    /// So many values.
    pub fn new(len: usize) -> Self {
        let values = vec![T::ZERO; len + LINE_BYTES / size_of::<T>()];
        let start = values.as_ptr().align_offset(LINE_BYTES).min(LINE_BYTES / size_of::<T>());
        Storage { values, start }
    }

    /// No values, which takes no memory.
    pub fn empty() -> Self {
        Storage { values: Vec::new(), start: 0 }
    }

    /// Makes room for so many values.
    pub fn fit(&mut self, len: usize) {
        if self.values.len() < len + LINE_BYTES / size_of::<T>() {
            *self = Storage::new(len);
        }
    }
}

/// Values from row to row of a ring: whole lines, an odd number of them, so that rows do not meet in the same sets of a cache.
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
    /// Values from row to row.
    pub stride: usize,
}

impl Window {
    /// The index in a ring of the first cell of a row.
    #[inline(always)]
    pub fn index(&self, planes: usize, row: [isize; 2]) -> usize {
        // Neither is near 2³², and a division of so few bits takes a third of the time.
        let plane = (row[self.stream] - self.first) as u32 % planes as u32;
        (plane as usize * self.rows + (row[across(self.stream)] - self.low) as usize) * self.stride
    }

    /// The index of the row after the one at an index: the next of its plane, or where planes are rows, the next plane.
    #[inline(always)]
    pub fn beside(&self, planes: usize, index: usize) -> usize {
        let (next, len) = (index + self.stride, planes * self.rows * self.stride);
        if next < len { next } else { next - len }
    }
}

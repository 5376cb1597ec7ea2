//! Rings: the storage of planes between the levels of a pass.

use std::ops::Range;

use abide_core::plan::{Ring, across};
use abide_core::{Real, Result, memory};
use bytemuck::allocation::try_zeroed_vec;

/// Bytes of a cache line, and of the widest vector of any machine that we know.
pub const LINE_BYTES: usize = 64;

/// Values whose first lies at the beginning of a cache line.
pub struct Storage<T> {
    /// The whole allocation.
    pub values: Vec<T>,
    /// The index of the first value in the allocation.
    pub start: usize,
}

/// Returns `len` zeros, which take no memory before they are used; an error where the machine has too little.
pub fn zeros<T: Real>(len: usize) -> Result<Vec<T>> {
    let change = "choose a smaller --depth or --size, or fewer threads (RAYON_NUM_THREADS)";
    try_zeroed_vec(len).map_err(|()| memory::refused::<T>(len, "the planes and rows at work", change))
}

impl<T: Real> Storage<T> {
    /// Allocates `len` values; an error where the machine has no memory for them.
    pub fn new(len: usize) -> Result<Self> {
        let values: Vec<T> = zeros(len.saturating_add(LINE_BYTES / size_of::<T>()))?;
        let start = values.as_ptr().align_offset(LINE_BYTES).min(LINE_BYTES / size_of::<T>());
        Ok(Storage { values, start })
    }

    /// Returns a storage without values, which takes no memory.
    pub fn empty() -> Self {
        Storage { values: Vec::new(), start: 0 }
    }

    /// Returns the first `len` values.
    #[inline(always)]
    pub fn first(&self, len: usize) -> &[T] {
        &self.values[self.start..self.start + len]
    }

    /// Returns the first `len` values, to be written.
    #[inline(always)]
    pub fn first_mut(&mut self, len: usize) -> &mut [T] {
        &mut self.values[self.start..self.start + len]
    }

    /// Returns all values from the first on.
    pub fn all_mut(&mut self) -> &mut [T] {
        &mut self.values[self.start..]
    }

    /// Makes room for `len` values.
    pub fn fit(&mut self, len: usize) -> Result<()> {
        if self.values.len() < len.saturating_add(LINE_BYTES / size_of::<T>()) {
            // The old values go first, so that both are never there at once.
            *self = Storage::empty();
            *self = Storage::new(len)?;
        }
        Ok(())
    }
}

/// Returns the values from row to row of a ring: whole cache lines, an odd number of them, so that rows do
/// not meet in the same sets of a cache.
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
    /// Returns the values to put before a row's first cell where `before` more precede the first computed
    /// one.
    #[inline(always)]
    pub fn lead<T>(before: usize) -> usize {
        before.next_multiple_of(LINE_BYTES / size_of::<T>()) - before
    }

    /// Returns the index in a ring of the first cell of a row.
    #[inline(always)]
    pub fn index(&self, ring: Ring, row: [isize; 2]) -> usize {
        // Both numbers are far from 2³¹, and a division of so few bits takes a third of the time.
        let plane =
            ((row[self.stream] - self.first - ring.shift as isize) as i32).rem_euclid(ring.planes as i32);
        (plane as usize * self.rows + (row[across(self.stream)] - self.low) as usize) * self.stride
            + self.lead
    }

    /// Returns the rows of a ring from one on: the next of its plane, or where planes are rows, the next
    /// plane.
    #[inline(always)]
    pub fn walk(&self, ring: Ring, row: [isize; 2]) -> Walk {
        let len = ring.planes * self.rows * self.stride;
        Walk { at: self.index(ring, row), stride: self.stride, end: len, len }
    }
}

/// The beginnings of rows that lie side by side in a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Walk {
    /// The beginning of the row that the walk has come to.
    pub at: usize,
    /// Values from row to row.
    pub stride: usize,
    /// The end of the ring, and its length.
    end: usize,
    len: usize,
}

impl Walk {
    /// Returns a walk through rows of an array of the domain, of `width` cells each.
    #[inline(always)]
    pub fn domain(at: usize, width: usize) -> Walk {
        Walk { at, stride: width, end: usize::MAX, len: 0 }
    }

    /// Returns the walk moved on by `values`: further along its rows, or for a buffer that begins so far into
    /// another.
    #[inline(always)]
    pub fn shifted(self, values: usize) -> Walk {
        Walk { at: self.at + values, end: self.end.saturating_add(values), ..self }
    }

    /// Panics unless `rows` rows, of `len` values each, lie in a buffer of this length.
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
        // In a ring the walk comes back to the same rows, which are not many.
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

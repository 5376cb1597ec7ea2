//! One row of one stage, in chunks, each carried out by the bytecode.
//!
//! A tap is a slice of a row of old values, shifted. Only where a chunk's tap reaches beyond an end of its
//! row is it gathered into scratch first. A row that itself lies beyond the domain is another row, or a row
//! of constants. The caller decides where rows lie and where new values go: the sweep of a stage reads and
//! writes arrays of the domain, a tile of several steps mostly rings of its own.

use std::ops::Range;

use abide_core::domain::Source as Found;
use abide_core::{Real, Result};

use crate::bytecode::{Bytecode, InnerPart, Steps, TapAt};
use crate::region::Region;
use crate::rings::{Walk, zeros};
use crate::steps::{Chunk, NewValues, StepScratch, Taps};
use crate::sum::Ahead;

/// Lanes of the widest vector.
const WIDEST: usize = 16;

/// The place where rows lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buffer {
    /// In a field of the whole domain; a row holds the cells 0..width.
    Field(usize),
    /// In a storage of a tile; a row holds the cells of the tile's window.
    Ring(usize),
}

/// The place of a row that taps read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TapRow {
    /// In a buffer, beginning where the walk has come to.
    At(Buffer, Walk),
    /// Beyond the domain: a row of the constant of this axis and side.
    Constant([usize; 2]),
}

/// The buffers that rows are read from.
///
/// # Safety
///
/// A buffer outlives the borrow, and nobody writes the cells that taps of a computed row read.
pub unsafe trait Memory<T> {
    /// Returns cells of a buffer.
    fn cells(&self, buffer: Buffer, range: Range<usize>) -> &[T];

    /// Returns all of a buffer.
    fn all(&self, buffer: Buffer) -> *const [T];
}

/// The buffers that rows' new values are written to.
///
/// # Safety
///
/// A buffer outlives the borrow, and nobody else reads or writes the cells of a computed row in it.
pub unsafe trait Sink<T>: NewValues<T> {
    /// Returns all of the buffer that an output's new values go to, and where the first computed cells of
    /// rows lie in it.
    fn all(&mut self, output: usize) -> (*mut [T], Walk);

    /// Moves on by `rows` rows, which are done, to those beside them.
    fn done(&mut self, rows: usize);
}

/// A row to be computed.
pub struct Row<'a, M> {
    /// The domain.
    pub region: &'a Region,
    /// The formula.
    pub bytecode: &'a Bytecode,
    /// The buffers in which the taps' rows lie.
    pub memory: &'a M,
    /// Cells of a chunk.
    pub chunk: usize,
    /// The cells along the row that rows in rings hold. Where the window goes beyond the domain, the row
    /// continues at the other side.
    pub window: Range<isize>,
    /// Rows that are prefetched.
    pub ahead: Ahead,
    /// The cells along the row that make no choice of the formula.
    pub inner: InnerPart,
}

/// The scratch of whichever thread computes rows.
pub struct Scratch<T> {
    step_scratch: StepScratch<T>,
    gathered: Vec<Box<[T]>>,
    constants: [[Box<[T]>; 2]; 2],
    /// The values of the bytecode's scalars.
    pub scalars: Vec<T>,
    /// The places of the bytecode's rows.
    pub rows: Vec<TapRow>,
}

impl<T: Real> Scratch<T> {
    /// Allocates scratch for any of the bytecodes.
    pub fn new(region: &Region, bytecodes: &[&Bytecode], chunk: usize) -> Result<Self> {
        let most =
            |of: fn(&Bytecode) -> usize| bytecodes.iter().map(|&bytecode| of(bytecode)).max().unwrap_or(0);
        let mut constants: [[Box<[T]>; 2]; 2] = Default::default();
        for (axis, side) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            if let Some(value) = region.constant(axis, side) {
                let mut lanes = zeros(chunk)?;
                lanes.fill(T::from_f64(value));
                constants[axis][side] = lanes.into_boxed_slice();
            }
        }
        let gathered = if region.reaches_out() { most(|bytecode| bytecode.taps.len()) } else { 0 };
        Ok(Scratch {
            step_scratch: StepScratch::new(bytecodes, chunk)?,
            gathered: (0..gathered).map(|_| Ok(zeros(chunk)?.into_boxed_slice())).collect::<Result<_>>()?,
            constants,
            scalars: Vec::with_capacity(most(|bytecode| bytecode.uniform.nodes.len())),
            rows: Vec::with_capacity(most(|bytecode| bytecode.rows.len())),
        })
    }
}

impl<M> Row<'_, M> {
    /// Returns the cells along the row that the rows of a buffer hold.
    #[inline(always)]
    pub fn held(&self, buffer: Buffer) -> Range<isize> {
        match buffer {
            Buffer::Field(_) => 0..self.region.width() as isize,
            Buffer::Ring(_) => self.window.clone(),
        }
    }

    /// Returns the cells of which no tap reaches beyond an end of its row; `None` where a row is a constant.
    #[inline(always)]
    pub fn safe(&self, rows: &[TapRow]) -> Option<Range<isize>> {
        let mut held = isize::MIN..isize::MAX;
        for row in rows {
            let TapRow::At(buffer, _) = *row else { return None };
            let row = self.held(buffer);
            held = held.start.max(row.start)..held.end.min(row.end);
        }
        let [low, high] = self.bytecode.reach[2];
        Some(held.start.saturating_sub(low)..held.end.saturating_sub(high))
    }

    /// Returns the length of the next chunk where `cells` cells are left. Chunks of a row are of about one
    /// length because a short one costs nearly as much as a long one.
    #[inline(always)]
    fn even(&self, cells: usize) -> usize {
        if cells <= self.chunk {
            return cells;
        }
        cells.div_ceil(cells.div_ceil(self.chunk)).next_multiple_of(WIDEST).min(self.chunk)
    }

    /// Computes the cells `cells` of the row whose rows and scalars are in `scratch`; `safe` comes from
    /// [`Row::safe`].
    #[inline(always)]
    pub fn compute<T: Real>(
        &self,
        scratch: &mut Scratch<T>,
        sink: &mut impl Sink<T>,
        cells: Range<isize>,
        safe: &Option<Range<isize>>,
    ) where
        M: Memory<T>,
    {
        let width = self.region.width() as isize;
        let mut start = cells.start;
        while start < cells.end {
            // A chunk ends where the row goes on at the domain's other side, because coordinates jump there.
            let seam =
                if (0..width).contains(&start) { width } else { (start.div_euclid(width) + 1) * width };
            let mut end = cells.end.min(seam);
            // So does one where cells begin or end to make choices.
            let (inner, until) = self.inner.at(start - (seam - width));
            end = end.min(until.saturating_add(seam - width));
            let steps = self.bytecode.steps_of(inner);
            // Where scratch holds nothing, a chunk may be as long as nothing in it is gathered.
            match safe {
                Some(safe) if matches!(steps, Steps::Sum(_)) && start >= safe.start && start < safe.end => {
                    end = end.min(safe.end)
                }
                Some(safe) if start < safe.start => {
                    end = end.min(safe.start).min(start + self.chunk as isize)
                }
                _ => end = start + self.even((end - start) as usize) as isize,
            }
            let is_safe = safe.as_ref().is_some_and(|safe| safe.start <= start && end <= safe.end);
            if !is_safe {
                self.gather(scratch, &(start..end));
            }
            let to = (start - cells.start) as usize;
            self.chunk(scratch, sink, start..end, to, (is_safe, inner));
            start = end;
        }
    }

    /// Computes one chunk, whose new values go to `to` in the sink. A chunk that is safe has nothing
    /// gathered; `inner` is the number of steps for cells that make no choice.
    #[inline(always)]
    fn chunk<T: Real>(
        &self,
        scratch: &mut Scratch<T>,
        sink: &mut impl Sink<T>,
        cells: Range<isize>,
        to: usize,
        (safe, inner): (bool, Option<usize>),
    ) where
        M: Memory<T>,
    {
        let Scratch { step_scratch, gathered, constants, scalars, rows } = scratch;
        let first = cells.start.rem_euclid(self.region.width() as isize);
        let (len, ahead) = (cells.len(), self.ahead);
        let taps = ChunkTaps { row: self, rows, constants, gathered, cells, safe };
        let chunk = Chunk { bytecode: self.bytecode, first, to: to..to + len, ahead, inner };
        chunk.compute(step_scratch, scalars, &taps, sink);
    }

    /// Returns the index in its buffer of the first cell that a tap of a chunk reads, if the row holds all.
    #[inline(always)]
    fn within(&self, buffer: Buffer, start: usize, cells: &Range<isize>, shift: isize) -> Option<usize> {
        let held = self.held(buffer);
        let first = cells.start + shift;
        (first >= held.start && cells.end + shift <= held.end).then(|| start + (first - held.start) as usize)
    }

    /// Gathers the taps of a chunk that reach beyond an end of their row.
    #[inline(always)]
    fn gather<T: Real>(&self, scratch: &mut Scratch<T>, cells: &Range<isize>)
    where
        M: Memory<T>,
    {
        if scratch.gathered.is_empty() {
            return;
        }
        for (number, tap) in self.bytecode.taps.iter().enumerate() {
            let TapRow::At(buffer, Walk { at: start, .. }) = scratch.rows[tap.row] else { continue };
            if self.within(buffer, start, cells, tap.shift).is_some() {
                continue;
            }
            let held = self.held(buffer);
            let row = self.memory.cells(buffer, start..start + held.len());
            let to = &mut scratch.gathered[number][..cells.len()];
            let first = cells.start + tap.shift;
            // In chunk coordinates, the cells that the row holds are copied at once.
            let low = (held.start - first).clamp(0, to.len() as isize) as usize;
            let high = (held.end - first).clamp(low as isize, to.len() as isize) as usize;
            if low < high {
                let from = (first + low as isize - held.start) as usize;
                to[low..high].copy_from_slice(&row[from..from + high - low]);
            }
            for i in (0..low).chain(high..to.len()) {
                to[i] = match self.region.along_row(first + i as isize) {
                    Found::Cell(x) => row[(x as isize - held.start) as usize],
                    Found::Value(value) => T::from_f64(value),
                };
            }
        }
    }
}

/// The taps of a chunk.
struct ChunkTaps<'a, 'b, T, M> {
    row: &'a Row<'b, M>,
    rows: &'a [TapRow],
    constants: &'a [[Box<[T]>; 2]; 2],
    gathered: &'a [Box<[T]>],
    cells: Range<isize>,
    safe: bool,
}

impl<T: Real, M: Memory<T>> Taps<T> for ChunkTaps<'_, '_, T, M> {
    #[inline(always)]
    fn tap(&self, number: usize) -> &[T] {
        let ChunkTaps { row, cells, .. } = self;
        let (TapAt { row: line, shift }, len) = (row.bytecode.taps[number], cells.len());
        match self.rows[line] {
            TapRow::Constant([axis, side]) => &self.constants[axis][side][..len],
            TapRow::At(buffer, walk) if self.safe => {
                let at = walk.at + (cells.start + shift - row.held(buffer).start) as usize;
                row.memory.cells(buffer, at..at + len)
            }
            TapRow::At(buffer, walk) => match row.within(buffer, walk.at, cells, shift) {
                Some(at) => row.memory.cells(buffer, at..at + len),
                None => &self.gathered[number][..len],
            },
        }
    }
}

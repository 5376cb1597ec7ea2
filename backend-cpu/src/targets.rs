//! A level's part in a tile, and the places where its rows go.

use std::ops::Range;

use abide_core::Real;
use abide_core::plan::Level;

use crate::bytecode::Bytecode;
use crate::chunk::Sink;
use crate::prefetch::Prefetch;
use crate::rings::{Walk, Window};
use crate::shared::Shared;
use crate::steps::NewValues;
use crate::stretch::Stretch;
use crate::tile::{Pass, Tile};

/// A level whose turn it is in a tile.
pub struct Turn<'a, T> {
    /// The tile, and the window that its rings hold.
    pub tile: &'a Tile,
    pub window: &'a Window,
    /// The rings' storages.
    pub storages: &'a [Shared<'a, T>],
    /// The level's number, the level, and its stage's formula.
    pub number: usize,
    pub level: &'a Level,
    pub bytecode: &'a Bytecode,
}

/// A level's part in a tile.
pub struct Part<T> {
    /// The cells that the level computes.
    pub span: [Range<isize>; 3],
    /// The cells along a row for which the level asks memory.
    pub share: Range<usize>,
    /// The cells at the ends of its rows that its readers need and that are never computed.
    pub kept: [Range<usize>; 2],
    /// Whether rows in rings are to be completed, or copied to the domain.
    pub keeps: bool,
    /// The rows that the level goes on with.
    pub stretch: Option<Stretch<T>>,
}

/// The places where the outputs of rows go that lie side by side.
pub struct Targets<'a, T> {
    /// The pass, and the level that computes the rows.
    pub pass: &'a Pass<'a, T>,
    pub turn: &'a Turn<'a, T>,
    /// The level's part in the tile.
    pub part: &'a Part<T>,
    /// The prefetches of which a share is asked for with each row.
    pub prefetches: &'a [Prefetch],
    /// The place where each output's rows begin, in its ring or in the domain.
    pub begin: &'a mut [Walk],
    /// The row, and where it begins in the domain.
    pub row: [isize; 2],
    pub domain: usize,
}

impl<T: Real> NewValues<T> for Targets<'_, T> {
    #[inline(always)]
    fn cells(&mut self, output: usize, range: Range<usize>) -> &mut [T] {
        let begin = self.begin[output].at;
        let range = begin + range.start..begin + range.end;
        // SAFETY: a level without a ring writes cells of its tile, which by the contract of `advance` are its
        // own. The rings are this thread's, and no level writes a plane that it reads for the row at work.
        unsafe { self.buffer(output).write(range) }
    }
}

// SAFETY: as above.
unsafe impl<T: Real> Sink<T> for Targets<'_, T> {
    #[inline(always)]
    fn all(&mut self, output: usize) -> (*mut [T], Walk) {
        (self.buffer(output).all(), self.begin[output])
    }

    #[inline(always)]
    fn done(&mut self, rows: usize) {
        for prefetch in self.prefetches {
            self.pass.ask(prefetch, self.row, rows, self.turn.number, &self.part.share);
        }
        for output in 0..self.begin.len() {
            if self.part.keeps {
                self.keep(output, rows);
            }
            for _ in 0..rows {
                self.begin[output].step();
            }
        }
        self.row[1] += rows as isize;
        self.domain += rows * self.pass.region.width();
    }
}

impl<'a, T: Real> Targets<'a, T> {
    /// Returns the cells to which an output goes.
    #[inline(always)]
    fn buffer(&self, output: usize) -> &Shared<'a, T> {
        let output = self.turn.level.outputs[output];
        match output.ring {
            Some(ring) => &self.turn.storages[self.pass.levels.rings[ring].storage],
            None => &self.pass.new[output.field],
        }
    }

    /// Completes rows in a ring with the cells that are never computed, and copies the values that the field
    /// holds after the pass.
    #[inline(always)]
    fn keep(&mut self, output: usize, rows: usize) {
        if self.turn.level.outputs[output].ring.is_none() {
            return;
        }
        let ring = *self.buffer(output);
        let (Part { span, kept, .. }, Tile { cells: own }) = (self.part, self.turn.tile);
        let (cells, width, output, mut begin) =
            (&span[2], self.pass.region.width(), self.turn.level.outputs[output], self.begin[output]);
        let (now, new) = (&self.pass.now[output.field], &self.pass.new[output.field]);
        let mut domain = self.domain;
        for row in self.row[1]..self.row[1] + rows as isize {
            for kept in kept {
                for x in kept.clone() {
                    let to = begin.at as isize + x as isize - cells.start;
                    let to = to as usize;
                    // SAFETY: nobody writes cells that are not computed, and the ring is this thread's.
                    unsafe { ring.write(to..to + 1)[0] = now.read(domain + x..domain + x + 1)[0] };
                }
            }
            let is_own =
                |axis: usize, at: isize| own[axis].start as isize <= at && at < own[axis].end as isize;
            if output.last && is_own(0, self.row[0]) && is_own(1, row) {
                let low = (own[2].start as isize).max(cells.start);
                let high = (own[2].end as isize).min(cells.end);
                let from = begin.at + (low - cells.start) as usize;
                let to = domain + low as usize;
                let len = (high - low).max(0) as usize;
                // SAFETY: the cells are the tile's, which by the contract of `advance` are its own, and the
                // ring this thread's.
                unsafe { new.write(to..to + len).copy_from_slice(ring.read(from..from + len)) };
            }
            begin.step();
            domain += width;
        }
    }
}

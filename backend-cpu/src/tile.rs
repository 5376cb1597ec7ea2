//! Tiles of a pass, and the cells that levels compute or keep for a tile.
//!
//! Levels meet the domain's edge as the definition does; under a periodic boundary a tile goes on beyond the
//! edge instead and computes the other side's cells again, unless it has the whole axis to itself.

use std::ops::Range;

use abide_core::Real;
use abide_core::plan::{Level, Levels, across};

use crate::bytecode::Bytecode;
use crate::region::Region;
use crate::rings::{Window, padded};
use crate::shared::Shared;

/// Cells of the domain that are advanced as one unit; only this tile writes the values computed for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tile {
    /// The cells along the three axes, slowest first.
    pub cells: [Range<usize>; 3],
}

/// The parameters' values, which may differ from stage to stage of the steps.
#[derive(Clone, Copy)]
pub struct Parameters<'a, T> {
    values: &'a [T],
    /// The values of a stage, and the stages of a step; none where all read the same.
    of_stages: Option<[usize; 2]>,
}

impl<'a, T> Parameters<'a, T> {
    /// Returns parameters that stay.
    pub fn same(values: &'a [T]) -> Self {
        Parameters { values, of_stages: None }
    }

    /// Returns `count` parameters that differ in the `stages` stages of each step, whose values stand behind each other.
    pub fn each(values: &'a [T], count: usize, stages: usize) -> Self {
        Parameters { values, of_stages: Some([count, stages]) }
    }

    /// Returns the values that a stage of a step reads.
    #[inline(always)]
    pub fn of(&self, step: usize, stage: usize) -> &'a [T] {
        match self.of_stages {
            None => self.values,
            Some([count, stages]) => &self.values[(step * stages + stage) * count..][..count],
        }
    }

    /// Returns the values from a step on.
    pub fn from(self, step: usize) -> Self {
        match self.of_stages {
            None => self,
            Some([count, stages]) => Parameters { values: &self.values[step * stages * count..], ..self },
        }
    }
}

/// The data that all tiles of a pass share.
pub struct Pass<'a, T> {
    /// The computed cells of the domain.
    pub region: &'a Region,
    /// The pipeline.
    pub levels: &'a Levels,
    /// Each stage's formula.
    pub bytecodes: &'a [Bytecode],
    /// The parameters' values.
    pub parameters: Parameters<'a, T>,
    /// Cells of a chunk.
    pub chunk: usize,
    /// Axes along which there is more than one tile; the streamed axis always counts.
    pub divided: [bool; 3],
    /// Each field before the pass.
    pub now: &'a [Shared<'a, T>],
    /// Each written field after the pass.
    pub new: &'a [Shared<'a, T>],
}

impl<T: Real> Pass<'_, T> {
    /// Returns whether tiles go on beyond the domain's edge along an axis.
    #[inline(always)]
    pub fn wraps(&self, axis: usize) -> bool {
        self.region.is_periodic(axis) && (self.divided[axis] || axis == self.levels.stream)
    }

    /// Returns the cells along an axis that a level computes for a tile.
    #[inline(always)]
    pub fn range(&self, tile: &Tile, level: &Level, axis: usize) -> Range<isize> {
        let beyond = level.beyond[axis] as isize;
        let (low, high) = (tile.cells[axis].start as isize - beyond, tile.cells[axis].end as isize + beyond);
        if self.wraps(axis) {
            return low..high;
        }
        let computed = self.region.computed(axis);
        low.max(computed.start as isize)..high.min(computed.end as isize)
    }

    /// Returns the window of a tile: all that its levels compute or keep.
    #[inline(always)]
    pub fn window(&self, tile: &Tile) -> Window {
        let beyond = self.levels.beyond();
        let range = |axis: usize| {
            let (low, high) = (tile.cells[axis].start as isize, tile.cells[axis].end as isize);
            let (low, high) = (low - beyond[axis] as isize, high + beyond[axis] as isize);
            if self.wraps(axis) { low..high } else { low.max(0)..high.min(self.region.extent(axis) as isize) }
        };
        let (rows, cells) = (range(across(self.levels.stream)), range(2));
        let computed = (self.region.computed(2).start as isize - cells.start).max(0) as usize;
        let lead = Window::lead::<T>(computed);
        let (first, stride) = (range(self.levels.stream).start, padded::<T>(lead + cells.len()));
        Window { stream: self.levels.stream, first, low: rows.start, rows: rows.len(), cells, lead, stride }
    }

    /// Returns the cells at the ends of rows that a level's readers need and that are never computed.
    #[inline(always)]
    pub fn kept(&self, tile: &Tile, level: &Level) -> [Range<usize>; 2] {
        let (beyond, computed) = (level.beyond[2], self.region.computed(2));
        let low = tile.cells[2].start.saturating_sub(beyond)..computed.start;
        let high = computed.end..(tile.cells[2].end + beyond).min(self.region.width());
        [low, high]
    }
}

//! The exchange of cells among a window's threads: which cells of its block a thread puts into workgroup
//! memory, and at which places.
//!
//! A cell's place is its rank among the cells that a block gives, times the threads of the window, plus the
//! thread's number. So neighbouring threads touch neighbouring words, and a neighbour's cell is found at a
//! constant distance.

use std::collections::HashSet;

use crate::domain::Boundary;
use crate::expr::Tap;
use crate::plan::staged_fields;
use crate::program::{Problem, Program};

/// The cells that a thread's block gives to others, field by field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// Cells of a thread's block along the three axes, slowest first.
    pub cells: [usize; 3],
    /// Threads of a window along the three axes, slowest first.
    pub threads: [usize; 3],
    /// For each field, the cells of it that are given; `None` if every thread needs its own cells alone.
    pub fields: Vec<Option<Given>>,
    /// Slots per thread, summed over all fields and copies.
    pub slots: usize,
    /// Words before the first thread's slots and behind the last thread's: a tap beyond the window lands in
    /// them.
    pub pad: usize,
}

/// A field's slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// For each cell of a block, its rank among the cells that are given; `None` for a cell that is not.
    pub ranks: Vec<Option<usize>>,
    /// The number of cells that are given.
    pub count: usize,
    /// Copies of each slot: 2 where a stage reads and writes the field, so that new values do not overwrite
    /// those that other threads still read, else 1.
    pub copies: usize,
    /// The field's first slot.
    pub first: usize,
}

/// The place where a tap finds its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// In the thread's own block: the cell's number there.
    Own(usize),
    /// In another thread's slot: the cell's rank, and that thread's number minus this thread's.
    Other(usize, isize),
}

impl Exchange {
    /// Collects the cells that a simplified program's stages need of each other's blocks. With `all`, ghost
    /// cells are refreshed from slots; with `double`, a field may have a second copy to write to.
    pub fn of(
        program: &Program,
        threads: [usize; 3],
        cells: [usize; 3],
        all: bool,
        double: bool,
    ) -> Exchange {
        let taps = program.stages().iter().flat_map(|stage| stage.dag.taps());
        let copies = |field: usize| {
            let rewritten = program
                .stages()
                .iter()
                .any(|s| s.writes.contains(&field) && staged_fields(s).contains(&field));
            if rewritten && double { 2 } else { 1 }
        };
        Exchange::by_taps(taps, program.fields().len(), threads, cells, all, copies)
    }

    /// Collects the cells that taps need of each other's blocks if all are read at the same time.
    pub fn at_once(
        taps: impl Iterator<Item = Tap>,
        fields: usize,
        threads: [usize; 3],
        cells: [usize; 3],
    ) -> Exchange {
        Exchange::by_taps(taps, fields, threads, cells, false, |_| 1)
    }

    fn by_taps(
        taps: impl Iterator<Item = Tap>,
        fields: usize,
        threads: [usize; 3],
        cells: [usize; 3],
        all: bool,
        copies: impl Fn(usize) -> usize,
    ) -> Exchange {
        let mut exchange = Exchange { cells, threads, fields: vec![None; fields], slots: 0, pad: 0 };
        let volume = cells.iter().product::<usize>();
        let mut given = vec![vec![false; volume]; fields];
        for tap in taps {
            for cell in 0..volume {
                let (place, thread) = exchange.reach(cell, tap.offset);
                if thread != 0 || (all && tap.offset != [0; 3]) {
                    given[tap.field as usize][place] = true;
                    exchange.pad = exchange.pad.max(thread.unsigned_abs());
                }
            }
        }
        for (field, mut given) in given.into_iter().enumerate().filter(|(_, given)| given.contains(&true)) {
            if all {
                given.fill(true);
            }
            let mut count = 0;
            let ranks = given.iter().map(|&is_given| {
                count += usize::from(is_given);
                is_given.then(|| count - 1)
            });
            let (ranks, copies) = (ranks.collect(), copies(field));
            exchange.fields[field] = Some(Given { ranks, count, copies, first: exchange.slots });
            exchange.slots += count * copies;
        }
        exchange
    }

    /// Returns where the tap of a cell of the block is found.
    pub fn source(&self, cell: usize, tap: Tap) -> Source {
        let (place, thread) = self.reach(cell, tap.offset);
        let rank = self.fields[tap.field as usize].as_ref().and_then(|given| given.ranks[place]);
        match rank {
            Some(rank) if thread != 0 => Source::Other(rank, thread),
            _ => Source::Own(place),
        }
    }

    /// Returns the cell at an offset from a cell of the block: its number in the block that holds it, and the
    /// number of that block's thread minus this thread's.
    fn reach(&self, cell: usize, offset: [i32; 3]) -> (usize, isize) {
        let [_, rows, columns] = self.cells;
        let own = [cell / (rows * columns), cell / columns % rows, cell % columns];
        let (mut place, mut thread) = (0, 0);
        for axis in 0..3 {
            let (side, at) = (self.cells[axis] as isize, own[axis] as isize + offset[axis] as isize);
            place = place * self.cells[axis] + at.rem_euclid(side) as usize;
            thread = thread * self.threads[axis] as isize + at.div_euclid(side);
        }
        (place, thread)
    }

    /// Returns the words of workgroup memory of a window.
    pub fn words(&self) -> usize {
        if self.slots == 0 { 0 } else { self.slots * self.threads.iter().product::<usize>() + 2 * self.pad }
    }

    /// Returns the slots that a thread reads and writes in a step.
    pub fn accesses(&self, program: &Program) -> usize {
        let stage = |stage: &crate::program::Stage| {
            let written =
                stage.writes.iter().filter_map(|&field| self.fields[field].as_ref()).map(|given| given.count);
            self.reads(stage.dag.taps()) + written.sum::<usize>()
        };
        program.stages().iter().map(stage).sum()
    }

    /// Returns the number of other threads' slots that a thread reads for all taps of its block.
    pub fn reads(&self, taps: impl Iterator<Item = Tap>) -> usize {
        let volume = self.cells.iter().product::<usize>();
        let sources = taps.flat_map(|tap| (0..volume).map(move |cell| (tap, cell)));
        let others = sources.filter_map(|(tap, cell)| match self.source(cell, tap) {
            Source::Other(rank, thread) => Some((tap.field, rank, thread)),
            Source::Own(_) => None,
        });
        others.collect::<HashSet<_>>().len()
    }
}

/// Checks whether ghost cells along an axis are refreshed in every step from the cells that they show. That
/// is so for ghost cells that show cells of this side, and at a periodic side if a window holds the axis
/// whole.
pub fn refreshes(problem: &Problem, axis: usize, whole: bool, radius: usize) -> bool {
    let boundaries = &problem.boundaries;
    let is_image = whole && boundaries.0[axis][0] == Boundary::Periodic;
    radius > 0 && (is_image || boundaries.shows_a_side(axis).is_some())
}

//! The problem of a slab, and its part of the fields.

use std::ops::Range;
use std::sync::Arc;

use super::{Slab, Slabs, reach};
use crate::domain::{Boundary, Shape};
use crate::error::{Error, Result};
use crate::program::{Part, Problem};
use crate::real::{Array, DType};

impl Slabs {
    /// Returns where a rank's slab lies in the whole domain.
    pub fn place(&self, rank: usize) -> Part {
        Part { axis: self.axis, first: self.slabs[rank].first(), whole: self.whole, is_ring: self.is_ring }
    }

    /// Returns the problem of a rank's slab. It has neither a record nor marks: those follow the whole domain.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] where nothing is left of a step of the program's cycle, because it makes temporaries
    /// at points alone and none of them lies in the slab; those of [`Problem::check`].
    pub fn problem(&self, rank: usize, problem: &Problem) -> Result<Problem> {
        if self.slabs.len() == 1 {
            return Ok(Problem { record: None, marks: None, ..problem.clone() });
        }
        let slab = &self.slabs[rank];
        let mut extents = problem.shape.padded();
        extents[self.axis] = slab.cells();
        let shape = Shape::new(&extents[self.axis..])?;
        let program = problem.program.placed(&self.place(rank), &shape, &problem.shape);
        if program.steps().iter().any(|step| step.is_empty()) {
            return Err(Error::unsupported(
                format!("{} on {} devices", program.name(), self.slabs.len()),
                format!(
                    "a step of its cycle makes temporaries at points alone, none of them among the planes of device {rank}"
                ),
                "run it on one device, or give the step a stage everywhere",
            ));
        }
        let mut own =
            Problem { program: Arc::new(program), shape, record: None, marks: None, ..problem.clone() };
        for side in (0..2).filter(|&side| self.is_inner(rank, side)) {
            own.boundaries.0[self.axis][side] = self.inner(problem);
            for sides in &mut own.sides {
                sides.0[self.axis][side] = None;
            }
        }
        self.confine(rank, problem, &mut own);
        own.check()?;
        Ok(own)
    }

    /// Returns what inner sides have. Ghost cells of 0 are wrong near the side alone, and as far away as steps read. Planes that
    /// stay as they are make a slab between fixed sides a smaller domain of the same kind, which has the kernels of the whole one;
    /// but as many as the program's radius are wrong at once, whatever a stage reads: so only where every step reads as far.
    fn inner(&self, problem: &Problem) -> Boundary {
        let stays = |field| problem.boundaries_of(field).0[self.axis] == [Boundary::Fixed; 2];
        let program = &problem.program;
        let farthest = program.radius()[self.axis] * self.depth as usize;
        let reads_as_far = reach(program, self.axis, self.depth).into_iter().max() == Some(farthest);
        let is_lattice = problem.is_plain() && program.stages().len() == 1 && reads_as_far;
        let stay = is_lattice && (0..problem.program.fields().len()).all(stays);
        if stay { Boundary::Fixed } else { Boundary::Open }
    }

    /// Returns whether a rank has a neighbour at a side.
    pub fn is_inner(&self, rank: usize, side: usize) -> bool {
        self.neighbour(rank, side).is_some()
    }

    /// Returns the rank beside a rank: below for side 0, above for side 1.
    pub fn neighbour(&self, rank: usize, side: usize) -> Option<usize> {
        let ranks = self.slabs.len();
        match (side, self.is_ring) {
            (0, false) => rank.checked_sub(1),
            (_, false) => Some(rank + 1).filter(|&next| next < ranks),
            (0, true) => Some((rank + ranks - 1) % ranks),
            (_, true) => Some((rank + 1) % ranks),
        }
    }

    /// Returns the slab's part of the values of a field of the whole domain, which has `planes` planes there and `held`
    /// in the slab.
    pub fn part(&self, rank: usize, values: &Array, planes: usize, held: usize) -> Result<Array> {
        let plane = values.len() / planes.max(1);
        self.gathered(rank, values.dtype(), plane, planes, held, |from| {
            values.part(from.start * plane..from.end * plane)
        })
    }

    /// Returns a field's values in a slab as [`Slabs::part`] does, a plane of which has so many, where `read` returns planes of
    /// the whole domain.
    ///
    /// # Errors
    ///
    /// Those of reading, and [`Error::Limit`] where the machine has no memory for them.
    pub fn gathered(
        &self,
        rank: usize,
        dtype: DType,
        plane: usize,
        planes: usize,
        held: usize,
        mut read: impl FnMut(Range<usize>) -> Result<Array>,
    ) -> Result<Array> {
        let pieces = self.pieces(rank, 0..planes, planes, held);
        // In the order of the slab's planes.
        let mut pieces: Vec<_> = pieces.into_iter().map(|(from, at)| (at, from)).collect();
        pieces.sort_unstable_by_key(|(at, _)| *at);
        if let [(0, from)] = &pieces[..]
            && from.len() == held
        {
            return read(from.clone());
        }
        Array::join(dtype, held * plane, pieces.into_iter().map(|(_, from)| read(from)))
    }

    /// Returns which of some planes of the whole domain's field a slab holds, own ones and in halos, and the slab's index of
    /// the first of each run of them.
    pub fn pieces(
        &self,
        rank: usize,
        asked: Range<usize>,
        planes: usize,
        held: usize,
    ) -> Vec<(Range<usize>, usize)> {
        let first = self.slabs[rank].first();
        let mut pieces: Vec<(Range<usize>, usize)> = Vec::new();
        for at in 0..held {
            let index = first + at as isize;
            let index = if self.is_ring { index.rem_euclid(planes.max(1) as isize) } else { index } as usize;
            if !asked.contains(&index) {
                continue;
            }
            match pieces.last_mut() {
                Some((from, begin)) if from.end == index && *begin + from.len() == at => from.end += 1,
                _ => pieces.push((index..index + 1, at)),
            }
        }
        pieces
    }

    /// Returns the index in the slab of the first of a rank's own planes.
    pub fn begin(&self, rank: usize) -> usize {
        let Slab { halo: [low, _], .. } = self.slabs[rank];
        low
    }
}

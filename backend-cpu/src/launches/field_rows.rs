//! The rows that taps read: where they lie in buffers, and what boundaries put in their place.

use std::ops::Range;

use abide_core::domain::Source;
use abide_core::program::{Boxes, Buffer, Levels};
use abide_core::{Boundaries, Problem, Real};

use crate::shared::Shared;

/// Where the values of fields and temporaries lie.
pub struct FieldRows {
    /// The problem.
    pub problem: Problem,
    /// The values of each field, and then of each temporary.
    kinds: Vec<Buffer>,
    /// The boundaries of each field; temporaries have none.
    boundaries: Vec<Boundaries>,
    /// Whether ghost cells hold values of scalars.
    shows_scalars: bool,
    /// Of each stage, how its indices become those of each field; none where all fields are on one grid.
    levels: Vec<Vec<Levels>>,
}

/// A row that taps read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Line<T> {
    /// In the buffer of a field or temporary, with this name's number.
    At {
        /// The number of the field or temporary.
        name: usize,
        /// The position in its buffer of the row's first value.
        start: usize,
        /// Whether its values count with the opposite sign.
        negated: bool,
    },
    /// In the buffer of a field of another grid, with each of its values in several places or some of them alone.
    Apart {
        /// The number of the field.
        name: usize,
        /// The position in its buffer of the row's first value.
        start: usize,
        /// Whether its values count with the opposite sign.
        negated: bool,
        /// How an index along the row becomes one of the field's grid.
        levels: Levels,
    },
    /// Beyond the domain: the same value everywhere.
    Value(T),
}

impl<T> Line<T> {
    /// Returns the row as formulas of another grid see it.
    #[inline(always)]
    pub fn seen(self, levels: Levels) -> Line<T> {
        match self {
            Line::At { name, start, negated } if !levels.is_same() => {
                Line::Apart { name, start, negated, levels }
            }
            line => line,
        }
    }
}

impl FieldRows {
    /// Returns the rows of a problem's fields.
    pub fn new(problem: &Problem, boxes: &Boxes) -> Self {
        let fields = 0..problem.program.fields().len();
        let boundaries: Vec<Boundaries> = fields.map(|field| problem.boundaries_of(field)).collect();
        let program = &problem.program;
        let names = 0..boxes.buffers.len();
        let levels = program.stages().iter().filter(|_| program.has_levels());
        let levels = levels.map(|stage| names.clone().map(|name| program.levels(stage, name)).collect());
        FieldRows {
            problem: problem.clone(),
            levels: levels.collect(),
            kinds: boxes.buffers.clone(),
            shows_scalars: boundaries.iter().any(|boundaries| boundaries.scalars().next().is_some()),
            boundaries,
        }
    }

    /// Returns how the indices of a stage become those of each field; none where all fields are on one grid.
    pub fn levels_of(&self, stage: usize) -> &[Levels] {
        self.levels.get(stage).map_or(&[], Vec::as_slice)
    }

    /// Puts the scalars' present values into the boundaries that show them.
    pub fn set_scalars<T: Real>(&mut self, scalars: &[T]) {
        if self.shows_scalars {
            for (field, boundaries) in self.boundaries.iter_mut().enumerate() {
                *boundaries = self.problem.boundaries_with(field, scalars);
            }
        }
    }

    /// Returns the kind of buffer of a field or temporary.
    #[inline(always)]
    pub fn kind(&self, name: usize) -> &Buffer {
        &self.kinds[name]
    }

    /// Returns the indices along a row that the buffer of a field or temporary holds.
    #[inline(always)]
    pub fn held(&self, name: usize) -> Range<isize> {
        let kind = &self.kinds[name];
        kind.low[2]..kind.low[2] + kind.extents[2] as isize
    }

    /// Finds the row of a field or temporary at an index of the two slower axes, which may lie beyond the
    /// domain. The slower axis is asked first.
    #[inline(always)]
    pub fn line<T: Real>(&self, name: usize, at: [isize; 2]) -> Line<T> {
        let kind = &self.kinds[name];
        let (mut place, mut negated) = ([0; 2], false);
        for axis in 0..2 {
            let (low, extent) = (kind.low[axis], kind.extents[axis] as isize);
            let inside = at[axis] - low;
            place[axis] = if (0..extent).contains(&inside) {
                inside
            } else {
                match self.boundaries.get(name) {
                    // Only values that are not kept tap a temporary so far out.
                    None => inside.clamp(0, (extent - 1).max(0)),
                    Some(boundaries) => match boundaries.shown(axis, at[axis], extent as usize) {
                        (Source::Cell(index), opposite) => {
                            negated ^= opposite;
                            index as isize
                        }
                        (Source::Value(value), _) => {
                            return Line::Value(T::from_f64(if negated { -value } else { value }));
                        }
                    },
                }
            };
        }
        let start = (place[0] as usize * kind.extents[1] + place[1] as usize) * kind.extents[2];
        Line::At { name, start, negated }
    }

    /// Gathers the values of a row from the index `first` on, at an offset from each.
    #[inline(never)]
    pub fn gather<T: Real>(
        &self,
        line: Line<T>,
        buffers: &[Option<Shared<'_, T>>],
        first: isize,
        shift: isize,
        to: &mut [T],
    ) {
        let (name, start, negated, levels) = match line {
            Line::Value(value) => return to.fill(value),
            Line::At { name, start, negated } => (name, start, negated, Levels::default()),
            Line::Apart { name, start, negated, levels } => (name, start, negated, levels),
        };
        let (held, Some(buffer)) = (self.held(name), buffers[name]) else { return };
        // SAFETY: nobody writes a buffer that a launch taps away from the value's own place, and a row in
        // place is written only after its chunk was read.
        let row = unsafe { buffer.read(start..start + held.len()) };
        let sign = |value: T, opposite: bool| if opposite { -value } else { value };
        let at = |index: isize| match self.boundaries.get(name) {
            None => row[(index.clamp(held.start, held.end - 1) - held.start) as usize],
            Some(boundaries) => match boundaries.shown(2, index, held.len()) {
                (Source::Cell(index), opposite) => sign(row[index], negated ^ opposite),
                (Source::Value(value), _) => sign(T::from_f64(value), negated),
            },
        };
        if !levels.is_same() {
            for (to, index) in to.iter_mut().zip(first..) {
                *to = at(levels.index(index) + shift);
            }
            return;
        }
        let first = first + shift;
        // The values that the row holds are copied at once.
        let low = (held.start - first).clamp(0, to.len() as isize) as usize;
        let high = (held.end - first).clamp(low as isize, to.len() as isize) as usize;
        if low < high {
            let from = (first + low as isize - held.start) as usize;
            let (to, from) = (&mut to[low..high], &row[from..from + high - low]);
            match negated {
                true => to.iter_mut().zip(from).for_each(|(to, &value)| *to = -value),
                false => to.copy_from_slice(from),
            }
        }
        for i in (0..low).chain(high..to.len()) {
            to[i] = at(first + i as isize);
        }
    }
}

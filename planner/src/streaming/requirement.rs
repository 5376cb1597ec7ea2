//! The demands of a problem on a streaming kernel, whatever its form, and the check of what a form can do.

use abide_core::domain::Axes;
use abide_core::plan::streaming::carry::Carry;
use abide_core::plan::streaming::masks::Masked;
use abide_core::{Error, Neighbourhood, Problem, Result};

use crate::passes;
use abide_core::domain::Boundary;

/// The limits of a form.
pub(super) struct Limits {
    /// The form in words.
    pub form: &'static str,
    /// Whether a line streams, which is a single plane.
    pub lines: bool,
    /// Whether taps may reach ghost cells that show cells of this side.
    pub shows: bool,
    /// What a user can do beyond these limits.
    pub change: &'static str,
}

impl Limits {
    /// Refuses what no kernel of the form can do.
    pub fn check(&self, problem: &Problem) -> Result<()> {
        let (dimensions, radius) = (problem.shape.dimensions(), problem.program.radius());
        if dimensions < 2 && !self.lines {
            let what = "axes of a domain whose planes stream";
            return Err(Error::limit(what, dimensions, "2 or 3", self.change));
        }
        let shown = problem.boundaries.first_that_shows(|axis| !self.shows && radius[axis] > 0);
        let Some((axis, side)) = shown else { return Ok(()) };
        let what = format!("radius along an axis with a {side} boundary in {}", self.form);
        Err(Error::limit(what, radius[axis], 0, self.change))
    }
}

/// The demands of a problem on every streaming kernel. Triples are along the swept, slower and faster axis.
pub(crate) struct Demand<'a> {
    /// The demands on every kernel of several steps; its triples are along the padded axes.
    pub pass: passes::Demand<'a>,
    pub axes: Axes,
    pub extents: [usize; 3],
    pub sides: [[Boundary; 2]; 3],
    /// The largest radius of any stage.
    pub radius: [usize; 3],
    /// The cells below and above a cell that all stages of a step combined read (`reach`), and its first stage alone.
    pub reach: [[usize; 2]; 3],
    pub first_reach: [[usize; 2]; 3],
    /// The stages, cut by plane of arrival.
    pub carries: Vec<Carry>,
    /// Planes before and behind a cell's own for which the stages of a step wait, all stages combined.
    pub planes: [usize; 2],
    pub fields: usize,
    /// The fields that go through the levels, and the conditions of which a bit of each cell does.
    pub passing: usize,
    pub masks: usize,
    /// Bytes of a value.
    pub bytes: usize,
}

impl Demand<'_> {
    pub fn of(problem: &Problem) -> Demand<'_> {
        let pass = passes::Demand::of(problem);
        let (axes, fields) = (Axes::of(problem.shape.dimensions()), pass.program.fields().len());
        let masked = Masked::of(problem, &pass.program);
        let carries =
            masked.stages.iter().map(|stage| Carry::passing(stage, &masked.passes, axes)).collect::<Vec<_>>();
        Demand {
            axes,
            extents: axes.order(problem.shape.padded()),
            sides: axes.order(problem.boundaries.0),
            radius: axes.order(pass.radius),
            reach: axes.order(pass.reach),
            first_reach: axes.order(pass.first_reach),
            planes: [0, 1].map(|side| {
                carries.iter().map(|carry| carry.planes[side].unsigned_abs() as usize).sum::<usize>()
            }),
            fields,
            pass: passes::Demand { operations: masked.operations(), ..pass },
            passing: masked.passes.iter().filter(|&&passes| passes).count(),
            masks: masked.conditions.len(),
            bytes: problem.dtype.bytes(),
            carries,
        }
    }

    /// Returns the number of the domain's axes.
    pub fn dimensions(&self) -> usize {
        self.pass.problem.shape.dimensions()
    }

    /// Returns the cells at a side of a window or tile that go wrong in so many steps, on the side where they are more:
    /// both sides have as many, so that all are alike.
    pub fn margin(&self, depth: usize, axis: usize) -> usize {
        let [low, high] = self.reach[axis];
        depth * low.max(high)
    }

    /// Returns the same where the cells beyond the side that the first stage reads are right.
    pub fn margin_within(&self, depth: usize, axis: usize) -> usize {
        let sides = [0, 1].map(|side| depth * self.reach[axis][side] - self.first_reach[axis][side]);
        sides[0].max(sides[1])
    }

    /// Returns the planes that ghost planes before the first show to a stage, and the most that may be, if these planes
    /// come only after the stage's result for the first is due.
    pub fn mirrored_late(&self) -> Option<[usize; 2]> {
        let axis = self.axes.0[0];
        let shown =
            |before: i32| self.pass.problem.boundaries.shown_at_side(axis, before.unsigned_abs() as usize);
        let planes = self.carries.iter().map(|carry| carry.planes);
        let mut each = planes.map(|[before, behind]| [shown(before), behind.unsigned_abs() as usize + 1]);
        each.find(|[shown, most]| shown > most)
    }

    pub fn is_periodic(&self, axis: usize) -> bool {
        self.sides[axis].contains(&Boundary::Periodic)
    }

    /// Returns whether a stage taps cells that lie apart along several axes.
    pub fn is_boxed(&self) -> bool {
        let stages = self.pass.problem.program.stages();
        stages.iter().any(|stage| stage.footprint.neighbourhood == Neighbourhood::Box)
    }

    /// Returns the most values per cell that any stage carries.
    pub fn most_carried(&self) -> usize {
        self.carries.iter().map(|carry| carry.slots.len()).max().unwrap_or(0)
    }

    /// Returns the stages of all steps of a pass.
    pub fn levels(&self, depth: usize) -> usize {
        depth * self.carries.len()
    }

    /// Returns the planes by which the result of a pass is behind the arriving plane, if each level is `lag`
    /// planes behind the level before it, beside those for which its formula waits.
    pub fn behind(&self, depth: usize, lag: usize) -> usize {
        depth * self.planes[1] + lag * (self.levels(depth) - 1)
    }
}

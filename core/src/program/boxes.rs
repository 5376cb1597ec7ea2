//! The boxes of indices over which the stages of a problem compute, and the buffers that hold the results.
//!
//! A stage computes a field over its own extents, without the outermost values at `fixed` sides, and a
//! temporary wherever later stages of the step read it, beyond the domain too.

use std::ops::Range;

use super::{Problem, Region, Stage, StageKind};
use crate::domain::{Boundary, Source, axis_name};
use crate::error::{Error, Result};
use crate::expr::Tap;
use crate::precision::Precision;
use crate::real::{DType, Real};

/// A box of indices along the three padded axes, slowest first.
pub type Indices = [Range<isize>; 3];

/// The values of a field or temporary that are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffer {
    /// The index of the first value along each axis; below 0 only for a temporary.
    pub low: [isize; 3],
    /// The number of values along each axis; 0 for a temporary that nothing reads.
    pub extents: [usize; 3],
    /// The precision of all values, if that is narrower than the run's type.
    pub precision: Option<Precision>,
}

impl Buffer {
    /// Returns the bytes of a value as a device may store it, in a run of a type.
    pub fn bytes(&self, dtype: DType) -> usize {
        Precision::stored_bytes(self.precision, dtype)
    }

    /// Returns the bytes of all values as a device may store them.
    pub fn stored_bytes(&self, dtype: DType) -> f64 {
        (self.len() * self.bytes(dtype)) as f64
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.extents.iter().product()
    }

    /// Returns whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the box of all indices.
    pub fn indices(&self) -> Indices {
        std::array::from_fn(|axis| self.low[axis]..self.low[axis] + self.extents[axis] as isize)
    }

    /// Returns the position of the value at an index.
    pub fn position(&self, at: [isize; 3]) -> usize {
        let [z, y, x] = [0, 1, 2].map(|axis| (at[axis] - self.low[axis]) as usize);
        (z * self.extents[1] + y) * self.extents[2] + x
    }
}

/// The boxes and buffers of a problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boxes {
    /// Of each field, and then of each temporary.
    pub buffers: Vec<Buffer>,
    /// Of each stage: the box of each field or temporary written, in the order of [`Stage::writes`], or the
    /// region of a reduction.
    pub stages: Vec<Vec<Indices>>,
}

impl Boxes {
    /// Finds the boxes and buffers of a problem, whose domain and counts have been checked.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] where a boundary does not fit its field, a stage reads beyond a `fixed` side, or a
    /// reduction has no values; [`Error::Limit`] where a temporary reaches too far beyond the domain.
    pub fn of(problem: &Problem) -> Result<Boxes> {
        let program = &problem.program;
        let fields = program.fields().len();
        for field in 0..fields {
            problem.boundaries_of(field).check(&problem.shape, [0; 3], problem.dtype)?;
        }
        // Finding it goes through all stages.
        let radius = program.radius();
        let mut boxes: Vec<Vec<Indices>> = vec![Vec::new(); program.stages().len()];
        let mut held: Vec<Option<Indices>> = vec![None; program.temporaries().len()];
        for step in program.steps() {
            // What later stages of the step read of each temporary.
            let mut needed: Vec<Option<Indices>> = vec![None; program.temporaries().len()];
            for number in step.clone().rev() {
                let stage = &program.stages()[number];
                let own: Vec<Indices> = match stage.does {
                    StageKind::Scalar(_) => Vec::new(),
                    StageKind::Reduce(_, region, _) => vec![reduced(problem, stage, region)?],
                    StageKind::Update if !stage.points.is_empty() => {
                        let own = |&target: &usize| points(problem, stage, target);
                        stage.writes.iter().map(own).collect::<Result<_>>()?
                    }
                    StageKind::Update | StageKind::Transform(_) => {
                        let indices = |&target: &usize| match target.checked_sub(fields) {
                            None => computed(problem, target, radius),
                            Some(temporary) => needed[temporary].take().unwrap_or([0..0, 0..0, 0..0]),
                        };
                        let mut own: Vec<Indices> = stage.writes.iter().map(indices).collect();
                        // Temporaries are computed jointly, over everything that is needed of any of them.
                        let is_needed = |target: usize, own: &Indices| target >= fields && !is_empty(own);
                        let pairs = || stage.writes.iter().copied();
                        let all = pairs().zip(&own).filter(|(target, own)| is_needed(*target, own));
                        if let Some(all) = around(all.map(|(_, own)| own)) {
                            let needed =
                                pairs().zip(&mut own).filter(|(target, own)| is_needed(*target, own));
                            needed.for_each(|(_, own)| *own = all.clone());
                        }
                        own
                    }
                };
                for (target, own) in stage.writes.iter().zip(&own) {
                    if let Some(temporary) = target.checked_sub(fields) {
                        held[temporary] = around(held[temporary].iter().chain([own]));
                    }
                }
                if let Some(all) = around(&own) {
                    for tap in stage.dag.taps() {
                        let levels = program.levels(stage, usize::from(tap.field));
                        let read = [0, 1, 2].map(|axis| levels.tapped(&all[axis], tap.offset[axis] as isize));
                        match usize::from(tap.field).checked_sub(fields) {
                            Some(temporary) => {
                                needed[temporary] = around(needed[temporary].iter().chain([&read]));
                            }
                            // The last of an odd number of cells alone is read twice, and shows itself.
                            None if !levels.is_same() => {}
                            None => check_read(problem, stage, tap, &read)?,
                        }
                    }
                }
                boxes[number] = own;
            }
        }
        let of_field = |field: usize| Buffer {
            low: [0; 3],
            extents: problem.extents_of(field),
            precision: problem.stored_precision(field),
        };
        let mut buffers: Vec<Buffer> = (0..fields).map(of_field).collect();
        for (held, temporary) in held.into_iter().zip(program.temporaries()) {
            let held = held.unwrap_or([0..0, 0..0, 0..0]);
            let buffer = Buffer {
                low: [0, 1, 2].map(|axis| held[axis].start),
                extents: [0, 1, 2].map(|axis| held[axis].len()),
                precision: None,
            };
            let count = buffer.extents.iter().try_fold(16usize, |product, &n| product.checked_mul(n));
            if count.is_none_or(|bytes| bytes > isize::MAX as usize) {
                return Err(Error::limit(
                    format!("values of the temporary {}", temporary.name),
                    format!("{:?}", buffer.extents),
                    format!("{} bytes", isize::MAX),
                    "choose a smaller size",
                ));
            }
            buffers.push(buffer);
        }
        Ok(Boxes { buffers, stages: boxes })
    }
}

/// The place of a field's value at an index that may lie beyond the domain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GhostSource {
    /// At this index, with the opposite sign if so said.
    At([isize; 3], bool),
    /// A boundary's constant.
    Value(f64),
}

impl Problem {
    /// Returns where the value of a field at an index is found, however far beyond the domain it lies, while
    /// parameters and computed scalars have these values. Where it lies beyond several sides, the slowest axis
    /// is asked first, and the first constant decides.
    pub fn shown<T: Real>(&self, field: usize, at: [isize; 3], scalars: &[T]) -> GhostSource {
        let (boundaries, extents) = (self.boundaries_with(field, scalars), self.extents_of(field));
        let (mut place, mut negated) = ([0; 3], false);
        for axis in 0..3 {
            match boundaries.shown(axis, at[axis], extents[axis]) {
                (Source::Cell(index), opposite) => {
                    place[axis] = index as isize;
                    negated ^= opposite;
                }
                (Source::Value(value), _) => return GhostSource::Value(if negated { -value } else { value }),
            }
        }
        GhostSource::At(place, negated)
    }

    /// Returns the indices of a region in a stage's reduction: as many values as the fields have that the
    /// stage reads and that stand there, inside of the margins.
    pub fn indices_of(&self, stage: &Stage, region: Region) -> Indices {
        let kinds = self.program.kinds();
        let mut tapped = stage.dag.taps().map(|tap| usize::from(tap.field));
        let alike =
            tapped.find(|&field| kinds.get(field).is_some_and(|kind| kind.centring == region.centring));
        let extents = match alike {
            Some(field) => self.extents_of(field),
            None => region.centring.extents(&self.shape, &self.boundaries),
        };
        [0, 1, 2].map(|axis| {
            let [low, high] = region.margins[axis];
            low as isize..extents[axis] as isize - high as isize
        })
    }
}

/// Returns the box of a field that stages compute, in a program of this radius.
pub(super) fn computed(problem: &Problem, field: usize, radius: [usize; 3]) -> Indices {
    let (boundaries, extents) = (problem.boundaries_of(field), problem.extents_of(field));
    [0, 1, 2].map(|axis| {
        let range = boundaries.computed(axis, extents[axis], radius[axis]);
        range.start as isize..range.end as isize
    })
}

/// Returns the least box around a stage's points, all of which must be among a field's values.
fn points(problem: &Problem, stage: &Stage, field: usize) -> Result<Indices> {
    let extents = problem.extents_of(field);
    if let Some(point) = stage.points.iter().find(|point| (0..3).any(|axis| point[axis] >= extents[axis])) {
        let shown = 3 - problem.shape.dimensions();
        return Err(Error::limit(
            format!("point of stage {}", stage.name),
            format!("{:?}", &point[shown..]),
            format!("the {:?} values of {}", &extents[shown..], problem.program.fields()[field]),
            "give points inside the domain",
        ));
    }
    let along = |axis: usize| stage.points.iter().map(move |point| point[axis] as isize);
    Ok([0, 1, 2].map(|axis| along(axis).min().unwrap_or(0)..along(axis).max().map_or(0, |last| last + 1)))
}

/// Returns the indices of a reduction, of which there must be some, unless the problem's domain is a part of another.
fn reduced(problem: &Problem, stage: &Stage, region: Region) -> Result<Indices> {
    let indices = problem.indices_of(stage, region);
    if is_empty(&indices) && !problem.is_slab() {
        let extents = [0, 1, 2].map(|axis| indices[axis].end + region.margins[axis][1] as isize);
        return Err(Error::invalid(
            format!("stage {}", stage.name),
            format!("it is a reduction of nothing: the margins leave none of {extents:?} values"),
            "leave more values, or choose a larger size",
        ));
    }
    Ok(indices)
}

/// Refuses a read beyond a side that has no ghost values.
fn check_read(problem: &Problem, stage: &Stage, tap: Tap, read: &Indices) -> Result<()> {
    let field = usize::from(tap.field);
    let (boundaries, extents) = (problem.boundaries_of(field), problem.extents_of(field));
    for axis in 0..3 {
        let beyond = [read[axis].start < 0, read[axis].end > extents[axis] as isize];
        for side in 0..2 {
            if beyond[side] && boundaries.0[axis][side] == Boundary::Fixed {
                let side = ["low", "high"][side];
                return Err(Error::invalid(
                    format!("stage {}", stage.name),
                    format!(
                        "it reads {} beyond the {side} side of axis {}, which is fixed and has no ghost values",
                        problem.program.fields()[field],
                        axis_name(axis)
                    ),
                    "give the field another boundary there",
                ));
            }
        }
    }
    Ok(())
}

/// Returns whether a box has no indices.
pub fn is_empty(indices: &Indices) -> bool {
    indices.iter().any(Range::is_empty)
}

/// Returns the least box around all of some boxes that are not empty; `None` if all are.
pub fn around<'a>(boxes: impl IntoIterator<Item = &'a Indices>) -> Option<Indices> {
    boxes.into_iter().filter(|own| !is_empty(own)).cloned().reduce(|all, own| {
        [0, 1, 2].map(|axis| all[axis].start.min(own[axis].start)..all[axis].end.max(own[axis].end))
    })
}

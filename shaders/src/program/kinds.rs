//! The kinds of a problem's fields and temporaries: layouts, and how far beyond them stages read.

use std::ops::Range;

use abide_core::expr::is_single;
use abide_core::plan::fused::Partition;
use abide_core::program::{Boxes, Buffer, Centring, Indices, Levels, around};
use abide_core::{Boundaries, Boundary, DType, Problem, Stage};

/// The kinds of a problem's fields and temporaries.
pub(crate) struct Kinds {
    pub all: Vec<Kind>,
    /// Of each field, and then of each temporary.
    of: Vec<usize>,
}

/// Fields and temporaries of the same layout and boundary.
pub(crate) struct Kind {
    pub buffer: Buffer,
    /// `None` for temporaries, which are stored wherever they are read.
    boundaries: Option<Boundaries>,
    /// The grid.
    pub centring: Centring,
    /// The indices that stages ask for.
    asked: Indices,
    pub names: Vec<String>,
}

impl Kinds {
    /// Finds the kinds of a problem, whose stages are given as they are lowered and in groups.
    pub fn of(problem: &Problem, stages: &[Stage], boxes: &Boxes, partition: &Partition) -> Kinds {
        let fields = problem.program.fields().len();
        let mut kinds = Kinds { all: Vec::new(), of: Vec::new() };
        for (number, (name, buffer)) in problem.program.names().into_iter().zip(&boxes.buffers).enumerate() {
            let boundaries = (number < fields).then(|| problem.boundaries_of(number));
            let centring = problem.program.centring(number);
            let is_alike = |kind: &Kind| {
                kind.buffer == *buffer
                    && kind.boundaries == boundaries
                    && kind.centring.to(centring).is_same()
            };
            let place = kinds.all.iter().position(is_alike).unwrap_or_else(|| {
                let (buffer, asked) = (buffer.clone(), buffer.indices());
                kinds.all.push(Kind { buffer, boundaries, centring, asked, names: Vec::new() });
                kinds.all.len() - 1
            });
            kinds.all[place].names.push(name);
            kinds.of.push(place);
        }
        for (number, (stage, own)) in stages.iter().zip(&boxes.stages).enumerate() {
            let Some(computed) = around(own) else { continue };
            let [low, high] = beyond(partition, number);
            for tap in stage.dag.taps() {
                let levels = problem.program.levels(stage, usize::from(tap.field));
                let asked = &mut kinds.all[kinds.of[usize::from(tap.field)]].asked;
                for (axis, asked) in asked.iter_mut().enumerate() {
                    let own = computed[axis].start - low[axis]..computed[axis].end + high[axis];
                    let tapped = levels.tapped(&own, tap.offset[axis] as isize);
                    *asked = asked.start.min(tapped.start)..asked.end.max(tapped.end);
                }
            }
        }
        kinds
    }

    /// Returns the number of the kind of a field or temporary.
    pub fn number(&self, name: usize) -> usize {
        self.of[name]
    }

    /// Returns the fields whose values are of binary32 or fewer bits, beyond the domain too, by their numbers in formulas.
    pub fn singles(&self) -> Vec<u16> {
        let all = 0..self.of.len();
        all.filter(|&name| self.kind(name).is_single()).map(|name| name as u16).collect()
    }

    /// Returns how the indices at which a stage computes become those of a field or temporary.
    pub fn levels(&self, stage: &Stage, name: usize) -> Levels {
        stage.grid(|name| self.kind(name).centring).to(self.kind(name).centring)
    }

    /// Returns the kind of a field or temporary.
    pub fn kind(&self, name: usize) -> &Kind {
        &self.all[self.of[name]]
    }
}

impl Kind {
    fn is_single(&self) -> bool {
        let mut sides = self.boundaries.iter().flat_map(|boundaries| boundaries.0).flatten();
        let is_known = |side: Boundary| match side {
            Boundary::Scalar(_) => false,
            side => is_single(side.value()),
        };
        self.buffer.precision.is_some() && sides.all(is_known)
    }

    /// Returns the box of all values.
    pub fn held(&self) -> Indices {
        self.buffer.indices()
    }

    /// Returns the distances between neighbours along each axis in memory, where a row takes `pitch` values,
    /// and the place that the index 0 would have before the first value.
    pub fn strides(&self, pitch: usize) -> ([isize; 3], isize) {
        let [_, rows, _] = self.buffer.extents;
        let strides = [rows as isize * pitch as isize, pitch as isize, 1];
        (strides, (0..3).map(|axis| self.buffer.low[axis] * strides[axis]).sum())
    }

    /// Returns the boundary at both sides of an axis; that of a temporary is never asked.
    pub fn sides(&self, axis: usize) -> [Boundary; 2] {
        self.boundaries.map_or([Boundary::Fixed; 2], |boundaries| boundaries.0[axis])
    }

    /// Returns the text of the value that ghost cells hold at both sides of an axis, where they hold one: the
    /// `scalar` of a number, or a `literal`.
    pub fn values(
        &self,
        axis: usize,
        problem: &Problem,
        scalar: fn(usize) -> String,
        literal: fn(DType, f64) -> String,
    ) -> [String; 2] {
        self.sides(axis).map(|side| match side {
            Boundary::Scalar(name) => match problem.program.number_of_scalar(name.as_str()) {
                Ok(number) => scalar(number),
                Err(_) => literal(problem.dtype, f64::NAN),
            },
            side => literal(problem.dtype, side.value()),
        })
    }

    /// Returns how often the boundary along an axis has to be asked for the index farthest from the values.
    pub fn folds(&self, axis: usize) -> usize {
        if self.boundaries.is_none() {
            return 0;
        }
        let (n, sides) = (self.buffer.extents[axis] as isize, self.sides(axis));
        let is_endless = n <= 1 && sides.iter().all(|side| side.mirrors_a_value());
        let turns = |mut index: isize| {
            let mut turns = 0;
            while !(0..n).contains(&index) {
                let side = sides[usize::from(index >= n)];
                index = match side {
                    _ if is_endless => 0,
                    Boundary::Periodic if index < 0 => index + n,
                    Boundary::Periodic => index - n,
                    Boundary::Mirror | Boundary::MinusMirror if index < 0 => -1 - index,
                    Boundary::Mirror | Boundary::MinusMirror => 2 * n - 1 - index,
                    Boundary::Reflect | Boundary::MinusReflect if index < 0 => -index,
                    Boundary::Reflect | Boundary::MinusReflect => 2 * n - 2 - index,
                    Boundary::Fixed | Boundary::Clamp => 0,
                    Boundary::Constant(_) | Boundary::Scalar(_) | Boundary::Open => 0,
                };
                turns += 1;
            }
            turns
        };
        let Range { start, end } = self.asked[axis];
        (start..0).chain(n..end).map(turns).max().unwrap_or(0)
    }
}

/// Returns the indices by which a stage is computed anew before and behind its own, in any group.
fn beyond(partition: &Partition, stage: usize) -> [[isize; 3]; 2] {
    let mut beyond = [[0; 3]; 2];
    for fused in partition.all().filter_map(|group| group.fused.as_ref()) {
        for member in fused.members.iter().filter(|member| member.stage == stage) {
            for axis in (0..3).filter(|&axis| fused.wraps[axis]) {
                for (side, beyond) in beyond.iter_mut().enumerate() {
                    beyond[axis] = beyond[axis].max(member.beyond[axis][side] as isize);
                }
            }
        }
    }
    beyond
}

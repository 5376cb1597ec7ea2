//! The kinds of fields and temporaries in kernels: layouts, and where ghost values are found.

use std::fmt::Display;
use std::ops::Range;

use abide_core::domain::axis_name;
use abide_core::program::{Boxes, Buffer, Indices, around};
use abide_core::{Boundaries, Boundary, Problem, Program};

use crate::cuda::literal;
use crate::cuda::pitch::buffer_pitch;
use crate::text::Text;

/// The kinds of a problem's fields and temporaries.
pub struct Kinds {
    all: Vec<Kind>,
    /// Of each field, and then of each temporary.
    of: Vec<usize>,
}

/// Fields and temporaries of the same layout and boundary.
struct Kind {
    buffer: Buffer,
    /// `None` for temporaries, which are stored wherever they are read.
    boundaries: Option<Boundaries>,
    /// The indices that stages ask for.
    asked: Indices,
    names: Vec<String>,
}

impl Kinds {
    pub fn of(problem: &Problem, program: &Program, boxes: &Boxes) -> Kinds {
        let fields = program.fields().len();
        let names = program.fields().iter().chain(program.temporaries().iter().map(|t| &t.name));
        let mut kinds = Kinds { all: Vec::new(), of: Vec::new() };
        for (number, (name, buffer)) in names.zip(&boxes.buffers).enumerate() {
            let boundaries = (number < fields).then(|| problem.boundaries_of(number));
            let is_alike = |kind: &Kind| kind.buffer == *buffer && kind.boundaries == boundaries;
            let place = kinds.all.iter().position(is_alike).unwrap_or_else(|| {
                let (buffer, asked) = (buffer.clone(), all(buffer));
                kinds.all.push(Kind { buffer, boundaries, asked, names: Vec::new() });
                kinds.all.len() - 1
            });
            kinds.all[place].names.push(name.clone());
            kinds.of.push(place);
        }
        for (stage, own) in program.stages().iter().zip(&boxes.stages) {
            let Some(computed) = around(own) else { continue };
            for tap in stage.dag.taps() {
                let asked = &mut kinds.all[kinds.of[usize::from(tap.field)]].asked;
                for (axis, asked) in asked.iter_mut().enumerate() {
                    let by = tap.offset[axis] as isize;
                    *asked =
                        asked.start.min(computed[axis].start + by)..asked.end.max(computed[axis].end + by);
                }
            }
        }
        kinds
    }

    /// Returns the number of the kind of a field or temporary.
    pub fn number(&self, name: usize) -> usize {
        self.of[name]
    }

    /// Returns the box of a field's or temporary's values.
    pub fn held(&self, name: usize) -> Indices {
        all(&self.all[self.of[name]].buffer)
    }

    /// Writes a struct for each kind.
    pub fn write(&self, text: &mut Text, problem: &Problem) {
        let dtype = problem.dtype;
        for (number, kind) in self.all.iter().enumerate() {
            let [_, rows, _] = kind.buffer.extents;
            let pitch = buffer_pitch(&kind.buffer, dtype) as isize;
            let strides = [rows as isize * pitch, pitch, 1];
            let first: isize = (0..3).map(|axis| kind.buffer.low[axis] * strides[axis]).sum();
            text.blank();
            text.push(format!("// {}", kind.names.join(", ")));
            text.push(format!("struct Kind{number} {{"));
            text.push(format!("typedef {} All;", boxed(&all(&kind.buffer))));
            text.push(format!(
                "static constexpr Offset STRIDE_Z = {}, STRIDE_Y = {}, FIRST = {first};",
                strides[0], strides[1]
            ));
            for axis in 0..3 {
                text.push(kind.ghost(axis, problem));
            }
            text.push("};");
        }
    }
}

impl Kind {
    /// Returns the function that asks the boundary along an axis.
    fn ghost(&self, axis: usize, problem: &Problem) -> String {
        let sides = self.boundaries.map_or([Boundary::Fixed; 2], |boundaries| boundaries.0[axis]);
        let extent = self.buffer.extents[axis];
        let [low, high] = sides.map(Boundary::constant);
        let letter = axis_name(axis);
        let values = sides.map(|side| match side {
            Boundary::Scalar(name) => match problem.program.number_of_scalar(name.as_str()) {
                Ok(number) => format!("__ldg(scalars + {number})"),
                Err(_) => literal(problem.dtype, f64::NAN),
            },
            side => literal(problem.dtype, side.value()),
        });
        format!(
            "__device__ static __forceinline__ Ghost ghost_{letter}(const real* scalars, Offset i) {{ return \
             ghost<{}, {low}, {high}>(i, {extent}, {}, {}); }}",
            self.folds(axis, sides),
            values[0],
            values[1]
        )
    }

    /// Returns how often the boundary has to be asked for the index farthest from the values.
    fn folds(&self, axis: usize, sides: [Boundary; 2]) -> usize {
        if self.boundaries.is_none() {
            return 0;
        }
        let n = self.buffer.extents[axis] as isize;
        let turns = |mut index: isize| {
            let mut turns = 0;
            while !(0..n).contains(&index) {
                let side = sides[usize::from(index >= n)];
                index = match side {
                    _ if n <= 1 => 0,
                    Boundary::Periodic if index < 0 => index + n,
                    Boundary::Periodic => index - n,
                    Boundary::Mirror | Boundary::MinusMirror if index < 0 => -1 - index,
                    Boundary::Mirror | Boundary::MinusMirror => 2 * n - 1 - index,
                    Boundary::Reflect | Boundary::MinusReflect if index < 0 => -index,
                    Boundary::Reflect | Boundary::MinusReflect => 2 * n - 2 - index,
                    Boundary::Fixed | Boundary::Clamp | Boundary::Constant(_) | Boundary::Scalar(_) => 0,
                };
                turns += 1;
            }
            turns
        };
        let Range { start, end } = self.asked[axis];
        (start..0).chain(n..end).map(turns).max().unwrap_or(0)
    }
}

/// Returns the box of all values of a buffer.
fn all(buffer: &Buffer) -> Indices {
    [0, 1, 2].map(|axis| buffer.low[axis]..buffer.low[axis] + buffer.extents[axis] as isize)
}

/// Returns a box as a type in kernels.
pub fn boxed(indices: &Indices) -> String {
    let [z, y, x] = indices;
    format!("Box<{}, {}, {}, {}, {}, {}>", z.start, y.start, x.start, z.end, y.end, x.end)
}

/// Returns the definition of a constant for each axis.
pub fn triple<T: Display>(kind: &str, name: &str, [z, y, x]: [T; 3]) -> String {
    format!("constexpr {kind} {name}_Z = {z}, {name}_Y = {y}, {name}_X = {x};")
}

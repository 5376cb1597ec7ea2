//! A struct for each kind of field or temporary: its layout, and where ghost values are found.

use std::fmt::Display;

use abide_core::domain::axis_name;
use abide_core::program::{Buffer, Indices};
use abide_core::{Precision, Problem};

use crate::cuda::literal;
use crate::cuda::pitch::buffer_pitch;
use crate::program::{Kind, Kinds};
use crate::text::Text;

/// Writes a struct for each kind.
pub fn write(text: &mut Text, kinds: &Kinds, problem: &Problem) {
    for (number, kind) in kinds.all.iter().enumerate() {
        let (strides, first) = kind.strides(buffer_pitch(&kind.buffer, problem.dtype));
        text.blank();
        text.push(format!("// {}", kind.names.join(", ")));
        text.push(format!("struct Kind{number} {{"));
        text.push(format!("typedef {} All;", boxed(&kind.held())));
        text.push(format!("typedef {} Stored;", stored(&kind.buffer)));
        text.push(format!(
            "static constexpr Offset STRIDE_Z = {}, STRIDE_Y = {}, FIRST = {first};",
            strides[0], strides[1]
        ));
        for axis in 0..3 {
            text.push(ghost(kind, axis, problem));
        }
        text.push("};");
    }
}

/// Returns the type in which kernels find the values of a buffer.
pub fn stored(buffer: &Buffer) -> &'static str {
    match buffer.precision {
        None => "real",
        Some(Precision::F32) => "float",
        Some(Precision::F16) => "Half",
        Some(Precision::Bf16) => "Bfloat",
    }
}

/// Returns the function that asks the boundary along an axis.
fn ghost(kind: &Kind, axis: usize, problem: &Problem) -> String {
    let (sides, extent) = (kind.sides(axis), kind.buffer.extents[axis]);
    let [low, high] = sides.map(|side| side.constant());
    let values =
        kind.values(axis, problem, |number| format!("read<SCALARS_CHANGE>(scalars + {number})"), literal);
    let letter = axis_name(axis);
    format!(
        "__device__ static __forceinline__ Ghost ghost_{letter}(const real* scalars, Offset i) {{ return \
         ghost<{}, {low}, {high}>(i, {extent}, {}, {}); }}",
        kind.folds(axis),
        values[0],
        values[1]
    )
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

//! The struct of a stage that transforms lines.

use abide_core::program::{Indices, StageKind};
use abide_core::{DType, Problem, Stage};

use super::kinds::boxed;
use super::stages::{Body, Entry, VIEWED, Writer, write};
use crate::cuda::constant;
use crate::cuda::pitch::buffer_pitch;
use crate::program::matrices::{Matrix, OF_TILE};
use crate::program::{self, Kinds, Slot, Slots};
use crate::text::Text;

const TRANSFORM: &str = include_str!("../../../kernels/cuda/program/transform.cuh");

/// The threads of a block.
pub const THREADS: usize = 128;

/// The tiles of a type, as rows and columns of results, the largest first.
/// On an H200, 256³: 41 TFLOP/s in f64 and 38 in f32; of f64 tiles of 64 by 128 or 128 by 64 took 1.01 to 1.17 of the time, of f32 64
/// by 64 1.05.
const TILES: [(DType, [usize; 2]); 5] = [
    (DType::F64, [64, 64]),
    (DType::F64, [32, 32]),
    (DType::F32, [64, 128]),
    (DType::F32, [64, 64]),
    (DType::F32, [32, 32]),
];

/// The blocks that are enough for a device.
const ENOUGH: usize = 200;

/// The values of shared memory between the ends of rows that keep them in other banks.
const PADDING: usize = 4;

/// Tiles in shared memory: where blocks are many, others work while one waits; few blocks have more on the way. On an H200 three took
/// 1.01 to 1.08 of the time of two at 256³, and 128² 0.95 with eight.
const BUFFERS: usize = 2;
const BUFFERS_OF_FEW: usize = 8;

/// Writes what all transforms share.
pub fn write_shared(text: &mut Text) {
    constant(text, "OF_TILE", OF_TILE);
    constant(text, "OF_TEAM", THREADS);
    constant(text, "PADDING", PADDING);
    text.file(TRANSFORM);
}

/// Returns the bytes of the operands of a tile: `Operands` of the kernels.
fn bytes_of_tile(dtype: DType, along_rows: bool, [left, right]: [usize; 2]) -> usize {
    let of_right = if along_rows { right * (OF_TILE + PADDING) } else { OF_TILE * (right + PADDING) };
    (left * (OF_TILE + PADDING) + of_right) * dtype.bytes()
}

/// Returns the body of a transform, and of what takes values along that are not computed.
pub fn body(
    problem: &Problem,
    kinds: &Kinds,
    stage: &Stage,
    matrix: &Matrix,
    own: &[Indices],
) -> Option<Body> {
    let StageKind::Transform(transform) = stage.does else { return None };
    let work = program::points(kinds, stage, own, problem.shape.dimensions())?;
    let mut writer = Writer { problem, kinds, stage, slots: Slots::default(), rows: None };
    let lines = own[0].iter().map(ExactSizeIterator::len).product::<usize>() / matrix.rows.max(1);
    let tiles = |[left, right]: [usize; 2]| match transform.axis {
        2 => lines.div_ceil(left) * matrix.rows.div_ceil(right),
        _ => matrix.rows.div_ceil(left) * lines.div_ceil(right),
    };
    let mut fitting = TILES.iter().filter(|(dtype, _)| *dtype == problem.dtype).map(|(_, tile)| *tile);
    let smallest = fitting.clone().next_back()?;
    let tile = fitting.find(|&tile| tiles(tile) >= ENOUGH).unwrap_or(smallest);
    let shared = bytes_of_tile(problem.dtype, transform.axis == 2, tile);
    let needed = (matrix.pitch / OF_TILE + 1).max(2);
    let buffers = if tiles(tile) >= ENOUGH { BUFFERS } else { BUFFERS_OF_FEW.min(needed) };
    let mut text = Text::default();
    write(&mut text, &work);
    text.push(format!(
        "static constexpr int AXIS = {}, COUNT = {}, PITCH = {}, LEFT = {}, RIGHT = {};",
        transform.axis, matrix.rows, matrix.pitch, tile[0], tile[1]
    ));
    text.push(format!("static constexpr int BUFFERS = {buffers}, BYTES = {shared};"));
    text.push(format!("static constexpr long long MATRIX = {};", matrix.first));
    let of = stage.transformed()?;
    let (kind, slot) = (kinds.number(of), writer.slots.number(Slot::Read(of)));
    text.push(format!("{VIEWED} const real* source(const View& u)\n{{"));
    text.push(format!("return u.template here<Kind{kind}, {slot}>() - Kind{kind}::FIRST;\n}}"));
    // Whether neighbours of 16 bytes are all of a line or of as many lines, and lie where devices copy them at once.
    let (wide, held) = (16 / problem.dtype.bytes(), &kinds.kind(of).buffer);
    let is_whole = own[0][2].len().is_multiple_of(wide)
        && (own[0][2].start - held.low[2]).rem_euclid(wide as isize) == 0
        && buffer_pitch(held, problem.dtype).is_multiple_of(wide);
    text.push(format!("static constexpr bool WHOLE = {is_whole};"));
    let (kind, slot, indices) =
        (kinds.number(stage.writes[0]), writer.slots.number(Slot::Write(0)), boxed(&own[0]));
    text.push(format!("{VIEWED} void store(const View& u, real value)\n{{"));
    text.push(format!("u.template store<Kind{kind}, {slot}, {indices}>(value);\n}}"));
    writer.keep(&mut text, &work, own);
    let is_whole = kinds.kind(stage.writes[0]).held() == own[0];
    let entries: &[Entry] = if is_whole { &[Entry::Transform] } else { &[Entry::Carry, Entry::Transform] };
    Some(Body {
        text,
        slots: writer.slots.0,
        grid: work.grid,
        leaves: None,
        count: if lines == 0 { 0 } else { tiles(tile) },
        shared_bytes: shared * buffers,
        entries,
    })
}

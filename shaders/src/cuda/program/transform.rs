//! The struct of a stage that transforms lines, and the matrices of all such stages in device memory.

use abide_core::program::{Boxes, Indices, StageKind, Transforms};
use abide_core::{DType, Error, Problem, Program, Result, Stage};

use super::ProgramKernels;
use super::kinds::boxed;
use super::stages::{Body, Entry, VIEWED, Writer, value, write};
use crate::program::{self, Kinds, Slot, Slots};
use crate::text::Text;

/// The threads of a block: `OF_TEAM` of the kernels.
pub const THREADS: usize = 128;

/// The products of each result that a tile makes at once: `OF_TILE` of the kernels.
const OF_TILE: usize = 16;

/// The tiles of a type, as rows and columns of results, the largest first.
const TILES: [(DType, [usize; 2]); 6] = [
    (DType::F64, [64, 128]),
    (DType::F64, [64, 64]),
    (DType::F64, [32, 32]),
    (DType::F32, [64, 128]),
    (DType::F32, [64, 64]),
    (DType::F32, [32, 32]),
];

/// The blocks that are enough for a device.
const ENOUGH: usize = 200;

/// The matrices of transforms, one after another.
#[derive(Debug, Clone, Default)]
pub struct Matrices {
    all: Vec<Matrix>,
    /// The values of all.
    pub values: usize,
}

/// The matrix of a stage.
#[derive(Debug, Clone, Copy)]
pub struct Matrix {
    stage: usize,
    /// The place of its first value.
    first: usize,
    rows: usize,
    /// The values from one row to the next.
    pitch: usize,
}

impl Matrices {
    pub fn of(program: &Program, boxes: &Boxes) -> Matrices {
        let mut own = Matrices::default();
        for (stage, known) in program.stages().iter().enumerate() {
            let StageKind::Transform(transform) = known.does else { continue };
            let rows = boxes.stages[stage][0][transform.axis].len();
            let pitch = rows.next_multiple_of(OF_TILE);
            own.all.push(Matrix { stage, first: own.values, rows, pitch });
            own.values += rows * pitch;
        }
        own
    }

    pub fn at(&self, stage: usize) -> Option<&Matrix> {
        self.all.iter().find(|own| own.stage == stage)
    }
}

impl ProgramKernels {
    /// Returns the bytes of all matrices as kernels have them.
    ///
    /// # Errors
    ///
    /// [`Error::Memory`](abide_core::Error) where there is not enough of it.
    pub fn matrices(&self, problem: &Problem, transforms: &Transforms) -> Result<Vec<u8>> {
        let size = problem.dtype.bytes();
        let mut bytes: Vec<u8> =
            abide_core::memory::reserved(self.transforms.values * size, "matrices", "choose a smaller size")?;
        for Matrix { stage, rows, pitch, .. } in &self.transforms.all {
            let known = transforms.matrix(problem, *stage).filter(|(_, known)| known == rows);
            let Some((values, _)) = known else {
                return Err(Error::device("cuda", "loading matrices", "a transform has none"));
            };
            for row in values.chunks_exact(*rows) {
                match problem.dtype {
                    DType::F32 => bytes.extend(row.iter().flat_map(|&value| (value as f32).to_ne_bytes())),
                    DType::F64 => bytes.extend(row.iter().flat_map(|value| value.to_ne_bytes())),
                }
                bytes.resize(bytes.len() + (pitch - rows) * size, 0);
            }
        }
        Ok(bytes)
    }
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
    let mut writer = Writer { problem, kinds, stage, slots: Slots::default() };
    let lines = own[0].iter().map(ExactSizeIterator::len).product::<usize>() / matrix.rows.max(1);
    let tiles = |[left, right]: [usize; 2]| match transform.axis {
        2 => lines.div_ceil(left) * matrix.rows.div_ceil(right),
        _ => matrix.rows.div_ceil(left) * lines.div_ceil(right),
    };
    let mut fitting = TILES.iter().filter(|(dtype, _)| *dtype == problem.dtype).map(|(_, tile)| *tile);
    let smallest = fitting.clone().next_back()?;
    let tile = fitting.find(|&tile| tiles(tile) >= ENOUGH).unwrap_or(smallest);
    let mut text = Text::default();
    write(&mut text, &work);
    text.push(format!(
        "static constexpr int AXIS = {}, COUNT = {}, PITCH = {}, LEFT = {}, RIGHT = {};",
        transform.axis, matrix.rows, matrix.pitch, tile[0], tile[1]
    ));
    text.push(format!("static constexpr long long MATRIX = {};", matrix.first));
    value(&mut text, "value(const View& u)", &writer.formula(&[0]), &stage.dag);
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
        entries,
    })
}

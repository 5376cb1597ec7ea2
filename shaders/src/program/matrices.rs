//! The matrices of transforms in device memory, one after another.

use abide_core::program::{Boxes, StageKind, Transforms};
use abide_core::{DType, Error, Problem, Program, Result, memory};

/// The products of each result that kernels make at once: rows are filled up to whole ones with zeros.
pub(crate) const OF_TILE: usize = 16;

/// The matrices of a program's transforms, row by row.
#[derive(Debug, Clone, Default)]
pub struct Matrices {
    all: Vec<Matrix>,
    /// The values of all.
    pub values: usize,
}

/// The matrix of a stage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Matrix {
    pub stage: usize,
    /// The place of its first value.
    pub first: usize,
    pub rows: usize,
    /// The values from one row to the next.
    pub pitch: usize,
}

impl Matrices {
    pub(crate) fn of(program: &Program, boxes: &Boxes) -> Matrices {
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

    pub(crate) fn at(&self, stage: usize) -> Option<&Matrix> {
        self.all.iter().find(|own| own.stage == stage)
    }

    /// Returns the bytes of all matrices of a problem as kernels have them.
    ///
    /// # Errors
    ///
    /// [`Error::Memory`] where there is not enough of it.
    pub fn bytes(&self, problem: &Problem, transforms: &Transforms) -> Result<Vec<u8>> {
        let size = problem.dtype.bytes();
        let mut bytes: Vec<u8> = memory::reserved(self.values * size, "matrices", "choose a smaller size")?;
        for Matrix { stage, rows, pitch, .. } in &self.all {
            let known = transforms.matrix(problem, *stage).filter(|(_, known)| known == rows);
            let Some((values, _)) = known else {
                let change = "make a plan for this problem";
                return Err(Error::invalid("plan", "a transform of it has no matrix", change));
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

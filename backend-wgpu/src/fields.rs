//! A problem's fields on the device: one buffer for a field that never changes, two for one that does. A
//! field lies in pieces where the device can bind no buffer that holds it whole.

use abide_core::{Problem, Result};

use crate::gpu::Gpu;
use crate::transfers::Stored;

/// Field buffers; the number of rounds done determines which of a pair holds the current values.
pub(crate) struct Fields {
    pairs: Vec<Vec<Vec<wgpu::Buffer>>>,
    /// Bytes of each piece but the last.
    piece_bytes: u64,
    /// The number of times that a round writes each field.
    writes: Vec<usize>,
}

impl Fields {
    /// Allocates a problem's fields in pieces of at most so many cells; each pass of a round writes some of
    /// the fields.
    pub async fn new(
        gpu: &Gpu,
        problem: &Problem,
        written: &[Vec<usize>],
        piece_cells: usize,
    ) -> Result<Fields> {
        let program = &problem.program;
        let bytes = problem.shape.bytes(problem.dtype) as u64;
        let piece_bytes = problem.shape.cells().min(piece_cells).max(1) as u64 * problem.dtype.bytes() as u64;
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        let writes = |field: usize| written.iter().filter(|fields| fields.contains(&field)).count();
        let writes: Vec<usize> = (0..program.fields().len()).map(writes).collect();
        let mut pairs = Vec::with_capacity(writes.len());
        for (name, &writes) in program.fields().iter().zip(&writes) {
            let label = format!("field {name}");
            let mut pair = Vec::new();
            for _ in 0..if writes > 0 { 2 } else { 1 } {
                let mut pieces = Vec::new();
                for first in (0..bytes).step_by(piece_bytes as usize) {
                    pieces.push(gpu.buffer(&label, piece_bytes.min(bytes - first), usage).await?);
                }
                pair.push(pieces);
            }
            pairs.push(pair);
        }
        Ok(Fields { pairs, piece_bytes, writes })
    }

    /// Returns the buffers that hold a field's values, one piece after the other, after a number of rounds
    /// and of further writes within the next round.
    pub fn pieces(&self, field: usize, rounds: u64, further: usize) -> &[wgpu::Buffer] {
        let flips = (rounds % 2) as usize * self.writes[field] + further;
        let pair = &self.pairs[field];
        &pair[flips % pair.len()]
    }

    /// Returns a field's current values after a number of rounds.
    pub fn stored(&self, problem: &Problem, field: usize, rounds: u64) -> Stored<'_> {
        Stored {
            pieces: self.pieces(field, rounds, 0),
            piece_bytes: self.piece_bytes,
            extents: problem.shape.padded(),
            dtype: problem.dtype,
        }
    }
}

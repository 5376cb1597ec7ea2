//! A problem's fields on the device: one buffer for a field that never changes, two for one that does. A
//! field lies in pieces where the device can bind no buffer that holds it whole.

use std::ops::Range;

use abide_core::backend::{check_window, rows_of};
use abide_core::{Array, DType, Problem, Real, Result};

use crate::count;
use crate::gpu::Gpu;

/// The most bytes that move between host and device at once: the memory of a transfer beside the field
/// itself.
const CHUNK: u64 = 32 << 20;

/// Field buffers; the number of rounds done tells which of a pair holds the current values.
pub(crate) struct Fields {
    pairs: Vec<Vec<Vec<wgpu::Buffer>>>,
    /// Bytes of each piece but the last.
    piece_bytes: u64,
    /// The number of times that a round writes each field.
    writes: Vec<usize>,
    /// The buffer through which bytes come to the host; made when first needed.
    staging: Option<wgpu::Buffer>,
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
        Ok(Fields { pairs, piece_bytes, writes, staging: None })
    }

    /// Returns the buffers that hold a field's values, one piece after the other, after a number of rounds
    /// and of further writes within the next round.
    pub fn pieces(&self, field: usize, rounds: u64, further: usize) -> &[wgpu::Buffer] {
        let flips = (rounds % 2) as usize * self.writes[field] + further;
        let pair = &self.pairs[field];
        &pair[flips % pair.len()]
    }

    /// Replaces a field's values.
    pub async fn write(&self, gpu: &Gpu, field: usize, rounds: u64, values: &Array) -> Result<()> {
        self.load(gpu, field, rounds, [(0, 0..values.as_bytes().len())], values.as_bytes()).await
    }

    /// Replaces the values in a box, which has been checked: each row, or all at once where they follow each
    /// other.
    pub async fn write_window(
        &self,
        gpu: &Gpu,
        problem: &Problem,
        field: usize,
        rounds: u64,
        [low, high]: [[usize; 3]; 2],
        values: &Array,
    ) -> Result<()> {
        let (extents, size) = (problem.shape.padded(), problem.dtype.bytes());
        let width = (high[2] - low[2]) * size;
        let rows = rows_of(extents, low, high).enumerate();
        let rows = rows.map(|(row, cells)| ((cells.start * size) as u64, row * width..(row + 1) * width));
        self.load(gpu, field, rounds, rows, values.as_bytes()).await
    }

    /// Copies ranges of bytes to the places in a field that stand before them.
    async fn load(
        &self,
        gpu: &Gpu,
        field: usize,
        rounds: u64,
        parts: impl IntoIterator<Item = (u64, Range<usize>)>,
        bytes: &[u8],
    ) -> Result<()> {
        let pieces = self.pieces(field, rounds, 0);
        let mut parts = parts.into_iter().flat_map(|(first, range)| {
            let start = range.start;
            let transfers = self.transfers(first, range.len());
            transfers.map(move |(piece, at, own)| (piece, at, start + own.start..start + own.end))
        });
        let mut next = parts.next();
        while next.is_some() {
            let mut room = CHUNK as usize;
            // Written values wait on the host until the device has taken them.
            gpu.run("loading a field", || {
                while let Some((piece, at, range)) = next.take_if(|(_, _, range)| range.len() <= room) {
                    room -= range.len();
                    gpu.queue.write_buffer(&pieces[piece], at, &bytes[range]);
                    next = parts.next();
                }
                gpu.queue.submit([])
            })
            .await?;
        }
        Ok(())
    }

    /// Counts a field's values that are NaN or infinite.
    pub async fn non_finite(&self, gpu: &Gpu, problem: &Problem, field: usize, rounds: u64) -> Result<u64> {
        let (mut left, most) = (problem.shape.bytes(problem.dtype) as u64, self.piece_bytes);
        let pieces = self.pieces(field, rounds, 0).iter().map(|piece| {
            let bytes = left.min(most);
            left -= bytes;
            (piece, bytes)
        });
        count::non_finite(gpu, problem.dtype, pieces).await
    }

    /// Reads a field's values.
    pub async fn read(&mut self, gpu: &Gpu, problem: &Problem, field: usize, rounds: u64) -> Result<Array> {
        let mut values = Array::zeros(problem.dtype, problem.shape.cells())?;
        self.fetch(gpu, field, rounds, 0, bytes_mut(&mut values)).await?;
        Ok(values)
    }

    /// Reads the values in a box: each plane's rows are fetched in one piece, and the columns picked out
    /// here.
    pub async fn read_window(
        &mut self,
        gpu: &Gpu,
        problem: &Problem,
        field: usize,
        rounds: u64,
        low: [usize; 3],
        high: [usize; 3],
    ) -> Result<Array> {
        let extents = check_window(problem.shape.padded(), low, high)?;
        let whole = problem.shape.padded();
        if extents == whole {
            return self.read(gpu, problem, field, rounds).await;
        }
        if extents[1] * extents[2] == whole[1] * whole[2] {
            let first = problem.shape.index(low) as u64 * problem.dtype.bytes() as u64;
            let mut values = Array::zeros(problem.dtype, extents.iter().product())?;
            self.fetch(gpu, field, rounds, first, bytes_mut(&mut values)).await?;
            return Ok(values);
        }
        let mut window = Array::zeros(problem.dtype, extents.iter().product())?;
        let per_plane = extents[1] * extents[2];
        let rows = (extents[1] - 1) * whole[2] + extents[2];
        let mut plane = Array::zeros(problem.dtype, rows)?;
        for (number, z) in (low[0]..high[0]).enumerate() {
            let first = problem.shape.index([z, low[1], low[2]]) as u64 * problem.dtype.bytes() as u64;
            self.fetch(gpu, field, rounds, first, bytes_mut(&mut plane)).await?;
            match problem.dtype {
                DType::F32 => pick::<f32>(&plane, whole[2], extents[2], &mut window, number * per_plane),
                DType::F64 => pick::<f64>(&plane, whole[2], extents[2], &mut window, number * per_plane),
            }
        }
        Ok(window)
    }

    /// Divides `bytes` bytes of a field from `first` on by the lengths of transfers and pieces; yields the
    /// piece, the place in it, and the range of bytes.
    fn transfers(
        &self,
        first: u64,
        bytes: usize,
    ) -> impl Iterator<Item = (usize, u64, Range<usize>)> + use<> {
        let (piece_bytes, mut done) = (self.piece_bytes, 0);
        std::iter::from_fn(move || {
            let (from, at) = (first + done as u64, (first + done as u64) % piece_bytes);
            let range = done..bytes.min(done + CHUNK.min(piece_bytes - at) as usize);
            done = range.end;
            (!range.is_empty()).then_some(((from / piece_bytes) as usize, at, range))
        })
    }

    /// Copies bytes of a field, from `first` on, to the host.
    async fn fetch(&mut self, gpu: &Gpu, field: usize, rounds: u64, first: u64, to: &mut [u8]) -> Result<()> {
        let room = (to.len() as u64).min(CHUNK);
        if self.staging.as_ref().is_none_or(|staging| staging.size() < room) {
            self.staging = None;
            let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
            self.staging = Some(gpu.buffer("reading back", room, usage).await?);
        }
        let Some(staging) = &self.staging else { return Ok(()) };
        let pieces = self.pieces(field, rounds, 0);
        for (piece, at, range) in self.transfers(first, to.len()) {
            let (part, bytes) = (&mut to[range.clone()], range.len() as u64);
            gpu.checked("reading back", || {
                let mut encoder =
                    gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
                encoder.copy_buffer_to_buffer(&pieces[piece], at, staging, 0, bytes);
                gpu.queue.submit([encoder.finish()]);
            })
            .await?;
            gpu.map(staging, bytes, |mapped| part.copy_from_slice(mapped)).await?;
        }
        Ok(())
    }
}

fn bytes_mut(values: &mut Array) -> &mut [u8] {
    match values {
        Array::F32(values) => bytemuck::cast_slice_mut(values),
        Array::F64(values) => bytemuck::cast_slice_mut(values),
    }
}

/// Copies the first `width` values of every row of `plane`, whose rows lie `pitch` apart, into `window` from
/// `at` on.
fn pick<T: Real>(plane: &Array, pitch: usize, width: usize, window: &mut Array, at: usize) {
    let (Some(from), Some(to)) = (T::slice(plane), T::slice_mut(window)) else { return };
    for (to, from) in to[at..].chunks_mut(width).zip(from.chunks(pitch)) {
        to.copy_from_slice(&from[..width]);
    }
}

//! Values on their way between host and device.

use std::ops::Range;

use abide_core::backend::{check_window, rows_of};
use abide_core::{Array, DType, Real, Result};

use crate::count;
use crate::gpu::Gpu;

/// The most bytes that move between host and device at once: the memory of a transfer beside the field
/// itself.
const CHUNK: u64 = 32 << 20;

/// The values of a field on the device, whose rows follow each other.
#[derive(Clone, Copy)]
pub(crate) struct Stored<'a> {
    /// The buffers that hold the values, one piece after the other.
    pub pieces: &'a [wgpu::Buffer],
    /// Bytes of each piece but the last.
    pub piece_bytes: u64,
    /// Along the three padded axes.
    pub extents: [usize; 3],
    pub dtype: DType,
}

impl Stored<'_> {
    /// Replaces the values.
    pub async fn write(&self, gpu: &Gpu, values: &Array) -> Result<()> {
        self.load(gpu, [(0, 0..values.as_bytes().len())], values.as_bytes()).await
    }

    /// Replaces the values in a box, which has been checked: each row, or all at once where they follow each
    /// other.
    pub async fn write_window(&self, gpu: &Gpu, [low, high]: [[usize; 3]; 2], values: &Array) -> Result<()> {
        let size = self.dtype.bytes();
        let width = (high[2] - low[2]) * size;
        let rows = rows_of(self.extents, low, high).enumerate();
        let rows = rows.map(|(row, cells)| ((cells.start * size) as u64, row * width..(row + 1) * width));
        self.load(gpu, rows, values.as_bytes()).await
    }

    /// Copies ranges of bytes to the places in the field that stand before them.
    async fn load(
        &self,
        gpu: &Gpu,
        parts: impl IntoIterator<Item = (u64, Range<usize>)>,
        bytes: &[u8],
    ) -> Result<()> {
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
                    gpu.queue.write_buffer(&self.pieces[piece], at, &bytes[range]);
                    next = parts.next();
                }
                gpu.queue.submit([])
            })
            .await?;
        }
        Ok(())
    }

    /// Counts the values that are NaN or infinite.
    pub async fn non_finite(&self, gpu: &Gpu) -> Result<u64> {
        let mut left = (self.extents.iter().product::<usize>() * self.dtype.bytes()) as u64;
        let pieces = self.pieces.iter().map(|piece| {
            let bytes = left.min(self.piece_bytes);
            left -= bytes;
            (piece, bytes)
        });
        count::non_finite(gpu, self.dtype, pieces).await
    }

    /// Divides `bytes` bytes from `first` on by the lengths of transfers and pieces; yields the piece, the
    /// place in it, and the range of bytes.
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
}

/// The way to the host.
#[derive(Default)]
pub(crate) struct Staging {
    /// The buffer through which bytes come to the host; made when first needed.
    buffer: Option<wgpu::Buffer>,
}

impl Staging {
    /// Reads all values of a field.
    pub async fn read(&mut self, gpu: &Gpu, stored: Stored<'_>) -> Result<Array> {
        let mut values = Array::zeros(stored.dtype, stored.extents.iter().product())?;
        self.fetch(gpu, stored, 0, bytes_mut(&mut values)).await?;
        Ok(values)
    }

    /// Reads the values in a box: each plane's rows are fetched in one piece, and the columns picked out
    /// here.
    pub async fn read_window(
        &mut self,
        gpu: &Gpu,
        stored: Stored<'_>,
        low: [usize; 3],
        high: [usize; 3],
    ) -> Result<Array> {
        let whole = stored.extents;
        let extents = check_window(whole, low, high)?;
        if extents == whole {
            return self.read(gpu, stored).await;
        }
        let size = stored.dtype.bytes() as u64;
        let place = |z: usize| ((z * whole[1] + low[1]) * whole[2] + low[2]) as u64 * size;
        if extents[1] * extents[2] == whole[1] * whole[2] {
            let mut values = Array::zeros(stored.dtype, extents.iter().product())?;
            self.fetch(gpu, stored, place(low[0]), bytes_mut(&mut values)).await?;
            return Ok(values);
        }
        let mut window = Array::zeros(stored.dtype, extents.iter().product())?;
        let per_plane = extents[1] * extents[2];
        let rows = (extents[1] - 1) * whole[2] + extents[2];
        let mut plane = Array::zeros(stored.dtype, rows)?;
        for (number, z) in (low[0]..high[0]).enumerate() {
            self.fetch(gpu, stored, place(z), bytes_mut(&mut plane)).await?;
            match stored.dtype {
                DType::F32 => pick::<f32>(&plane, whole[2], extents[2], &mut window, number * per_plane),
                DType::F64 => pick::<f64>(&plane, whole[2], extents[2], &mut window, number * per_plane),
            }
        }
        Ok(window)
    }

    /// Copies bytes of a field, from `first` on, to the host.
    pub async fn fetch(&mut self, gpu: &Gpu, stored: Stored<'_>, first: u64, to: &mut [u8]) -> Result<()> {
        let room = (to.len() as u64).min(CHUNK);
        if self.buffer.as_ref().is_none_or(|staging| staging.size() < room) {
            self.buffer = None;
            let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
            self.buffer = Some(gpu.buffer("reading back", room, usage).await?);
        }
        let Some(staging) = &self.buffer else { return Ok(()) };
        for (piece, at, range) in stored.transfers(first, to.len()) {
            let (part, bytes) = (&mut to[range.clone()], range.len() as u64);
            gpu.checked("reading back", || {
                let mut encoder =
                    gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
                encoder.copy_buffer_to_buffer(&stored.pieces[piece], at, staging, 0, bytes);
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

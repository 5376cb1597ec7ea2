//! The rows of a record on their way from the device: the values of each are copied there, behind the step
//! after which it is due.

use abide_core::program::{Record, Rows, Storage};
use abide_core::{Array, DType, Problem, Result};
use abide_shaders::numbers;
use abide_shaders::wgsl::ScalarLayout;

use super::memory::Memory;
use crate::gpu::Gpu;
use crate::transfers::{Staging, Stored};

/// Bytes of rows in device memory.
const BYTES: usize = 1 << 20;

/// Both sides of a record.
pub struct Recorder {
    record: Record,
    dtype: DType,
    layout: ScalarLayout,
    /// The place of each probe's value in its field.
    positions: Vec<usize>,
    /// Where the computed scalars begin, and how many they are.
    scalars: [usize; 2],
    memory: wgpu::Buffer,
    /// Rows that the memory has room for.
    room: u64,
    rows: Rows,
}

impl Recorder {
    /// Makes the recorder of a problem. The first row records these initial fields. `None` if the problem records
    /// nothing.
    pub async fn new(
        gpu: &Gpu,
        problem: &Problem,
        layout: ScalarLayout,
        fields: &[Array],
    ) -> Result<Option<Recorder>> {
        let Some(record) = problem.record.clone() else { return Ok(None) };
        let rows = record.first(problem, fields)?;
        let scalars = [problem.parameters.len(), problem.program.scalars().len()];
        let width = scalars[1] * layout.kept().bytes() + record.probes.len() * problem.dtype.bytes();
        let room = BYTES / width.max(1);
        let usage = wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        let memory = gpu.buffer("rows of the record", (room * width) as u64, usage).await?;
        let position = |probe: &abide_core::program::Probe| probe.position(problem.extents_of(probe.field));
        let positions = record.probes.iter().map(position).collect();
        let (dtype, room) = (problem.dtype, room as u64);
        Ok(Some(Recorder { record, dtype, layout, positions, scalars, memory, room, rows }))
    }

    /// Returns the most steps from one, counted from the start, whose rows the memory has room for.
    pub fn most_steps(&self, step: u64) -> u64 {
        self.until_due(step).saturating_add((self.room - 1).saturating_mul(self.record.every))
    }

    /// Returns the steps from one, counted from the start, to the next row.
    pub fn until_due(&self, step: u64) -> u64 {
        self.record.until_due(step)
    }

    /// Returns the number of rows that are due after step `from` up to step `to`.
    pub fn due_between(&self, from: u64, to: u64) -> u64 {
        self.record.due_between(from, to)
    }

    /// Copies the values of a row, counted from those that have been taken, from where they lie after a step
    /// of the storage.
    pub fn copy(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        row: u64,
        memory: &Memory,
        storage: &Storage,
        step: u64,
    ) {
        let bytes = self.dtype.bytes();
        let [first, count] = self.scalars;
        let mut at = row * self.width() as u64;
        let mut copy = |from: &wgpu::Buffer, position: usize, bytes: usize| {
            encoder.copy_buffer_to_buffer(from, position as u64, &self.memory, at, bytes as u64);
            at += bytes as u64;
        };
        if count > 0 {
            copy(&memory.scalars, self.layout.kept_at(first), count * self.layout.kept().bytes());
        }
        let names = storage.fields_after(step);
        for (probe, position) in self.record.probes.iter().zip(&self.positions) {
            copy(memory.buffer(names[probe.field]), position * bytes, bytes);
        }
    }

    /// Reads the rows that are due after step `from` up to step `to`, which were copied from the first row on.
    pub async fn read(&mut self, gpu: &Gpu, staging: &mut Staging, from: u64, to: u64) -> Result<()> {
        let (rows, width) = (self.due_between(from, to), self.width());
        let mut bytes = vec![0; rows as usize * width];
        let stored = Stored {
            pieces: std::slice::from_ref(&self.memory),
            piece_bytes: u64::MAX,
            extents: [1; 3],
            dtype: self.dtype,
        };
        staging.fetch(gpu, stored, 0, &mut bytes).await?;
        let mut step = from;
        for row in bytes.chunks_exact(width) {
            step += self.until_due(step);
            let (scalars, probed) = row.split_at(self.scalars[1] * self.layout.kept().bytes());
            let values: Vec<f64> = numbers(self.layout.kept(), scalars).collect();
            let scalars = self.record.scalars.iter().map(|&number| values[number]);
            self.rows.push(step, scalars.chain(numbers(self.dtype, probed)))?;
        }
        Ok(())
    }

    /// Returns the rows read since the last call.
    pub fn take(&mut self) -> Rows {
        self.rows.take()
    }

    /// Returns the bytes of a row.
    fn width(&self) -> usize {
        self.scalars[1] * self.layout.kept().bytes() + self.positions.len() * self.dtype.bytes()
    }
}

//! Values that a session's kernels note after each step: their tables and the rows on the device.

use std::sync::Arc;

use abide_core::backend::probed;
use abide_core::{DType, Error, Problem, Result, Session};
use abide_shaders::cuda::Noted;
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr};

use crate::driver::during;
use crate::memory::ask_for;

/// What kernels note, and where it goes.
pub(crate) struct Notes {
    dtype: DType,
    tables: Noted,
    /// On the device: the places, the lines, the columns, one after another.
    words: Option<CudaSlice<i32>>,
    values: Option<CudaSlice<u8>>,
    /// The rows of the last advance.
    steps: u64,
    /// The rows that launches have written.
    next: u64,
}

impl Notes {
    /// Returns what a problem's kernels note; `None` where they note nothing.
    pub fn new(problem: &Problem) -> Option<Notes> {
        (!problem.noted.is_empty()).then(|| Notes {
            dtype: problem.dtype,
            tables: Noted::of(problem),
            words: None,
            values: None,
            steps: 0,
            next: 0,
        })
    }

    /// Makes room for the rows of so many steps.
    pub fn begin(&mut self, steps: u64, stream: &Arc<CudaStream>) -> Result<()> {
        (self.steps, self.next) = (steps, 0);
        if self.words.is_none() {
            let Noted { places, lines, columns, firsts, .. } = &self.tables;
            let words = [places.as_flattened(), lines, columns, firsts].concat();
            ask_for(stream.context(), words.len() as u128 * 4)?;
            self.words = Some(stream.clone_htod(&words).map_err(during("loading the places of probes"))?);
        }
        let bytes = steps as u128 * self.row_bytes() as u128;
        if self.values.as_ref().is_none_or(|values| (values.len() as u128) < bytes) {
            self.values = None;
            ask_for(stream.context(), bytes)?;
            // What was asked for is there, so the number of bytes is one of memory.
            let values = stream.alloc_zeros(bytes as usize);
            self.values = Some(values.map_err(during("allocating the values of probes"))?);
        }
        Ok(())
    }

    /// Returns the kernels' `Noted`, in words of 64 bits.
    pub fn argument(&self, stream: &Arc<CudaStream>) -> [u64; 6] {
        let Noted { places, lines, columns, .. } = &self.tables;
        let words = self.words.as_ref().map_or(0, |words| words.device_ptr(stream).0);
        let lines_at = words + 4 * 3 * places.len() as u64;
        let columns_at = lines_at + 4 * lines.len() as u64;
        let firsts_at = columns_at + 4 * columns.len() as u64;
        let values = self.values.as_ref().map_or(0, |values| values.device_ptr(stream).0);
        // The count is the first half of its word, because hosts with CUDA are little-endian.
        let row = values + self.next * self.row_bytes() as u64;
        [words, lines_at, columns_at, firsts_at, row, places.len() as u64]
    }

    /// Goes on to the rows after so many steps.
    pub fn pass_steps(&mut self, steps: u64) {
        self.next += steps;
    }

    fn row_bytes(&self) -> usize {
        self.tables.places.len() * self.dtype.bytes()
    }

    /// Returns the rows of the last advance, a value for each of the problem's noted ones.
    pub fn read(&self, stream: &Arc<CudaStream>) -> Result<Vec<f64>> {
        let bytes = self.steps as usize * self.row_bytes();
        let Some(values) = self.values.as_ref().filter(|values| values.len() >= bytes) else {
            return Err(Error::device("cuda", "reading the values of probes", "none were noted"));
        };
        let bytes = stream.clone_dtoh(&values.slice(..bytes));
        let bytes = bytes.map_err(during("reading the values of probes"))?;
        Ok(match self.dtype {
            DType::F32 => self.gathered(bytes.as_chunks().0, |value| f32::from_ne_bytes(value).into()),
            DType::F64 => self.gathered(bytes.as_chunks().0, f64::from_ne_bytes),
        })
    }

    /// Returns for each row of the kernels' values those of the problem.
    fn gathered<const BYTES: usize>(
        &self,
        values: &[[u8; BYTES]],
        value: impl Fn([u8; BYTES]) -> f64,
    ) -> Vec<f64> {
        let columns = &self.tables.column_of;
        let rows = values.chunks_exact(self.tables.places.len().max(1));
        let mut gathered = Vec::with_capacity(rows.len() * columns.len());
        rows.for_each(|row| gathered.extend(columns.iter().map(|&column| value(row[column]))));
        gathered
    }
}

/// Sets the values of cells that a fixed boundary holds, of which kernels that keep no such cell note nothing.
pub(crate) fn fill_held(session: &mut dyn Session, problem: &Problem, rows: &mut [f64]) -> Result<()> {
    for (number, probe) in problem.noted.iter().enumerate() {
        if problem.is_held(probe.field, probe.index) {
            let value = probed(session, probe)?;
            rows.chunks_exact_mut(problem.noted.len()).for_each(|row| row[number] = value);
        }
    }
    Ok(())
}

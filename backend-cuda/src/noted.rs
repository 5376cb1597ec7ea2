//! Values that a session's kernels note after each step: the tables of each kernel, and the rows on the device.

use std::sync::Arc;

use abide_core::backend::probed;
use abide_core::{DType, Error, Plan, Problem, Result, Session};
use abide_shaders::cuda::Noted;
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr};

use crate::driver::during;
use crate::memory::ask_for;

/// What kernels note, and where it goes.
pub(crate) struct Notes {
    dtype: DType,
    noted: Noted,
    values: Option<CudaSlice<u8>>,
    /// The rows of the last advance.
    steps: u64,
    /// The rows that launches have written.
    next: u64,
}

/// The tables by which one kernel finds what it notes, on the device.
pub(crate) struct NotedTables {
    /// One after another.
    words: CudaSlice<i32>,
    /// The words of each.
    lengths: [usize; 4],
}

impl NotedTables {
    /// Loads the tables of a plan's kernel; `None` where the problem's kernels note nothing.
    pub fn load(problem: &Problem, plan: &Plan, stream: &Arc<CudaStream>) -> Result<Option<NotedTables>> {
        if problem.noted.is_empty() {
            return Ok(None);
        }
        let tables = Noted::of(problem).tables(problem, plan);
        let words = tables.concat();
        ask_for(stream.context(), words.len() as u128 * 4)?;
        let words = stream.clone_htod(&words).map_err(during("loading the places of probes"))?;
        Ok(Some(NotedTables { words, lengths: tables.each_ref().map(Vec::len) }))
    }

    fn addresses(&self, stream: &Arc<CudaStream>) -> [u64; 4] {
        let mut next = self.words.device_ptr(stream).0;
        self.lengths.map(|length| {
            let own = next;
            next += 4 * length as u64;
            own
        })
    }
}

impl Notes {
    /// The words of 64 bits of the kernels' `Noted`.
    pub const WORDS: usize = 6;

    /// Returns what a problem's kernels note; `None` where they note nothing.
    pub fn new(problem: &Problem) -> Option<Notes> {
        (!problem.noted.is_empty()).then(|| Notes {
            dtype: problem.dtype,
            noted: Noted::of(problem),
            values: None,
            steps: 0,
            next: 0,
        })
    }

    /// Makes room for the rows of so many steps.
    pub fn begin(&mut self, steps: u64, stream: &Arc<CudaStream>) -> Result<()> {
        (self.steps, self.next) = (steps, 0);
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

    /// Returns the `Noted` of a kernel with these tables.
    pub fn argument(&self, tables: Option<&NotedTables>, stream: &Arc<CudaStream>) -> [u64; Notes::WORDS] {
        let [cells, firsts, lines, columns] = tables.map_or([0; 4], |tables| tables.addresses(stream));
        let values = self.values.as_ref().map_or(0, |values| values.device_ptr(stream).0);
        // The count is the first half of its word, because hosts with CUDA are little-endian.
        let row = values + self.next * self.row_bytes() as u64;
        [cells, firsts, lines, columns, row, self.noted.columns() as u64]
    }

    /// Goes on to the rows after so many steps.
    pub fn pass_steps(&mut self, steps: u64) {
        self.next += steps;
    }

    fn row_bytes(&self) -> usize {
        self.noted.columns() * self.dtype.bytes()
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
            DType::F32 => self.noted.gathered(bytes.as_chunks().0, |value| f32::from_ne_bytes(value).into()),
            DType::F64 => self.noted.gathered(bytes.as_chunks().0, f64::from_ne_bytes),
        })
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

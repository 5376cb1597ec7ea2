//! The parameters of a session's kernels: those that stay, and a table of those that vary from stage to stage.

use std::ffi::c_void;
use std::sync::Arc;

use abide_core::{Array, DType, Error, Problem, Result};
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr};

use crate::driver::during;
use crate::memory::ask_for;
use crate::noted::{NotedTables, Notes};

const LOADING: &str = "loading parameters that vary";

/// The kernels' `Parameters`: a launch takes them by value.
pub(crate) struct Parameters {
    /// The values, and room for the addresses behind them.
    bytes: Vec<u8>,
    /// The bytes before the addresses.
    values: usize,
    /// What varies, where something does.
    varying: Option<Varying>,
    /// What the kernels note, where they do.
    notes: Option<Notes>,
    /// Steps for which memory is reserved, beside those begun.
    reserved: u64,
}

/// The parameters that vary, of each stage of each step that was handed over.
struct Varying {
    dtype: DType,
    /// Their numbers, among so many parameters.
    numbers: Vec<usize>,
    parameters: usize,
    /// The stages of a step.
    stages: usize,
    table: Option<CudaSlice<u8>>,
    /// The bytes of the table that are of the steps handed over.
    filled: usize,
    /// The bytes of the table before the next stage's.
    next: usize,
}

impl Parameters {
    /// Returns a problem's parameters, without what varies.
    pub fn new(problem: &Problem) -> Parameters {
        let numbers = problem.program.varying();
        let varying = (!numbers.is_empty()).then(|| Varying {
            dtype: problem.dtype,
            numbers,
            parameters: problem.parameters.len(),
            stages: problem.program.stages().len(),
            table: None,
            filled: 0,
            next: 0,
        });
        let notes = Notes::new(problem);
        let mut parameters = Parameters { bytes: Vec::new(), values: 0, varying, notes, reserved: 0 };
        parameters.set(problem);
        parameters
    }

    /// Takes over the values that the problem has now.
    pub fn set(&mut self, problem: &Problem) {
        self.bytes = parameter_bytes(problem.dtype, &problem.parameters);
        // Addresses stand behind them, where C++ puts them.
        self.values = self.bytes.len().next_multiple_of(8);
        let addresses =
            usize::from(self.varying.is_some()) + Notes::WORDS * usize::from(self.notes.is_some());
        if addresses > 0 {
            self.bytes.resize(self.values + 8 * addresses, 0);
        }
    }

    /// Returns whether parameters vary.
    pub fn vary(&self) -> bool {
        self.varying.is_some()
    }

    /// Takes over what varies in the next steps: `read` has the values of all parameters for each step and stage.
    fn vary_by(&mut self, read: &[f64], stream: &Arc<CudaStream>) -> Result<()> {
        let Some(varying) = &mut self.varying else { return Ok(()) };
        let rows = read.chunks_exact(varying.parameters.max(1));
        let values: Vec<f64> =
            rows.flat_map(|row| varying.numbers.iter().map(|&number| row[number])).collect();
        let values = Array::from_fn(varying.dtype, values.len(), |i| values[i]);
        let bytes = values.as_bytes();
        let table = varying.table_of(bytes.len(), stream)?;
        let mut own = table.slice_mut(..bytes.len());
        stream.memcpy_htod(bytes, &mut own).map_err(during(LOADING))?;
        (varying.filled, varying.next) = (bytes.len(), 0);
        Ok(())
    }

    /// Reserves memory for what so many steps note, and for what varies in at most so many that are begun at a time; returns its
    /// address, 0 where nothing varies.
    pub fn reserve(&mut self, steps: u64, at_a_time: u64, stream: &Arc<CudaStream>) -> Result<u64> {
        if let Some(notes) = &mut self.notes {
            notes.begin(steps, stream)?;
        }
        self.reserved = steps;
        let Some(varying) = &mut self.varying else { return Ok(0) };
        let bytes = varying.bytes(varying.stages) * at_a_time as usize;
        Ok(varying.table_of(bytes, stream)?.device_ptr(stream).0)
    }

    /// Fails unless what varies in so many steps is there.
    fn check(&self, steps: u64) -> Result<()> {
        let Some(varying) = &self.varying else { return Ok(()) };
        let there = varying.filled - varying.next;
        if steps as u128 * varying.bytes(varying.stages) as u128 <= there as u128 {
            return Ok(());
        }
        Err(Error::unsupported(
            "a session with parameters that vary from step to step",
            format!("their values in {steps} steps are not known"),
            "advance it by their values",
        ))
    }

    /// Returns the argument of a launch of a kernel that notes nothing.
    pub fn argument(&mut self, stream: &Arc<CudaStream>) -> *mut c_void {
        self.argument_noting(None, stream)
    }

    /// Returns the argument of a launch of a kernel that finds what it notes by these tables.
    pub fn argument_noting(&mut self, tables: Option<&NotedTables>, stream: &Arc<CudaStream>) -> *mut c_void {
        let varying = self.varying.as_ref().map(|varying| {
            varying.table.as_ref().map_or(0, |table| table.device_ptr(stream).0) + varying.next as u64
        });
        let notes = self.notes.as_ref().map(|notes| notes.argument(tables, stream));
        let addresses = varying.into_iter().chain(notes.into_iter().flatten());
        for (number, address) in addresses.enumerate() {
            let place = self.values + 8 * number;
            self.bytes[place..place + 8].copy_from_slice(&address.to_ne_bytes());
        }
        self.bytes.as_mut_ptr().cast()
    }

    /// Begins so many steps, with what varies in them, or with what is in the memory reserved for it. Fails where neither is known.
    pub fn begin(&mut self, steps: u64, read: &[f64], stream: &Arc<CudaStream>) -> Result<()> {
        let is_reserved = self.reserved > 0 && steps <= self.reserved;
        self.reserved = if is_reserved { self.reserved - steps } else { 0 };
        match (&mut self.varying, read) {
            (Some(varying), []) if is_reserved => {
                (varying.filled, varying.next) = (varying.bytes(varying.stages) * steps as usize, 0);
            }
            (_, []) => {}
            _ => self.vary_by(read, stream)?,
        }
        self.check(steps)?;
        match &mut self.notes {
            Some(notes) if !is_reserved => notes.begin(steps, stream),
            _ => Ok(()),
        }
    }

    /// Returns what the kernels have noted since [`Parameters::begin`].
    pub fn noted(&self, stream: &Arc<CudaStream>) -> Result<Vec<f64>> {
        self.notes.as_ref().map_or_else(|| Ok(Vec::new()), |notes| notes.read(stream))
    }

    /// Returns the values as a launch takes them, where nothing varies.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Goes on to the stages after so many.
    pub fn pass_stages(&mut self, stages: usize) {
        if let Some(varying) = &mut self.varying {
            varying.next += varying.bytes(stages);
        }
    }

    /// Goes on to the steps after so many.
    pub fn pass_steps(&mut self, steps: u64) {
        if let Some(varying) = &mut self.varying {
            varying.next += varying.bytes(varying.stages) * steps as usize;
        }
        if let Some(notes) = &mut self.notes {
            notes.pass_steps(steps);
        }
    }
}

impl Varying {
    /// Returns the table, with room for so many bytes.
    fn table_of(&mut self, bytes: usize, stream: &Arc<CudaStream>) -> Result<&mut CudaSlice<u8>> {
        let table = match self.table.take().filter(|table| table.len() >= bytes) {
            Some(table) => table,
            None => {
                ask_for(stream.context(), bytes as u128)?;
                stream.alloc_zeros(bytes.max(1)).map_err(during(LOADING))?
            }
        };
        Ok(self.table.insert(table))
    }

    fn bytes(&self, stages: usize) -> usize {
        stages * self.numbers.len() * self.dtype.bytes()
    }
}

/// Returns the bytes of the values in the run's type, at least one.
pub(crate) fn parameter_bytes(dtype: DType, parameters: &[f64]) -> Vec<u8> {
    let count = parameters.len().max(1);
    let values = Array::from_fn(dtype, count, |i| parameters.get(i).copied().unwrap_or(0.0));
    values.as_bytes().to_vec()
}

/// Sets one of a problem's parameters, by number.
pub(crate) fn set_parameter(parameters: &mut [f64], parameter: usize, value: f64) -> Result<()> {
    let count = parameters.len();
    match parameters.get_mut(parameter) {
        Some(slot) => {
            *slot = value;
            Ok(())
        }
        None => Err(Error::limit(
            "number of a parameter",
            parameter,
            count.saturating_sub(1),
            "use one of the program's parameters",
        )),
    }
}

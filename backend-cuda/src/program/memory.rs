//! The device memory of a program that is not plain: a buffer per entry of a [`Storage`], all scalars, the
//! leaves of reductions, the progress, and the rows of the record.

use std::sync::Arc;

use abide_core::program::{Buffer, Storage, Transforms};
use abide_core::{Array, DType, Error, Problem, Result, with_array};
use abide_shaders::cuda::{ProgramKernels, buffer_pitch, pitched_bytes, program_scalars};
use abide_shaders::numbers;
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr, result};

use crate::count::Counter;
use crate::driver::during;
use crate::lent::DeviceBuffer;
use crate::memory::ask_for;
use crate::window::Layout;

/// Device memory and the stream that works on it.
pub struct Memory {
    pub context: Arc<CudaContext>,
    pub stream: Arc<CudaStream>,
    dtype: DType,
    buffers: Vec<Allocation>,
    /// The parameters, and then the computed scalars, as [`program_scalars`] has them.
    scalars: CudaSlice<u8>,
    /// The kernels' `Progress`.
    progress: CudaSlice<u64>,
    /// The rows of the record that have not been taken.
    rows: CudaSlice<f64>,
    /// The addresses of the scalars as stages of fields read them, of the leaves of reductions, of the progress, of the
    /// rows, of the scalars in f64, and of the matrices.
    last: [u64; 6],
    leaves: CudaSlice<u8>,
    /// The matrices of transforms as kernels have them, and as they follow from the parameters.
    matrices: CudaSlice<u8>,
    transforms: Transforms,
    /// Whether a parameter has changed since they were made.
    pub are_matrices_stale: bool,
}

/// How far a run has come: the kernels' `Progress`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Progress {
    /// The run has ended by its condition, or because a scalar is not a number.
    pub has_ended: bool,
    /// The run is at a mark.
    pub is_at_mark: bool,
    /// Steps done.
    pub steps: u64,
    /// Rows of the record that have not been taken.
    pub rows: u64,
    /// Steps to the next row.
    pub until_due: u64,
    /// The mark that a scalar reaches next.
    pub mark: f64,
    /// Turns of the loop that is under way.
    pub turns: u64,
    /// Whether its condition holds.
    pub is_loop_over: bool,
}

impl Progress {
    pub fn words(self) -> [u64; 7] {
        let Progress { has_ended, is_at_mark, steps, rows, until_due, mark, turns, is_loop_over } = self;
        let stopped = u64::from(has_ended) | u64::from(is_at_mark) << 1 | u64::from(is_loop_over) << 2;
        // No block of a reduction is under way.
        [stopped, steps, rows, until_due, mark.to_bits(), turns, 0]
    }

    fn of(words: [u64; 7]) -> Progress {
        let [stopped, steps, rows, until_due, mark, turns, _] = words;
        let [has_ended, is_at_mark, is_loop_over] = [1, 2, 4].map(|bit| stopped & bit != 0);
        let mark = f64::from_bits(mark);
        Progress { has_ended, is_at_mark, steps, rows, until_due, mark, turns, is_loop_over }
    }
}

/// A buffer in device memory.
struct Allocation {
    memory: Arc<CudaSlice<u8>>,
    address: u64,
    buffer: Buffer,
}

impl Memory {
    /// Allocates all that a problem needs, with room for so many values of rows, and loads its scalars. The
    /// buffers have no values yet.
    pub fn new(
        problem: &Problem,
        storage: &Storage,
        kernels: &ProgramKernels,
        rows: usize,
        context: &Arc<CudaContext>,
    ) -> Result<Memory> {
        let stream = context.new_stream().map_err(during("making a stream"))?;
        let dtype = problem.dtype;
        let fields = storage.buffers.iter().map(|buffer| pitched_bytes(buffer, dtype) as u128).sum::<u128>();
        let transforms = Transforms::of(problem)?;
        let bytes = fields + (kernels.leaves + kernels.matrices.values) as u128 * dtype.bytes() as u128;
        ask_for(context, bytes + rows as u128 * size_of::<f64>() as u128)?;
        let buffers = storage.buffers.iter().map(|buffer| Allocation::new(&stream, buffer, dtype));
        let buffers = buffers.collect::<Result<_>>()?;
        let scalars = stream.clone_htod(&program_scalars(problem)).map_err(during("loading scalars"))?;
        let leaves = allocate(&stream, kernels.leaves * dtype.bytes())?;
        let mut matrices = kernels.matrices.bytes(problem, &transforms)?;
        matrices.resize(matrices.len().max(1), 0);
        let matrices = stream.clone_htod(&matrices).map_err(during("loading matrices"))?;
        let words = Progress::default().words().len();
        let progress = stream.alloc_zeros(words).map_err(during("allocating the progress"))?;
        let rows = stream.alloc_zeros(rows.max(1)).map_err(during("allocating the record"))?;
        // Addresses are asked for now, because asking adds an event to the stream, which a recording does not
        // want.
        let exact = scalars.device_ptr(&stream).0;
        let last = [
            exact + rounded_at(scalars.len(), dtype) as u64,
            leaves.device_ptr(&stream).0,
            progress.device_ptr(&stream).0,
            rows.device_ptr(&stream).0,
            exact,
            matrices.device_ptr(&stream).0,
        ];
        Ok(Memory {
            context: context.clone(),
            stream,
            dtype,
            buffers,
            scalars,
            progress,
            rows,
            last,
            leaves,
            matrices,
            transforms,
            are_matrices_stale: false,
        })
    }

    /// Binds the context to the thread, and makes those matrices anew that a parameter has changed.
    pub fn make_ready(&mut self, problem: &Problem, kernels: &ProgramKernels) -> Result<()> {
        self.context.bind_to_thread().map_err(during("binding the context"))?;
        if std::mem::take(&mut self.are_matrices_stale) && self.transforms.renew(problem)? {
            let matrices = kernels.matrices.bytes(problem, &self.transforms)?;
            self.stream.memcpy_htod(&matrices, &mut self.matrices).map_err(during("loading matrices"))?;
            self.stream.synchronize().map_err(during("loading matrices"))?;
        }
        Ok(())
    }

    /// Returns how far the run has come.
    pub fn progress(&self) -> Result<Progress> {
        let words = self.stream.clone_dtoh(&self.progress).map_err(during("reading the progress"))?;
        self.stream.synchronize().map_err(during("reading the progress"))?;
        let words =
            words.try_into().map_err(|_| Error::device("cuda", "reading the progress", "too short"))?;
        Ok(Progress::of(words))
    }

    /// Sets how far the run has come.
    pub fn set_progress(&mut self, progress: Progress) -> Result<()> {
        let words = progress.words();
        self.stream.memcpy_htod(&words, &mut self.progress).map_err(during("setting the progress"))?;
        self.stream.synchronize().map_err(during("setting the progress"))
    }

    /// Returns the first values of the rows.
    pub fn rows(&self, values: usize) -> Result<Vec<f64>> {
        let rows = self.rows.slice(..values.min(self.rows.len()));
        let rows = self.stream.clone_dtoh(&rows).map_err(during("reading the record"))?;
        self.stream.synchronize().map_err(during("reading the record"))?;
        Ok(rows)
    }

    /// Returns the addresses of buffers, then of the scalars, leaves, progress, rows, scalars in f64 and matrices: the kernels'
    /// `Arguments`. A slot without a buffer is never used.
    pub fn arguments(&self, buffers: &[Option<usize>], slots: usize) -> Vec<u64> {
        let address = |slot: usize| {
            buffers.get(slot).copied().flatten().map_or(0, |buffer| self.buffers[buffer].address)
        };
        (0..slots).map(address).chain(self.last).collect()
    }

    /// Returns the address of a buffer, whose number has been checked.
    pub fn address(&self, buffer: usize) -> u64 {
        self.buffers[buffer].address
    }

    /// Reads a window of a buffer, which has been checked as has the buffer's number.
    pub fn read(&self, buffer: usize, window: [[usize; 3]; 2]) -> Result<Array> {
        let Allocation { address, buffer, .. } = &self.buffers[buffer];
        self.context.bind_to_thread().map_err(during("binding the context"))?;
        // SAFETY: the buffer has its layout.
        unsafe { self.layout(buffer).read(*address, window, &self.stream) }
    }

    /// Writes a window of a buffer, which has been checked as have the buffer's number and the array.
    pub fn write(&mut self, buffer: usize, window: [[usize; 3]; 2], array: &Array) -> Result<()> {
        let Allocation { address, buffer, .. } = &self.buffers[buffer];
        self.context.bind_to_thread().map_err(during("binding the context"))?;
        // SAFETY: the buffer has its layout; the array was checked.
        unsafe { self.layout(buffer).write(*address, window, array, &self.stream) }
    }

    /// Counts the values of a buffer that are NaN or infinite.
    pub fn non_finite(&self, buffer: usize, counter: &Counter) -> Result<u64> {
        let Allocation { address, buffer, .. } = &self.buffers[buffer];
        // SAFETY: the buffer has its layout.
        unsafe { counter.count(*address, &self.layout(buffer), &self.stream) }
    }

    /// Returns a buffer, whose number has been checked, for other code.
    pub fn export(&self, buffer: usize) -> DeviceBuffer {
        let Allocation { memory, buffer, .. } = &self.buffers[buffer];
        DeviceBuffer::new(memory, 0, &self.stream, self.layout(buffer))
    }

    /// Returns a buffer as [`Memory::export`] does; `None` for one of a narrower type than the run's.
    pub fn lend(&self, buffer: usize) -> Option<DeviceBuffer> {
        self.buffers[buffer].buffer.precision.is_none().then(|| self.export(buffer))
    }

    fn layout(&self, buffer: &Buffer) -> Layout {
        let pitch = buffer_pitch(buffer, self.dtype);
        Layout { extents: buffer.extents, pitch, dtype: self.dtype, precision: buffer.precision }
    }

    /// Returns the scalars' values: first the parameters'.
    pub fn scalars(&self) -> Result<Vec<f64>> {
        let bytes = self.stream.clone_dtoh(&self.scalars).map_err(during("reading scalars"))?;
        self.stream.synchronize().map_err(during("reading scalars"))?;
        Ok(numbers(DType::F64, &bytes[..exact_bytes(bytes.len(), self.dtype)]).collect())
    }

    /// Returns the first of the values of leaves, once all that was launched is done.
    pub fn leaves(&self, count: usize) -> Result<Array> {
        let mut values = Array::zeros(self.dtype, count)?;
        let bytes = count * self.dtype.bytes();
        let from = self.leaves.try_slice(..bytes).ok_or_else(|| {
            Error::device("cuda", "reading leaves of a reduction", format!("there are fewer than {count}"))
        })?;
        with_array!(&mut values, values => {
            self.stream.memcpy_dtoh(&from, bytemuck::cast_slice_mut(values)).map_err(during("reading leaves"))?;
        });
        self.stream.synchronize().map_err(during("reading leaves"))?;
        Ok(values)
    }

    /// Sets one of the scalars, whose number has been checked.
    pub fn set_scalar(&mut self, number: usize, value: f64) -> Result<()> {
        let rounded_at = rounded_at(self.scalars.len(), self.dtype);
        // Where fields are f64, both are the same place.
        for (dtype, begin) in [(DType::F64, 0), (self.dtype, rounded_at)] {
            let (one, size) = (Array::from_fn(dtype, 1, |_| value), dtype.bytes());
            let first = begin + number * size;
            let mut place = self.scalars.slice_mut(first..first + size);
            self.stream.memcpy_htod(one.as_bytes(), &mut place).map_err(during("setting a scalar"))?;
        }
        self.stream.synchronize().map_err(during("setting a scalar"))
    }

    /// Moves the fields, of which some share a buffer, to the first buffers of another storage, one for each.
    /// `names` are the buffers in which they lie. Nothing has changed where memory is
    /// missing.
    pub fn unalias(&mut self, names: &[usize], storage: &Storage) -> Result<()> {
        let kinds: Vec<&Buffer> = self.buffers.iter().map(|known| &known.buffer).collect();
        let from = storage.taken(&kinds, names);
        let missing = || storage.buffers.iter().zip(&from).filter(|(_, from)| from.is_none());
        ask_for(&self.context, missing().map(|(buffer, _)| pitched_bytes(buffer, self.dtype) as u128).sum())?;
        let fresh = missing().map(|(buffer, _)| Allocation::new(&self.stream, buffer, self.dtype));
        let mut fresh = fresh.collect::<Result<Vec<_>>>()?.into_iter();
        let mut old: Vec<Option<Allocation>> = self.buffers.drain(..).map(Some).collect();
        let all = from.iter().map(|from| from.and_then(|from| old[from].take()).or_else(|| fresh.next()));
        self.buffers = all.flatten().collect();
        for (field, &name) in names.iter().enumerate() {
            let Some(source) = from.iter().position(|&from| from == Some(name)) else { continue };
            if source == field {
                continue;
            }
            let [to, source] = [field, source].map(|number| &self.buffers[number]);
            let bytes = pitched_bytes(&to.buffer, self.dtype);
            // SAFETY: both buffers are of the same kind, so each has this many bytes, and they are not the
            // same.
            unsafe { result::memcpy_dtod_async(to.address, source.address, bytes, self.stream.cu_stream()) }
                .map_err(during("copying a field"))?;
        }
        self.stream.synchronize().map_err(during("copying a field"))
    }
}

/// Returns the bytes of the scalars in f64 among all of [`program_scalars`].
fn exact_bytes(all: usize, dtype: DType) -> usize {
    match dtype {
        DType::F32 => all / (size_of::<f64>() + size_of::<f32>()) * size_of::<f64>(),
        DType::F64 => all,
    }
}

/// Returns where, among [`program_scalars`], the scalars begin as stages of fields read them.
pub fn rounded_at(all: usize, dtype: DType) -> usize {
    match dtype {
        DType::F32 => exact_bytes(all, dtype),
        DType::F64 => 0,
    }
}

impl Allocation {
    fn new(stream: &Arc<CudaStream>, buffer: &Buffer, dtype: DType) -> Result<Allocation> {
        let memory = allocate(stream, pitched_bytes(buffer, dtype))?;
        let address = memory.device_ptr(stream).0;
        Ok(Allocation { memory: Arc::new(memory), address, buffer: buffer.clone() })
    }
}

fn allocate(stream: &Arc<CudaStream>, bytes: usize) -> Result<CudaSlice<u8>> {
    // SAFETY: the memory is written before it is read: fields by loading them, the rest by the stage that
    // makes it.
    unsafe { stream.alloc::<u8>(bytes.max(1)) }.map_err(during("allocating a field"))
}

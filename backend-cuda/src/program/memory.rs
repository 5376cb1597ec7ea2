//! The device memory of a program that is not plain: a buffer per entry of a [`Storage`], all scalars, and
//! the leaves of reductions.

use std::ffi::c_void;
use std::sync::Arc;

use abide_core::program::{Buffer, Storage};
use abide_core::{Array, DType, Problem, Result, with_array};
use abide_shaders::cuda::{ProgramKernels, buffer_pitch, pitched_values};
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr, result};

use crate::driver::during;
use crate::memory::{Rows, Way, ask_for};

/// Device memory and the stream that works on it.
pub struct Memory {
    pub context: Arc<CudaContext>,
    pub stream: Arc<CudaStream>,
    dtype: DType,
    buffers: Vec<Allocation>,
    /// The parameters, and then the computed scalars.
    scalars: CudaSlice<u8>,
    /// Whether the run has ended, and the steps done.
    progress: CudaSlice<u64>,
    /// The addresses of the scalars, of the leaves of reductions and of the progress.
    last: [u64; 3],
    _leaves: CudaSlice<u8>,
}

/// A buffer in device memory.
struct Allocation {
    /// Keeps the memory.
    _memory: CudaSlice<u8>,
    address: u64,
    buffer: Buffer,
}

impl Memory {
    /// Allocates all that a problem needs, and loads its scalars. The buffers have no values yet.
    pub fn new(
        problem: &Problem,
        storage: &Storage,
        kernels: &ProgramKernels,
        context: &Arc<CudaContext>,
    ) -> Result<Memory> {
        let stream = context.new_stream().map_err(during("making a stream"))?;
        let dtype = problem.dtype;
        let values = storage.buffers.iter().map(|buffer| pitched_values(buffer, dtype) as u128).sum::<u128>();
        ask_for(context, (values + kernels.leaves as u128) * dtype.bytes() as u128)?;
        let all: Vec<f64> = problem.parameters.iter().chain(&problem.scalars).copied().collect();
        let scalars = Array::from_fn(dtype, all.len().max(1), |i| all.get(i).copied().unwrap_or(0.0));
        let buffers = storage.buffers.iter().map(|buffer| Allocation::new(&stream, buffer, dtype));
        let buffers = buffers.collect::<Result<_>>()?;
        let scalars = stream.clone_htod(scalars.as_bytes()).map_err(during("loading scalars"))?;
        let leaves = allocate(&stream, kernels.leaves * dtype.bytes())?;
        let progress: CudaSlice<u64> = stream.alloc_zeros(2).map_err(during("allocating the progress"))?;
        // Addresses are asked for now, because asking adds an event to the stream, which a recording does not
        // want.
        let last =
            [scalars.device_ptr(&stream).0, leaves.device_ptr(&stream).0, progress.device_ptr(&stream).0];
        Ok(Memory {
            buffers,
            last,
            scalars,
            progress,
            _leaves: leaves,
            context: context.clone(),
            stream,
            dtype,
        })
    }

    /// Returns the steps done since the progress was last forgotten, as kernels count them where a condition
    /// may end the run.
    pub fn steps(&self) -> Result<u64> {
        let progress = self.stream.clone_dtoh(&self.progress).map_err(during("reading the progress"))?;
        self.stream.synchronize().map_err(during("reading the progress"))?;
        Ok(progress.get(1).copied().unwrap_or(0))
    }

    /// Forgets that a condition has ended the run, and the steps done.
    pub fn forget_progress(&mut self) -> Result<()> {
        self.stream.memset_zeros(&mut self.progress).map_err(during("setting the progress"))
    }

    /// Returns the addresses of buffers, then of the scalars, leaves and progress: the kernels' `Arguments`. A
    /// slot without a buffer is never used.
    pub fn arguments(&self, buffers: &[Option<usize>], slots: usize) -> Vec<u64> {
        let address = |slot: usize| {
            buffers.get(slot).copied().flatten().map_or(0, |buffer| self.buffers[buffer].address)
        };
        (0..slots).map(address).chain(self.last).collect()
    }

    pub fn read(&self, buffer: usize) -> Result<Array> {
        let Allocation { address, buffer, .. } = &self.buffers[buffer];
        let mut array = Array::zeros(self.dtype, buffer.len())?;
        self.context.bind_to_thread().map_err(during("binding the context"))?;
        let host = with_array!(&mut array, values => values.as_mut_ptr().cast::<c_void>());
        // SAFETY: the array has each of the buffer's values, and the buffer a pitch for each row; the stream
        // is waited for before the array is used.
        unsafe { self.rows(buffer).copy(Way::ToHost, host, *address, &self.stream) }
            .map_err(during("reading a field"))?;
        self.stream.synchronize().map_err(during("reading a field"))?;
        Ok(array)
    }

    /// Writes all values of a buffer, whose number has been checked.
    pub fn write(&mut self, buffer: usize, array: &Array) -> Result<()> {
        let Allocation { address, buffer, .. } = &self.buffers[buffer];
        self.context.bind_to_thread().map_err(during("binding the context"))?;
        let host = with_array!(array, values => values.as_ptr().cast_mut().cast::<c_void>());
        // SAFETY: the array has each of the buffer's values, as was checked, and the buffer a pitch for each
        // row; the stream is waited for before the array can go.
        unsafe { self.rows(buffer).copy(Way::ToDevice, host, *address, &self.stream) }
            .map_err(during("writing a field"))?;
        self.stream.synchronize().map_err(during("writing a field"))
    }

    fn rows(&self, buffer: &Buffer) -> Rows {
        let bytes = self.dtype.bytes();
        Rows {
            count: buffer.extents[0] * buffer.extents[1],
            bytes: buffer.extents[2] * bytes,
            pitch: buffer_pitch(buffer, self.dtype) * bytes,
        }
    }

    /// Returns the scalars' values: first the parameters'.
    pub fn scalars(&self) -> Result<Vec<u8>> {
        let bytes = self.stream.clone_dtoh(&self.scalars).map_err(during("reading scalars"))?;
        self.stream.synchronize().map_err(during("reading scalars"))?;
        Ok(bytes)
    }

    /// Sets one of the scalars, whose number has been checked.
    pub fn set_scalar(&mut self, number: usize, value: f64) -> Result<()> {
        let (one, size) = (Array::from_fn(self.dtype, 1, |_| value), self.dtype.bytes());
        let mut place = self.scalars.slice_mut(number * size..(number + 1) * size);
        self.stream.memcpy_htod(one.as_bytes(), &mut place).map_err(during("setting a scalar"))?;
        self.stream.synchronize().map_err(during("setting a scalar"))
    }

    /// Moves the fields, of which some share a buffer, to the first buffers of another storage, one for each.
    /// `names` are the buffers in which they lie. Nothing has changed where memory is
    /// missing.
    pub fn settle(&mut self, names: &[usize], storage: &Storage) -> Result<()> {
        let kinds: Vec<&Buffer> = self.buffers.iter().map(|known| &known.buffer).collect();
        let from = storage.taken(&kinds, names);
        let missing = || storage.buffers.iter().zip(&from).filter(|(_, from)| from.is_none());
        let values: u128 = missing().map(|(buffer, _)| pitched_values(buffer, self.dtype) as u128).sum();
        ask_for(&self.context, values * self.dtype.bytes() as u128)?;
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
            let bytes = pitched_values(&to.buffer, self.dtype) * self.dtype.bytes();
            // SAFETY: both buffers are of the same kind, so each has this many bytes, and they are not the
            // same.
            unsafe { result::memcpy_dtod_async(to.address, source.address, bytes, self.stream.cu_stream()) }
                .map_err(during("copying a field"))?;
        }
        self.stream.synchronize().map_err(during("copying a field"))
    }
}

impl Allocation {
    fn new(stream: &Arc<CudaStream>, buffer: &Buffer, dtype: DType) -> Result<Allocation> {
        let memory = allocate(stream, pitched_values(buffer, dtype) * dtype.bytes())?;
        let address = memory.device_ptr(stream).0;
        Ok(Allocation { _memory: memory, address, buffer: buffer.clone() })
    }
}

fn allocate(stream: &Arc<CudaStream>, bytes: usize) -> Result<CudaSlice<u8>> {
    // SAFETY: the memory is written before it is read: fields by loading them, the rest by the stage that
    // makes it.
    unsafe { stream.alloc::<u8>(bytes.max(1)) }.map_err(during("allocating a field"))
}

//! The fields of a session in device memory: two buffers each, used by turns.

use std::ffi::c_void;
use std::sync::Arc;

use abide_core::backend::{check_field, check_window, window_of};
use abide_core::{Array, Error, Problem, Result, with_array};
use abide_shaders::cuda::{pitched_cells, row_pitch};
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr, DriverError, sys};

use crate::driver::during;

/// Fields in device memory and the stream that works on them.
pub(crate) struct Fields {
    pub problem: Problem,
    pub context: Arc<CudaContext>,
    pub stream: Arc<CudaStream>,
    buffers: Vec<[Buffer; 2]>,
    /// The index of the buffer that holds the current values of each field.
    current: Vec<usize>,
}

/// The direction of a copy.
#[derive(Debug, Clone, Copy)]
enum Way {
    ToHost,
    ToDevice,
}

/// One allocation; a field that is never written has one allocation for both buffers.
type Buffer = Arc<CudaSlice<u8>>;

impl Fields {
    /// Allocates the fields and loads the initial values.
    pub fn new(problem: &Problem, context: &Arc<CudaContext>, values: &[Array]) -> Result<Fields> {
        let stream = context.new_stream().map_err(during("making a stream"))?;
        let bytes = pitched_cells(problem) * problem.dtype.bytes();
        let fields = problem.program.fields().len();
        let written = (0..fields).filter(|&f| problem.program.is_written(f)).count();
        let (free, _) = context.mem_get_info().map_err(during("asking for free memory"))?;
        let needed = (fields + written) as u128 * bytes as u128;
        if needed > free as u128 {
            return Err(Error::limit(
                "bytes of device memory",
                needed,
                format!("{free} free"),
                "choose a smaller size, f32, or another backend",
            ));
        }
        let allocate = || {
            // SAFETY: the buffer is written before it is read: by the load below, or by the first step.
            unsafe { stream.alloc::<u8>(bytes) }.map(Arc::new).map_err(during("allocating a field"))
        };
        let mut buffers = Vec::with_capacity(fields);
        for field in 0..fields {
            let first = allocate()?;
            let second = if problem.program.is_written(field) { allocate()? } else { first.clone() };
            buffers.push([first, second]);
        }
        let mut all = Fields {
            problem: problem.clone(),
            context: context.clone(),
            stream,
            buffers,
            current: vec![0; fields],
        };
        for (field, array) in values.iter().enumerate() {
            all.write(field, array)?;
        }
        Ok(all)
    }

    /// Returns the device's addresses of the current and the next buffer of every field, in the order of the
    /// kernels' `Buffers`.
    pub fn pointers(&self, flipped: &[bool]) -> Vec<u64> {
        let address = |field: usize, next: usize| {
            let turn = self.current[field] ^ usize::from(flipped[field]) ^ next;
            self.buffers[field][turn].device_ptr(&self.stream).0
        };
        let fields = 0..self.buffers.len();
        fields.clone().map(|f| address(f, 0)).chain(fields.map(|f| address(f, 1))).collect()
    }

    /// Returns which fields have changed buffers after `steps` steps and the first `stages` stages of one
    /// more.
    pub fn flips(&self, steps: u64, stages: usize) -> Vec<bool> {
        let all = self.problem.program.stages();
        let count = |field: usize, stages: usize| {
            all[..stages].iter().filter(|s| s.writes.contains(&field)).count() as u64
        };
        let odd = |field| (count(field, all.len()) * (steps % 2) + count(field, stages)) % 2 == 1;
        (0..self.buffers.len()).map(odd).collect()
    }

    /// Notes that `steps` steps were done.
    pub fn advanced(&mut self, steps: u64) {
        let flips = self.flips(steps, 0);
        for (turn, flipped) in self.current.iter_mut().zip(flips) {
            *turn ^= usize::from(flipped);
        }
    }

    /// Notes that a pass has written every field that changes into its other buffer.
    pub fn passed(&mut self) {
        for (field, turn) in self.current.iter_mut().enumerate() {
            *turn ^= usize::from(self.problem.program.is_written(field));
        }
    }

    fn pointer(&self, field: usize) -> Result<sys::CUdeviceptr> {
        match self.buffers.get(field) {
            Some(pair) => Ok(pair[self.current[field]].device_ptr(&self.stream).0),
            None => Err(Error::limit(
                "number of a field",
                field,
                self.buffers.len() - 1,
                "use one of the program's fields",
            )),
        }
    }

    pub fn read(&self, field: usize) -> Result<Array> {
        let mut array = Array::zeros(self.problem.dtype, self.problem.shape.cells())?;
        let from = self.pointer(field)?;
        self.context.bind_to_thread().map_err(during("binding the context"))?;
        let host = with_array!(&mut array, values => values.as_mut_ptr().cast::<c_void>());
        // SAFETY: the array has a value of this type for each cell; the stream is waited for before the array
        // is used.
        unsafe { self.copy(Way::ToHost, host, from) }.map_err(during("reading a field"))?;
        self.stream.synchronize().map_err(during("reading a field"))?;
        Ok(array)
    }

    pub fn read_window(&self, field: usize, low: [usize; 3], high: [usize; 3]) -> Result<Array> {
        let extents = self.problem.extents_of(field);
        check_window(extents, low, high)?;
        window_of(extents, &self.read(field)?, low, high)
    }

    pub fn write(&mut self, field: usize, array: &Array) -> Result<()> {
        let to = self.pointer(field)?;
        check_field(&self.problem, field, array)?;
        self.context.bind_to_thread().map_err(during("binding the context"))?;
        let host = with_array!(array, values => values.as_ptr().cast_mut().cast::<c_void>());
        // SAFETY: the array has a value of this type for each cell, as was checked; the stream is waited for
        // before the array can go.
        unsafe { self.copy(Way::ToDevice, host, to) }.map_err(during("writing a field"))?;
        self.stream.synchronize().map_err(during("writing a field"))
    }

    /// Copies a field between the host, where rows follow each other, and a buffer, where they are a pitch
    /// apart.
    ///
    /// # Safety
    ///
    /// `host` has room for all cells until the stream has finished the copy; it is not written on the way to
    /// the device.
    unsafe fn copy(&self, way: Way, host: *mut c_void, device: sys::CUdeviceptr) -> Result<(), DriverError> {
        let [planes, rows, row] = self.problem.shape.padded();
        let bytes = self.problem.dtype.bytes();
        let (row, pitch) = (row * bytes, row_pitch(&self.problem) * bytes);
        // Rows without gaps are copied as one row, because a strided copy may not span 2 GiB.
        let (width, height) = if row == pitch { (planes * rows * row, 1) } else { (row, planes * rows) };
        let (stream, there) = (self.stream.cu_stream(), sys::CUmemorytype::CU_MEMORYTYPE_DEVICE);
        let here = sys::CUmemorytype::CU_MEMORYTYPE_HOST;
        if height == 1 {
            // SAFETY: as promised; a buffer is never shorter than the field.
            return unsafe {
                match way {
                    Way::ToHost => sys::cuMemcpyDtoHAsync_v2(host, device, width, stream),
                    Way::ToDevice => sys::cuMemcpyHtoDAsync_v2(device, host, width, stream),
                }
            }
            .result();
        }
        let ((from, from_pitch), (to, to_pitch)) = match way {
            Way::ToHost => ((there, pitch), (here, row)),
            Way::ToDevice => ((here, row), (there, pitch)),
        };
        let copy = sys::CUDA_MEMCPY2D_st {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: from,
            srcHost: host,
            srcDevice: device,
            srcArray: std::ptr::null_mut(),
            srcPitch: from_pitch,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: to,
            dstHost: host,
            dstDevice: device,
            dstArray: std::ptr::null_mut(),
            dstPitch: to_pitch,
            WidthInBytes: width,
            Height: height,
        };
        // SAFETY: as promised; a buffer has the pitch's bytes for each row.
        unsafe { sys::cuMemcpy2DAsync_v2(&raw const copy, stream) }.result()
    }
}

/// Returns the bytes of the kernels' `Parameters`: the values in the run's type, at least one.
pub(crate) fn parameter_bytes(problem: &Problem) -> Vec<u8> {
    let count = problem.parameters.len().max(1);
    let values = Array::from_fn(problem.dtype, count, |i| problem.parameters.get(i).copied().unwrap_or(0.0));
    values.as_bytes().to_vec()
}

/// Sets a parameter of a problem, by number.
pub(crate) fn set_parameter(problem: &mut Problem, parameter: usize, value: f64) -> Result<()> {
    let count = problem.parameters.len();
    match problem.parameters.get_mut(parameter) {
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

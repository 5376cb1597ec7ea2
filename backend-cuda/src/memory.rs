//! The fields of a session in device memory: two buffers each, or each array of components, used by turns.

use std::ops::Range;
use std::sync::Arc;

use abide_core::backend::{check_field, check_values, check_window};
use abide_core::{Array, Error, Problem, Result};
use abide_shaders::cuda::{pitched_cells, row_pitch};
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr, sys};

use crate::count::Counter;
use crate::driver::during;
use crate::lent::DeviceBuffer;
use crate::window::Layout;

/// Fields in device memory and the stream that works on them.
pub(crate) struct Fields {
    pub problem: Problem,
    pub context: Arc<CudaContext>,
    pub stream: Arc<CudaStream>,
    /// The fields of each array.
    arrays: Vec<Range<usize>>,
    buffers: Vec<[Buffer; 2]>,
    /// The index of the buffer that holds the current values of each array.
    current: Vec<usize>,
}

/// Fails if the device does not have this many bytes free.
pub(crate) fn ask_for(context: &CudaContext, bytes: u128) -> Result<()> {
    let (free, _) = context.mem_get_info().map_err(during("asking for free memory"))?;
    if bytes <= free as u128 {
        return Ok(());
    }
    Err(Error::limit(
        "bytes of device memory",
        bytes,
        format!("{free} free"),
        "choose a smaller size, f32, or another backend",
    ))
}

/// One allocation; an array that is never written has one allocation for both buffers.
type Buffer = Arc<CudaSlice<u8>>;

/// Memory for what tiles of a resident kernel exchange. They do so by turns in two copies of every field that
/// changes; one is the field's other buffer.
pub(crate) struct DoubleBuffer {
    spare: Vec<Option<CudaSlice<u8>>>,
}

impl DoubleBuffer {
    pub fn new(fields: &Fields) -> Result<DoubleBuffer> {
        let problem = &fields.problem;
        let bytes = pitched_cells(problem) * problem.dtype.bytes();
        let written = |field: usize| problem.program.is_written(field);
        let count = (0..fields.buffers.len()).filter(|&field| written(field)).count();
        ask_for(&fields.context, count as u128 * bytes as u128)?;
        let allocate = |field: usize| {
            // SAFETY: a tile reads what another has written in the same launch, and nothing else.
            let spare = written(field).then(|| unsafe { fields.stream.alloc::<u8>(bytes) });
            spare.transpose().map_err(during("allocating what tiles exchange"))
        };
        Ok(DoubleBuffer { spare: (0..fields.buffers.len()).map(allocate).collect::<Result<_>>()? })
    }

    /// Returns the addresses of the two copies, in the order of the kernels' `Buffers`; `buffers` are those of
    /// the fields.
    pub fn pointers(&self, buffers: &[u64], stream: &Arc<CudaStream>) -> Vec<u64> {
        let others = &buffers[self.spare.len()..];
        let spare = self.spare.iter().zip(others);
        let spare = spare.map(|(one, other)| one.as_ref().map_or(*other, |one| one.device_ptr(stream).0));
        others.iter().copied().chain(spare).collect()
    }
}

impl Fields {
    /// Allocates the fields and loads the initial values.
    pub fn new(problem: &Problem, context: &Arc<CudaContext>, values: &[Array]) -> Result<Fields> {
        let stream = context.new_stream().map_err(during("making a stream"))?;
        let bytes = pitched_cells(problem) * problem.dtype.bytes();
        let arrays = problem.program.arrays();
        let is_written = |array: &Range<usize>| problem.program.is_written(array.start);
        let all = arrays.iter().map(|array| array.len() * (1 + usize::from(is_written(array))));
        ask_for(context, all.sum::<usize>() as u128 * bytes as u128)?;
        let allocate = |array: &Range<usize>| {
            // SAFETY: the buffer is written before it is read: by the load below, or by the first step.
            unsafe { stream.alloc::<u8>(array.len() * bytes) }
                .map(Arc::new)
                .map_err(during("allocating a field"))
        };
        let mut buffers = Vec::with_capacity(arrays.len());
        for array in &arrays {
            let first = allocate(array)?;
            let second = if is_written(array) { allocate(array)? } else { first.clone() };
            buffers.push([first, second]);
        }
        let mut all = Fields {
            problem: problem.clone(),
            context: context.clone(),
            stream,
            current: vec![0; arrays.len()],
            arrays,
            buffers,
        };
        for (field, array) in values.iter().enumerate() {
            all.write(field, array)?;
        }
        Ok(all)
    }

    /// Returns the device's addresses of the current and the next buffer of every array, in the order of the
    /// kernels' `Buffers`.
    pub fn pointers(&self, flipped: &[bool]) -> Vec<u64> {
        let address = |array: usize, next: usize| {
            let turn = self.current[array] ^ usize::from(flipped[array]) ^ next;
            self.buffers[array][turn].device_ptr(&self.stream).0
        };
        let arrays = 0..self.buffers.len();
        arrays.clone().map(|a| address(a, 0)).chain(arrays.map(|a| address(a, 1))).collect()
    }

    /// Returns which of the two buffers of each array the next pass writes.
    pub fn next_turns(&self) -> Vec<usize> {
        self.current.iter().map(|turn| turn ^ 1).collect()
    }

    /// Returns both buffers of every array.
    pub fn both(&self) -> Vec<[DeviceBuffer; 2]> {
        let lent = |buffer: &Buffer| DeviceBuffer::new(buffer, 0, &self.stream, self.layout());
        self.buffers.iter().map(|buffers| [lent(&buffers[0]), lent(&buffers[1])]).collect()
    }

    /// Returns which arrays have changed buffers after `steps` steps and the first `stages` stages of one
    /// more.
    pub fn flips(&self, steps: u64, stages: usize) -> Vec<bool> {
        let all = self.problem.program.stages();
        let count = |field: usize, stages: usize| {
            all[..stages].iter().filter(|s| s.writes.contains(&field)).count() as u64
        };
        let odd = |field| (count(field, all.len()) * (steps % 2) + count(field, stages)) % 2 == 1;
        // All fields of an array are written by the same stages.
        self.arrays.iter().map(|array| odd(array.start)).collect()
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
        for (array, turn) in self.arrays.iter().zip(&mut self.current) {
            *turn ^= usize::from(self.problem.program.is_written(array.start));
        }
    }

    /// Returns the current buffer of a field's array, and the byte at which the field begins in it.
    fn place(&self, field: usize) -> Option<(&Buffer, usize)> {
        let array = self.arrays.partition_point(|array| array.end <= field);
        let before = field - self.arrays.get(array)?.start;
        let bytes = pitched_cells(&self.problem) * self.problem.dtype.bytes();
        Some((&self.buffers[array][self.current[array]], before * bytes))
    }

    fn pointer(&self, field: usize) -> Result<sys::CUdeviceptr> {
        match self.place(field) {
            Some((buffer, first)) => Ok(buffer.device_ptr(&self.stream).0 + first as u64),
            None => Err(no_field(field, self.problem.program.fields().len())),
        }
    }

    pub fn read(&self, field: usize) -> Result<Array> {
        self.read_window(field, [0; 3], self.problem.shape.padded())
    }

    pub fn read_window(&self, field: usize, low: [usize; 3], high: [usize; 3]) -> Result<Array> {
        let from = self.pointer(field)?;
        let layout = self.layout();
        check_window(layout.extents, low, high)?;
        self.context.bind_to_thread().map_err(during("binding the context"))?;
        // SAFETY: every buffer has this layout.
        unsafe { layout.read(from, [low, high], &self.stream) }
    }

    pub fn write(&mut self, field: usize, array: &Array) -> Result<()> {
        check_field(&self.problem, field, array)?;
        self.write_window(field, [0; 3], self.problem.shape.padded(), array)
    }

    pub fn write_window(
        &mut self,
        field: usize,
        low: [usize; 3],
        high: [usize; 3],
        array: &Array,
    ) -> Result<()> {
        check_values(&self.problem, field, low, high, array)?;
        let to = self.pointer(field)?;
        self.context.bind_to_thread().map_err(during("binding the context"))?;
        // SAFETY: every buffer has this layout, and the array was checked.
        unsafe { self.layout().write(to, [low, high], array, &self.stream) }
    }

    pub fn non_finite(&self, field: usize, counter: &Counter) -> Result<u64> {
        // SAFETY: every buffer has this layout.
        unsafe { counter.count(self.pointer(field)?, &self.layout(), &self.stream) }
    }

    /// Returns a field's current buffer, for other code; `None` if there is no such field.
    pub fn export(&self, field: usize) -> Option<DeviceBuffer> {
        let (buffer, first) = self.place(field)?;
        Some(DeviceBuffer::new(buffer, first, &self.stream, self.layout()))
    }

    fn layout(&self) -> Layout {
        let Problem { shape, dtype, .. } = &self.problem;
        Layout { extents: shape.padded(), pitch: row_pitch(&self.problem), dtype: *dtype, precision: None }
    }
}

/// Makes the error for a field that is not one of so many.
pub(crate) fn no_field(field: usize, fields: usize) -> Error {
    Error::limit("number of a field", field, fields.saturating_sub(1), "use one of the program's fields")
}

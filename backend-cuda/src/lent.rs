//! Device memory lent to other code: what it must know to read a field where it lies.

use std::sync::Arc;

use abide_core::DType;
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr};

use crate::window::Layout;

/// The values of a field in device memory, for other code on the same device. The memory lives as long as this
/// does, also where the session has ended; later steps of the session overwrite it.
///
/// The context is the device's primary one. Values are there once the session's stream has come so far: record an
/// event on [`DeviceBuffer::stream`] and let your own stream wait for it.
#[derive(Clone)]
pub struct DeviceBuffer {
    memory: Arc<CudaSlice<u8>>,
    stream: Arc<CudaStream>,
    layout: Layout,
}

impl DeviceBuffer {
    pub(crate) fn new(memory: &Arc<CudaSlice<u8>>, stream: &Arc<CudaStream>, layout: Layout) -> DeviceBuffer {
        DeviceBuffer { memory: memory.clone(), stream: stream.clone(), layout }
    }

    /// Returns the address of the first value in device memory.
    pub fn address(&self) -> u64 {
        self.memory.device_ptr(&self.stream).0
    }

    /// Returns the number of the device, as CUDA counts them.
    pub fn device(&self) -> usize {
        self.stream.context().ordinal()
    }

    /// Returns the type of the values.
    pub fn dtype(&self) -> DType {
        self.layout.dtype
    }

    /// Returns the extents along the three padded axes, slowest first.
    pub fn extents(&self) -> [usize; 3] {
        self.layout.extents
    }

    /// Returns the values from one to the next along each of the three padded axes, slowest first: rows lie a
    /// pitch apart, planes of rows one behind the other.
    pub fn strides(&self) -> [usize; 3] {
        let Layout { extents, pitch, .. } = self.layout;
        [extents[1] * pitch, pitch, 1]
    }

    /// Returns the session's stream, a `CUstream`.
    pub fn stream(&self) -> usize {
        self.stream.cu_stream() as usize
    }
}

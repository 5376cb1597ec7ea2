//! Memory of a GPU that a simulation lends, described for other packages on the same device.

use abide::DType;
use abide_cuda::DeviceBuffer;
use pyo3::prelude::*;

/// A field's values where they lie on a CUDA device. The memory stays alive as long as this; later steps
/// overwrite it.
#[pyclass(frozen, module = "pyabide._pyabide")]
pub struct Lent {
    buffer: DeviceBuffer,
    axes: usize,
}

impl Lent {
    pub fn new(buffer: DeviceBuffer, axes: usize) -> Lent {
        Lent { buffer, axes }
    }
}

#[pymethods]
impl Lent {
    /// The address of the first value.
    #[getter]
    fn address(&self) -> u64 {
        self.buffer.address()
    }

    /// The extents, slowest axis first.
    #[getter]
    fn shape(&self) -> Vec<usize> {
        self.buffer.extents()[3 - self.axes..].to_vec()
    }

    /// The bytes from one value to the next along each axis.
    #[getter]
    fn strides(&self) -> Vec<usize> {
        let bytes = self.buffer.dtype().bytes();
        self.buffer.strides()[3 - self.axes..].iter().map(|stride| stride * bytes).collect()
    }

    /// The type of the values as numpy writes it.
    #[getter]
    fn typestr(&self) -> &'static str {
        match self.buffer.dtype() {
            DType::F32 => "<f4",
            DType::F64 => "<f8",
        }
    }

    /// The stream on which the values are computed, a `CUstream`.
    #[getter]
    fn stream(&self) -> usize {
        self.buffer.stream()
    }

    /// The number of the device.
    #[getter]
    fn device(&self) -> usize {
        self.buffer.device()
    }
}

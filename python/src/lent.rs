//! Memory of a GPU that a simulation exports to other packages on the same device.

use abide::DType;
use abide_cuda::DeviceBuffer;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::arrays::numpy;
use crate::dlpack;
use crate::errors::exception;
use crate::guard::detached;

/// A field's values in the memory of a CUDA device: where the simulation has them, or a copy. The memory stays
/// alive as long as this.
#[pyclass(frozen, module = "pyabide._pyabide")]
pub struct Lent {
    buffer: DeviceBuffer,
    axes: usize,
}

impl Lent {
    pub fn new(buffer: DeviceBuffer, axes: usize) -> Lent {
        Lent { buffer, axes }
    }

    /// The values from one to the next along each axis.
    fn steps(&self) -> Vec<usize> {
        self.buffer.strides()[3 - self.axes..].to_vec()
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
        self.steps().iter().map(|step| step * bytes).collect()
    }

    /// The type of the values as numpy writes it.
    #[getter]
    fn typestr(&self) -> &'static str {
        match self.buffer.dtype() {
            DType::F32 => "<f4",
            DType::F64 => "<f8",
        }
    }

    /// The number of the device.
    #[getter]
    fn device(&self) -> usize {
        self.buffer.device()
    }

    /// A copy of the values in numpy's memory.
    fn read<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let values = detached(py, || self.buffer.read().map_err(exception))?;
        numpy(py, values, &self.shape())
    }

    /// Waits for all that the device was asked to do, by other packages too.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || self.buffer.wait().map_err(exception))
    }

    /// A capsule of DLPack, of its versioned kind or the one before.
    fn capsule<'py>(&self, py: Python<'py>, is_versioned: bool) -> PyResult<Bound<'py, PyCapsule>> {
        dlpack::export(py, &self.buffer, &self.shape(), &self.steps(), is_versioned)
    }
}

//! Values between numpy and Abide.

use abide::{Array, Error};
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::errors::exception;

/// Values with their extents, as numpy gave them.
pub struct Given {
    /// The values, slowest axis first whatever their order in memory.
    pub values: Array,
    /// The extents.
    pub extents: Vec<usize>,
}

/// Reads an array of float32 or float64 with any strides.
pub fn given(array: &Bound<'_, PyAny>) -> PyResult<Given> {
    if let Ok(array) = array.extract::<PyReadonlyArrayDyn<'_, f32>>() {
        let values = Array::F32(array.as_array().iter().copied().collect());
        return Ok(Given { values, extents: array.shape().to_vec() });
    }
    if let Ok(array) = array.extract::<PyReadonlyArrayDyn<'_, f64>>() {
        let values = Array::F64(array.as_array().iter().copied().collect());
        return Ok(Given { values, extents: array.shape().to_vec() });
    }
    let reason = format!("it is {}", array.get_type());
    Err(exception(Error::invalid("an array", reason, "give numpy's float32 or float64")))
}

/// Makes a numpy array of values, which are moved, not copied.
pub fn numpy<'py>(py: Python<'py>, values: Array, extents: &[usize]) -> PyResult<Bound<'py, PyAny>> {
    Ok(match values {
        Array::F32(values) => PyArray1::from_vec(py, values).reshape(extents.to_vec())?.into_any(),
        Array::F64(values) => PyArray1::from_vec(py, values).reshape(extents.to_vec())?.into_any(),
    })
}

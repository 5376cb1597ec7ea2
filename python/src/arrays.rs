//! Values between numpy and Abide.

use abide::{Array, Error};
use numpy::{Element, PyArray1, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArrayMethods};
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
        return Ok(Given { values: Array::F32(copied(&array)?), extents: array.shape().to_vec() });
    }
    if let Ok(array) = array.extract::<PyReadonlyArrayDyn<'_, f64>>() {
        return Ok(Given { values: Array::F64(copied(&array)?), extents: array.shape().to_vec() });
    }
    let reason = format!("it is {}", array.get_type());
    Err(exception(Error::invalid("an array", reason, "give numpy's float32 or float64")))
}

/// Returns a copy of an array's values in the order of its axes; an error where there is no memory for it.
fn copied<T: Element + Copy>(array: &PyReadonlyArrayDyn<'_, T>) -> PyResult<Vec<T>> {
    let mut values = Vec::new();
    values.try_reserve_exact(array.len()).map_err(|_| {
        let asked = format!("{} bytes", array.len().saturating_mul(size_of::<T>()));
        let (what, limit) = ("memory for a copy of an array", "what the machine has left");
        exception(Error::limit(what, asked, limit, "choose a smaller array or float32"))
    })?;
    let array = array.as_array();
    match array.as_slice() {
        Some(packed) => values.extend_from_slice(packed),
        None => values.extend(array.iter().copied()),
    }
    Ok(values)
}

/// Makes a numpy array of values, which are moved, not copied.
pub fn numpy<'py>(py: Python<'py>, values: Array, extents: &[usize]) -> PyResult<Bound<'py, PyAny>> {
    Ok(match values {
        Array::F32(values) => PyArray1::from_vec(py, values).reshape(extents.to_vec())?.into_any(),
        Array::F64(values) => PyArray1::from_vec(py, values).reshape(extents.to_vec())?.into_any(),
    })
}

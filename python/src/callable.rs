//! Functions of Python as operators: matrices and approximate inverses that are known by their products alone.

use std::sync::{Mutex, PoisonError};

use abide::solve::Operator;
use abide::{Array, Error};
use abide_core::Real;
use pyo3::prelude::*;

use crate::arrays::{given, numpy};
use crate::errors::exception;

/// A function from a vector to its product, as an array of the same type and length.
pub struct Callable<'a> {
    name: &'static str,
    function: &'a Py<PyAny>,
    rows: usize,
    /// What the function raised. It is called no more after that.
    raised: Mutex<Option<PyErr>>,
}

impl<'a> Callable<'a> {
    pub fn new(name: &'static str, function: &'a Py<PyAny>, rows: usize) -> Self {
        Callable { name, function, rows, raised: Mutex::new(None) }
    }

    /// Returns what the function raised, if it did.
    pub fn raised(self) -> Option<PyErr> {
        self.raised.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn product<T: Real>(&self, x: &[T]) -> PyResult<Vec<T>> {
        let values = T::into_array(x.to_vec());
        let product = Python::attach(|py| {
            let x = numpy(py, values, &[self.rows])?;
            given(self.function.bind(py).call1((x,))?.as_any())
        })?;
        let wrong = |reason: String| {
            let change = "return an array of the vector's type and length";
            exception(Error::invalid(format!("the product of {}", self.name), reason, change))
        };
        if product.values.len() != self.rows {
            return Err(wrong(format!("it has {} values for {} rows", product.values.len(), self.rows)));
        }
        match T::slice(&product.values) {
            Some(values) => Ok(values.to_vec()),
            None => Err(wrong(format!("it is {}, the vector {}", Array::dtype(&product.values), T::DTYPE))),
        }
    }
}

impl<T: Real> Operator<T> for Callable<'_> {
    fn rows(&self) -> usize {
        self.rows
    }

    /// Fills `y` with NaN where the function fails, which ends the solve.
    fn apply(&self, x: &[T], y: &mut [T]) {
        let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        if raised.is_none() {
            match self.product(x) {
                Ok(product) => return y.copy_from_slice(&product),
                Err(error) => *raised = Some(error),
            }
        }
        y.fill(T::from_f64(f64::NAN));
    }
}

//! Abide's errors as Python's exceptions, with Abide's own sentences.

use abide::Error;
use abide::solve::SolverError;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::advice::in_python;

/// The module that defines the exceptions: in Python, because most have two bases.
const MODULE: &str = "pyabide.errors";

macro_rules! exceptions {
    ($($name:ident)*) => {
        /// Returns the exception of a name with this text.
        pub fn raise(name: &str, text: String) -> PyErr {
            Python::attach(|py| {
                let kind = match name {
                    $(stringify!($name) => {
                        static KIND: PyOnceLock<Py<PyType>> = PyOnceLock::new();
                        KIND.import(py, MODULE, stringify!($name))
                    })*
                    _ => return PyException::new_err(text),
                };
                match kind {
                    Ok(kind) => PyErr::from_type(kind.clone(), text),
                    Err(error) => error,
                }
            })
        }
    };
}

exceptions!(Error Limit Invalid Unknown Unavailable Unsupported DeviceError CompileError FileError Defect);

/// Returns the exception of an error.
pub fn exception(error: Error) -> PyErr {
    let name = match error {
        Error::Limit { .. } => "Limit",
        Error::Invalid { .. } => "Invalid",
        Error::Unknown { .. } => "Unknown",
        Error::Unavailable { .. } => "Unavailable",
        Error::Unsupported { .. } => "Unsupported",
        Error::Device { .. } => "DeviceError",
        Error::Compile { .. } => "CompileError",
        Error::File { .. } => "FileError",
        _ => "Error",
    };
    raise(name, in_python(&error.to_string()))
}

/// Returns the exception of a solver's error.
pub fn solver_exception(error: SolverError) -> PyErr {
    match error {
        SolverError::Invalid(error) => exception(error),
        SolverError::NotSymmetric { .. }
        | SolverError::NotPositive { .. }
        | SolverError::Singular { .. }
        | SolverError::Indefinite { .. } => raise("Invalid", in_python(&error.to_string())),
        other => raise("Error", other.to_string()),
    }
}

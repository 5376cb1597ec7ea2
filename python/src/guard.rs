//! Work outside of the interpreter's lock, whose panics become exceptions.

use std::panic::{AssertUnwindSafe, catch_unwind};

use abide_core::floating::standard;
use pyo3::prelude::*;

use crate::errors::raise;

/// Calls `work` without the interpreter's lock. A panic becomes an exception that says so.
pub fn detached<R: Send>(py: Python<'_>, work: impl FnOnce() -> PyResult<R> + Send) -> PyResult<R> {
    py.detach(|| caught(work))
}

/// Calls `work` in the standard floating-point mode, whatever libraries of the interpreter's have set. A panic, which is a defect of Abide, becomes an exception that says so.
pub fn caught<R>(work: impl FnOnce() -> PyResult<R>) -> PyResult<R> {
    catch_unwind(AssertUnwindSafe(|| standard(work))).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        let advice = "please report it, with what led to it";
        Err(raise("Defect", format!("Abide stopped at a defect of its own ({text}); {advice}")))
    })
}

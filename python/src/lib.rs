//! The extension module of the Python package `pyabide`.
//!
//! It holds what only Rust can do: building programs from recorded formulas, runs, solves, plans and devices.
//! What is nicer in Python (recording, xarray, sympy, notebooks) is Python, beside this crate in `pyabide/`.
//!
//! No call holds the interpreter's lock while it computes, and none panics into Python (`guard.rs`).

mod advice;
mod arrays;
mod callable;
mod devices;
mod dlpack;
mod errors;
mod formula;
mod gas;
mod guard;
mod health;
mod lent;
mod movie;
mod operator;
mod program;
mod report;
mod simulation;
mod solve;
mod start;

/// The compiled part of `pyabide`; use the package.
#[pyo3::pymodule]
mod _pyabide {
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }

    #[pymodule_export]
    use crate::devices::{catalogue, devices};
    #[pymodule_export]
    use crate::gas::{Gas, flow_fields};
    #[pymodule_export]
    use crate::lent::Lent;
    #[pymodule_export]
    use crate::movie::Movie;
    #[pymodule_export]
    use crate::operator::GridOperator;
    #[pymodule_export]
    use crate::program::{Program, load, loads};
    #[pymodule_export]
    use crate::report::{Plan, Report};
    #[pymodule_export]
    use crate::simulation::{Simulation, png};
    #[pymodule_export]
    use crate::solve::System;
    #[pymodule_export]
    use crate::start::{plan, program_of, start};
}

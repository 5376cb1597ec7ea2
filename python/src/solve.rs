//! Solves of systems of linear equations.

use std::ops::ControlFlow;

use abide::solve::{Matrix, Method, Parameters, Report, Solve, SolverError};
use abide::sparse::{Csr, Offsets};
use abide::{Array, Choice, Error};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::arrays::{given, numpy};
use crate::errors::{exception, solver_exception};
use crate::guard::detached;
use crate::operator::GridOperator;
use crate::report::json;

/// A matrix: an operator on a grid, or compressed rows (columns, row offsets, column of each entry, values).
#[derive(FromPyObject)]
pub enum Given<'py> {
    Operator(Py<GridOperator>),
    Rows(usize, PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, i64>, Bound<'py, PyAny>),
}

impl Given<'_> {
    fn matrix(&self) -> PyResult<Matrix> {
        let (columns, offsets, indices, values) = match self {
            Given::Operator(operator) => return Ok(operator.get().0.clone().into()),
            Given::Rows(columns, offsets, indices, values) => (*columns, offsets, indices, values),
        };
        let wrong = |what: &str| {
            let reason = format!("{what} is negative or above what 32 bits hold");
            exception(Error::invalid("sparse matrix", reason, "give a smaller matrix"))
        };
        let offsets =
            offsets.as_array().iter().map(|&offset| u64::try_from(offset)).collect::<Result<_, _>>();
        let offsets = offsets.map_err(|_| wrong("a row offset"))?;
        let indices = indices.as_array().iter().map(|&index| u32::try_from(index)).collect::<Result<_, _>>();
        let indices = indices.map_err(|_| wrong("a column"))?;
        let values = given(values)?.values;
        let made =
            Offsets::narrowest(offsets).and_then(|offsets| Csr::new(columns, offsets, indices, values));
        made.map(Matrix::from).map_err(exception)
    }
}

/// What a solve returns: the solution, the iterations where it did not converge, why so, and the report as
/// JSON.
type Solved<'py> = (Bound<'py, PyAny>, Option<usize>, String, String);

/// Solves `A x = b` from `x`. `callback` gets the residual's norm of each iterate.
#[pyfunction]
#[pyo3(signature = (method, matrix, b, x, relative, absolute, iterations, preconditioner, backend, callback = None))]
#[allow(clippy::too_many_arguments)]
pub fn solve<'py>(
    py: Python<'py>,
    method: &str,
    matrix: Given<'py>,
    b: &Bound<'py, PyAny>,
    x: &Bound<'py, PyAny>,
    relative: f64,
    absolute: f64,
    iterations: usize,
    preconditioner: &str,
    backend: &str,
    callback: Option<Py<PyAny>>,
) -> PyResult<Solved<'py>> {
    let method: Method = method.parse().map_err(exception)?;
    let choice: Choice = backend.parse().map_err(exception)?;
    let preconditioner = preconditioner.parse().map_err(exception)?;
    let (matrix, b, mut x) = (matrix.matrix()?, given(b)?.values, given(x)?.values);
    let parameters = Parameters { relative, absolute, iterations, ..Parameters::DEFAULT };
    let (x, outcome): (Array, Result<Report, SolverError>) = detached(py, move || {
        let describe = Solve::new(matrix).method(method).preconditioner(preconditioner).backend(choice);
        let mut system = describe.parameters(parameters).open().map_err(solver_exception)?;
        let mut interrupt = None;
        let mut looked = std::time::Instant::now();
        let mut observe = |iteration: usize, residual: f64| {
            // Looking for Ctrl-C takes the interpreter's lock, and an iteration may take microseconds.
            if callback.is_none() && looked.elapsed().as_millis() < 50 {
                return ControlFlow::Continue(());
            }
            looked = std::time::Instant::now();
            let told = Python::attach(|py| {
                py.check_signals()?;
                match callback.as_ref().filter(|_| iteration > 0) {
                    Some(callback) => callback.call1(py, (residual,)).map(drop),
                    None => Ok(()),
                }
            });
            match told {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    interrupt = Some(error);
                    ControlFlow::Break(())
                }
            }
        };
        let outcome = system.solve_observed(&b, &mut x, &mut observe);
        match interrupt {
            Some(error) => Err(error),
            None => Ok((x, outcome)),
        }
    })?;
    let rows = x.len();
    let (report, why) = match outcome {
        Ok(report) => return Ok((numpy(py, x, &[rows])?, None, String::new(), json(&report)?)),
        Err(error) => {
            let why = error.to_string();
            match error {
                SolverError::Breakdown { report, .. }
                | SolverError::Stagnation { report }
                | SolverError::NotFinite { report, .. }
                | SolverError::NotConverged { report, .. } => (report, why),
                other => return Err(solver_exception(other)),
            }
        }
    };
    Ok((numpy(py, x, &[rows])?, Some(report.iterations.max(1)), why, json(&report)?))
}

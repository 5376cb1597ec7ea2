//! Solves of systems of linear equations.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use abide::solve::{
    Exhausted, Matrix, Method, Nullspace, Parameters, Precision, Report, Solve, SolverError, System,
};
use abide::sparse::{Csr, Offsets};
use abide::{Array, Choice, Error, ErrorKind};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::advice::in_python;
use crate::arrays::{given, numpy};
use crate::errors::{exception, raise, solver_exception};
use crate::guard::caught;
use crate::operator::GridOperator;
use crate::report::json;
use crate::start::Asked;

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

/// Solves `A x = b` from `x`, in the type of `b`. `callback` gets the residual's norm of each iterate; or the
/// iterate itself after every `cycle` iterations, where that is given.
#[pyfunction]
#[pyo3(signature = (
    method, matrix, b, x, relative, absolute, iterations, preconditioner, backend, devices = None, callback = None,
    cycle = None, nullspace = "none", assume_symmetric = false
))]
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
    devices: Option<Asked>,
    callback: Option<Py<PyAny>>,
    cycle: Option<usize>,
    nullspace: &str,
    assume_symmetric: bool,
) -> PyResult<Solved<'py>> {
    let method: Method = method.parse().map_err(exception)?;
    let choice: Choice = backend.parse().map_err(exception)?;
    let preconditioner = preconditioner.parse().map_err(exception)?;
    let nullspace: Nullspace = nullspace.parse().map_err(exception)?;
    let devices = devices.map(Asked::devices).transpose()?;
    let (matrix, b, mut x) = caught(|| Ok((matrix.matrix()?, given(b)?.values, given(x)?.values)))?;
    // scipy's users read 0 as a residual within the tolerance, not within ten of it.
    let parameters = Parameters { relative, absolute, iterations, drift: 1.0, ..Parameters::DEFAULT };
    let (x, outcome): (Array, Result<Report, SolverError>) = interruptible(py, move |stop| {
        let describe = Solve::new(matrix)
            .method(method)
            .preconditioner(preconditioner)
            .nullspace(nullspace)
            .assume_symmetric(assume_symmetric)
            .precision(Precision::Plain(b.dtype()))
            .backend(choice);
        let describe = match devices {
            Some(devices) => describe.devices(devices),
            None => describe,
        };
        let mut system = describe.parameters(parameters.clone()).open().map_err(exception_of)?;
        if let (Some(cycle), Some(callback)) = (cycle, &callback) {
            return by_cycles(&mut system, &b, x, &parameters, cycle, callback, stop);
        }
        let mut failed = None;
        let mut observe = |iteration: usize, residual: f64| {
            let callback = callback.as_ref().filter(|_| iteration > 0);
            match callback.map(|callback| Python::attach(|py| callback.call1(py, (residual,)))) {
                Some(Err(error)) => failed = Some(error),
                _ if !stop.load(Ordering::Relaxed) => return ControlFlow::Continue(()),
                _ => {}
            }
            ControlFlow::Break(())
        };
        let outcome = system.solve_observed(&b, &mut x, &mut observe);
        match failed {
            Some(error) => Err(error),
            None => Ok((x, outcome)),
        }
    })?;
    let rows = x.len();
    let (report, why) = match outcome {
        Ok(report) => return Ok((numpy(py, x, &[rows])?, None, String::new(), json(&report)?)),
        Err(error) => {
            let why = in_python(&error.to_string());
            match error.kind() {
                ErrorKind::NotConverged => match error.report() {
                    Some(report) => (report.clone(), why),
                    None => return Err(exception_of(error)),
                },
                _ => return Err(exception_of(error)),
            }
        }
    };
    Ok((numpy(py, x, &[rows])?, Some(report.iterations.max(1)), why, json(&report)?))
}

fn exception_of(error: SolverError) -> PyErr {
    match error {
        SolverError::Invalid(Error::Invalid { .. }) | SolverError::NotSymmetric { .. } => {
            raise("Invalid", in_python(&error.to_string()))
        }
        other => solver_exception(other),
    }
}

/// Solves by GMRES a cycle at a time, and calls `callback` with the iterate after each. A cycle that begins anew from
/// its iterate has the bits of one that goes on.
fn by_cycles(
    system: &mut System,
    b: &Array,
    mut x: Array,
    parameters: &Parameters,
    cycle: usize,
    callback: &Py<PyAny>,
    stop: &AtomicBool,
) -> PyResult<(Array, Result<Report, SolverError>)> {
    let mut done = 0;
    loop {
        let iterations = cycle.min(parameters.iterations - done);
        let inner = Parameters { iterations, ..parameters.clone() };
        let mut outcome = system.solve_with(b, &mut x, &inner, &mut |_, _| {
            if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let report = match &mut outcome {
            Ok(report) => report,
            Err(error) => match error.report_mut() {
                Some(report) => report,
                None => return Ok((x, outcome)),
            },
        };
        let falls = report.history.last() < report.history.first();
        if report.iterations > 0 {
            let copy = x.try_clone().map_err(exception)?;
            Python::attach(|py| callback.call1(py, (numpy(py, copy, &[x.len()])?,)))?;
        }
        done += report.iterations;
        report.iterations = done;
        let is_limited =
            matches!(outcome, Err(SolverError::NotConverged { limit: Exhausted::Iterations, .. }));
        if !is_limited || !falls || done >= parameters.iterations {
            return Ok((x, outcome));
        }
    }
}

/// The time between two looks at whether Ctrl-C was pressed.
const LOOK: Duration = Duration::from_millis(20);

/// Calls `work` on a thread of its own. When a signal's handler raises, the flag that stops `work` is set, and the
/// handler's exception is the result.
///
/// Only the interpreter's main thread receives signals, and a solver may call its observer on any of its threads.
fn interruptible<R: Send>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> PyResult<R> + Send,
) -> PyResult<R> {
    py.detach(|| {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| caught(|| work(&stop)));
            let mut begun = Instant::now();
            while !worker.is_finished() {
                std::thread::sleep(Duration::from_micros(200));
                if begun.elapsed() < LOOK {
                    continue;
                }
                begun = Instant::now();
                if let Err(raised) = Python::attach(|py| py.check_signals()) {
                    stop.store(true, Ordering::Relaxed);
                    let _ = worker.join();
                    return Err(raised);
                }
            }
            worker.join().unwrap_or_else(|_| Err(raise("Defect", "a solver's thread ended early".to_owned())))
        })
    })
}

//! Solves of systems of linear equations.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, TryLockError};
use std::time::{Duration, Instant};

use abide::backend::Devices;
use abide::solve::{
    Exhausted, Inverse, Matrix, Method, Nullspace, Operator, Parameters, Precision, Preconditioning, Report,
    Solve, SolverError, solve_operator, threaded_operator,
};
use abide::sparse::{Csr, Offsets};
use abide::{Array, Choice, DType, Error, ErrorKind, Real};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::advice::in_python;
use crate::arrays::{given, numpy};
use crate::callable::Callable;
use crate::errors::{exception, raise, solver_exception};
use crate::guard::caught;
use crate::operator::GridOperator;
use crate::report::json;
use crate::start::Asked;

/// A matrix: an operator on a grid, compressed rows (columns, row offsets, column of each entry, values), or the number of rows
/// and a function from a vector to its product.
#[derive(FromPyObject)]
pub enum Given<'py> {
    Operator(Py<GridOperator>),
    Rows(usize, PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, i64>, Bound<'py, PyAny>),
    Product(usize, Py<PyAny>),
}

impl Given<'_> {
    fn known(self) -> PyResult<Known> {
        let (columns, offsets, indices, values) = match self {
            Given::Operator(operator) => return Ok(Known::Matrix(operator.get().0.clone().into())),
            Given::Product(rows, function) => return Ok(Known::Product(rows, function)),
            Given::Rows(columns, offsets, indices, values) => (columns, offsets, indices, values),
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
        let values = given(&values)?.values;
        let made =
            Offsets::narrowest(offsets).and_then(|offsets| Csr::new(columns, offsets, indices, values));
        made.map(|matrix| Known::Matrix(matrix.into())).map_err(exception)
    }
}

/// What is known of a matrix: its entries, or its rows and its products.
enum Known {
    Matrix(Matrix),
    Product(usize, Py<PyAny>),
}

/// An approximate inverse: a preconditioner's name, or a function from a residual to an approximate error.
#[derive(FromPyObject)]
pub enum GivenInverse {
    Name(String),
    Product(Py<PyAny>),
}

/// A system that is open: the matrix is loaded, and solved with for one right-hand side after the other.
#[pyclass(frozen, module = "pyabide._pyabide")]
pub struct System {
    open: Mutex<Open>,
    dtype: DType,
}

enum Open {
    /// On a backend.
    Loaded(Box<abide::System>),
    /// On this machine's processors, with functions of Python.
    Called { method: Method, matrix: Known, inverse: Result<Preconditioning, Py<PyAny>> },
}

/// What a solve returns: the solution, the iterations where it did not converge, why so, and the report as
/// JSON.
type Solved<'py> = (Bound<'py, PyAny>, Option<usize>, String, String);

/// Who is told of a solve's iterates: a function that gets the residual's norm of each; or the iterate itself after every so many
/// iterations.
struct Observer {
    callback: Option<Py<PyAny>>,
    cycle: Option<usize>,
}

#[pymethods]
impl System {
    #[new]
    #[pyo3(signature = (
        method, matrix, dtype, inverse, backend, devices = None, nullspace = "none", assume_symmetric = false
    ))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        method: Option<&str>,
        matrix: Given<'_>,
        dtype: &str,
        inverse: GivenInverse,
        backend: &str,
        devices: Option<Asked>,
        nullspace: &str,
        assume_symmetric: bool,
    ) -> PyResult<System> {
        let method: Option<Method> = method.map(str::parse).transpose().map_err(exception)?;
        let choice: Choice = backend.parse().map_err(exception)?;
        let nullspace: Nullspace = nullspace.parse().map_err(exception)?;
        let dtype: DType = dtype.parse().map_err(exception)?;
        let devices = devices.map(Asked::devices).transpose()?;
        let inverse = match inverse {
            GivenInverse::Name(name) => Ok(name.parse().map_err(exception)?),
            GivenInverse::Product(function) => Err(function),
        };
        let matrix = caught(|| matrix.known())?;
        let (matrix, preconditioner) = match (matrix, inverse) {
            (Known::Matrix(matrix), Ok(preconditioner)) => (matrix, preconditioner),
            (matrix, inverse) => {
                let alone = devices.is_none_or(|devices| devices == Devices::Count(1));
                let method = called(method, choice, alone, nullspace).map_err(exception)?;
                let matrix = match matrix {
                    Known::Matrix(matrix) => Known::Matrix(matrix.cast(dtype).map_err(exception)?),
                    product => product,
                };
                return Ok(System { open: Mutex::new(Open::Called { method, matrix, inverse }), dtype });
            }
        };
        let open = interruptible(py, move |_| {
            let describe = Solve::new(matrix)
                .preconditioner(preconditioner)
                .nullspace(nullspace)
                .assume_symmetric(assume_symmetric)
                .precision(Precision::Plain(dtype))
                .backend(choice);
            let describe = method.into_iter().fold(describe, Solve::method);
            let describe = devices.into_iter().fold(describe, Solve::devices);
            describe.open().map_err(exception_of)
        })?;
        Ok(System { open: Mutex::new(Open::Loaded(Box::new(open))), dtype })
    }

    /// `f32` or `f64`.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.dtype.name()
    }

    /// The backend, the method and the notes of what was chosen.
    #[getter]
    fn about(&self) -> PyResult<(&'static str, &'static str, Vec<String>)> {
        Ok(match &*self.held()? {
            Open::Loaded(open) => (open.backend(), open.plan().method.name(), open.notes().to_vec()),
            Open::Called { method, .. } => ("cpu", method.name(), Vec::new()),
        })
    }

    /// Solves `A x = b` from `x`. `callback` gets the residual's norm of each iterate; or the iterate itself after every `cycle`
    /// iterations, where that is given.
    #[pyo3(signature = (b, x, relative, absolute, iterations, callback = None, cycle = None))]
    #[allow(clippy::too_many_arguments)]
    fn solve<'py>(
        &self,
        py: Python<'py>,
        b: &Bound<'_, PyAny>,
        x: &Bound<'_, PyAny>,
        relative: f64,
        absolute: f64,
        iterations: usize,
        callback: Option<Py<PyAny>>,
        cycle: Option<usize>,
    ) -> PyResult<Solved<'py>> {
        let mut open = self.held()?;
        let (b, x) = caught(|| Ok((given(b)?.values, given(x)?.values)))?;
        // scipy's users read 0 as a residual within the tolerance, not within ten of it.
        let parameters = Parameters { relative, absolute, iterations, drift: 1.0, ..Parameters::DEFAULT };
        let observer = Observer { callback, cycle };
        let open = &mut *open;
        let (x, outcome) = interruptible(py, move |stop| match open {
            Open::Loaded(system) => {
                observer.observed(b, x, &parameters, stop, &mut |b, x, parameters, observe| {
                    Ok(system.solve_with(b, x, parameters, observe))
                })
            }
            Open::Called { method, matrix, inverse } => {
                observer.observed(b, x, &parameters, stop, &mut |b, x, parameters, observe| match (b, x) {
                    (Array::F32(b), Array::F32(x)) => {
                        solve_called(method, matrix, inverse, b, x, parameters, observe)
                    }
                    (Array::F64(b), Array::F64(x)) => {
                        solve_called(method, matrix, inverse, b, x, parameters, observe)
                    }
                    _ => Err(raise("Defect", "b and x have different types".to_owned())),
                })
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
}

impl System {
    /// Returns what is open, for this call alone.
    fn held(&self) -> PyResult<std::sync::MutexGuard<'_, Open>> {
        match self.open.try_lock() {
            Ok(open) => Ok(open),
            Err(TryLockError::Poisoned(open)) => Ok(open.into_inner()),
            Err(TryLockError::WouldBlock) => Err(raise(
                "Unsupported",
                "the system is being solved, by another thread or around this callback; open one for each"
                    .to_owned(),
            )),
        }
    }
}

/// Returns the method of a system with functions of Python; fails for what such a system cannot have.
fn called(
    method: Option<Method>,
    choice: Choice,
    alone: bool,
    nullspace: Nullspace,
) -> Result<Method, Error> {
    let refused = |what: String, change: &str| {
        Err(Error::unsupported(
            what,
            "functions of Python run on one host and know nothing of the matrix",
            change,
        ))
    };
    if let Choice::Named(name) = choice
        && name != "cpu"
    {
        return refused(
            format!("backend {name}"),
            "leave backend out, or give a sparse matrix and a preconditioner's name",
        );
    }
    if !alone {
        return refused("several devices".to_owned(), "leave devices out");
    }
    if nullspace != Nullspace::None {
        return refused("a null space".to_owned(), "take the means away in the functions");
    }
    let unnamed = || Error::invalid("the method", "none was named", "name one, as in method=\"gmres\"");
    method.ok_or_else(unnamed)
}

/// Solves with functions of Python.
fn solve_called<T: Real>(
    method: &Method,
    matrix: &Known,
    inverse: &Result<Preconditioning, Py<PyAny>>,
    b: &[T],
    x: &mut [T],
    parameters: &Parameters,
    observe: &mut abide::solve::Observe<'_>,
) -> PyResult<Result<Report, SolverError>> {
    let stored;
    let product = match matrix {
        Known::Product(rows, function) => Some(Callable::new("A", function, *rows)),
        Known::Matrix(_) => None,
    };
    let a: &dyn Operator<T> = match (matrix, &product) {
        (Known::Matrix(matrix), _) => {
            stored = threaded_operator::<T>(matrix).map_err(exception)?;
            &*stored
        }
        (_, Some(product)) => product,
        _ => return Err(raise("Defect", "a system without a matrix".to_owned())),
    };
    let own = inverse.as_ref().err().map(|function| Callable::new("M", function, a.rows()));
    let applied = match (inverse, &own) {
        (Ok(named), _) => Inverse::Named(*named),
        (Err(_), Some(own)) => Inverse::Operator(own),
        (Err(_), None) => Inverse::Named(Preconditioning::None),
    };
    let outcome = solve_operator(method, a, applied, b, x, parameters, observe);
    let raised = product.and_then(Callable::raised).or_else(|| own.and_then(Callable::raised));
    raised.map_or(Ok(outcome), Err)
}

fn exception_of(error: SolverError) -> PyErr {
    match error {
        SolverError::Invalid(Error::Invalid { .. }) | SolverError::NotSymmetric { .. } => {
            raise("Invalid", in_python(&error.to_string()))
        }
        other => solver_exception(other),
    }
}

/// Solves for a right-hand side from a first guess.
type SolveOnce<'a> = dyn FnMut(
        &Array,
        &mut Array,
        &Parameters,
        &mut abide::solve::Observe<'_>,
    ) -> PyResult<Result<Report, SolverError>>
    + 'a;

impl Observer {
    /// Solves, and tells the callback.
    fn observed(
        &self,
        b: Array,
        mut x: Array,
        parameters: &Parameters,
        stop: &AtomicBool,
        solve: &mut SolveOnce<'_>,
    ) -> PyResult<(Array, Result<Report, SolverError>)> {
        if let (Some(cycle), Some(callback)) = (self.cycle, &self.callback) {
            return by_cycles(solve, &b, x, parameters, cycle, callback, stop);
        }
        let mut failed = None;
        let mut observe = |iteration: usize, residual: f64| {
            let callback = self.callback.as_ref().filter(|_| iteration > 0);
            match callback.map(|callback| Python::attach(|py| callback.call1(py, (residual,)))) {
                Some(Err(error)) => failed = Some(error),
                _ if !stop.load(Ordering::Relaxed) => return ControlFlow::Continue(()),
                _ => {}
            }
            ControlFlow::Break(())
        };
        let outcome = solve(&b, &mut x, parameters, &mut observe)?;
        match failed {
            Some(error) => Err(error),
            None => Ok((x, outcome)),
        }
    }
}

/// Solves by GMRES a cycle at a time, and calls `callback` with the iterate after each. A cycle that begins anew from
/// its iterate has the bits of one that goes on.
fn by_cycles(
    solve: &mut SolveOnce<'_>,
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
        let mut outcome = solve(b, &mut x, &inner, &mut |_, _| {
            if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
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

//! A run in progress.
//!
//! The simulation stands behind a lock, which is only ever waited for without the interpreter's lock: a thread
//! that runs takes the interpreter's lock between epochs, to see whether Ctrl-C was pressed. What never
//! changes, and the count of steps, are beside the lock, so that another thread may ask while a run goes on.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::Duration;

use abide::backend::Pace;
use abide::{DType, Error, Shape};
use abide_core::process::lost;
use abide_cuda::DeviceBuffer;
use pyo3::prelude::*;

use crate::advice::in_python;
use crate::arrays::{given, numpy};
use crate::dlpack::Array;
use crate::errors::{exception, raise};
use crate::guard::caught;
use crate::health::{Health, Watch};
use crate::lent::Lent;
use crate::report::{Plan, Report};

/// A run answers this often: Ctrl-C within some epochs.
const EPOCH: Duration = Duration::from_millis(50);

/// The time between two looks at whether another thread's run has ended.
const LOOK: Duration = Duration::from_millis(2);

/// Looks in a row at which the simulation was taken by a thread that has not begun its work, or has ended it: either takes
/// less than a microsecond, unless a fork came between.
const MOST_IDLE: u32 = 1000;

/// A program, its fields on a device, and the steps done so far.
#[pyclass(frozen, module = "pyabide._pyabide")]
pub struct Simulation {
    /// `None` after a defect, which may have left it in any state.
    inner: Mutex<Option<abide::Simulation>>,
    /// The thread that is at work, 0 where none is, and its process. Not locks, which a fork could leave locked.
    at_work: AtomicU64,
    step: AtomicU64,
    program: String,
    backend: &'static str,
    shape: Vec<usize>,
    dtype: DType,
    /// Names and extents of the fields.
    fields: Vec<(String, Vec<usize>)>,
    /// The number of the field that pictures show.
    shown: usize,
    notes: Vec<String>,
    health: Mutex<Health>,
}

impl Simulation {
    pub fn new(simulation: abide::Simulation) -> PyResult<Simulation> {
        let problem = simulation.problem();
        problem.refuse_batch("pyabide").map_err(exception)?;
        let names = problem.program.fields().iter().enumerate();
        let fields = names.map(|(number, name)| {
            let shape = problem.shape_of(number).map_err(exception)?;
            Ok((name.clone(), shape.extents().to_vec()))
        });
        Ok(Simulation {
            fields: fields.collect::<PyResult<_>>()?,
            program: problem.program.name().to_owned(),
            backend: simulation.backend(),
            shape: problem.shape.extents().to_vec(),
            dtype: problem.dtype,
            shown: problem.program.shown(),
            notes: simulation.notes().iter().map(|note| in_python(note)).collect(),
            health: Mutex::new(Health::default()),
            step: AtomicU64::new(simulation.step()),
            at_work: AtomicU64::new(0),
            inner: Mutex::new(Some(simulation)),
        })
    }

    /// Calls `work` with the simulation, without the interpreter's lock, once no other thread is at work.
    /// While it waits, Ctrl-C ends the waiting.
    fn with<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut abide::Simulation) -> PyResult<R> + Send,
    ) -> PyResult<R> {
        let own = own_number();
        if self.at_work.load(Ordering::Relaxed) == own {
            let reason = "it is running, and this is called from within the run, as by a signal's handler";
            return Err(exception(Error::invalid(
                "the simulation",
                reason,
                "call it once the run has ended",
            )));
        }
        let (mut work, mut idle) = (Some(work), 0);
        loop {
            let done = py.detach(|| {
                let mut inner = match self.inner.try_lock() {
                    Ok(inner) => inner,
                    Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                    Err(TryLockError::WouldBlock) => {
                        // The thread that is at work is not in a process that was forked meanwhile.
                        let other = self.at_work.load(Ordering::Relaxed);
                        idle = if other == 0 { idle + 1 } else { 0 };
                        if idle > MOST_IDLE || (other != 0 && other >> 32 != own >> 32) {
                            return Some(Err(exception(lost(
                                "a simulation that another thread was running",
                            ))));
                        }
                        std::thread::sleep(LOOK);
                        return None;
                    }
                };
                let work = work.take()?;
                self.at_work.store(own, Ordering::Relaxed);
                let result = match inner.as_mut() {
                    Some(simulation) => {
                        let mut is_whole = false;
                        let result = caught(|| {
                            let result = work(simulation);
                            is_whole = true;
                            result
                        });
                        self.step.store(simulation.step(), Ordering::Relaxed);
                        if !is_whole {
                            *inner = None;
                        }
                        result
                    }
                    None => {
                        let text =
                            "the simulation stopped at a defect of Abide's and cannot be used; start anew";
                        Err(raise("Defect", text.to_owned()))
                    }
                };
                self.at_work.store(0, Ordering::Relaxed);
                Some(result)
            });
            match done {
                Some(result) => return result,
                None => py.check_signals()?,
            }
        }
    }

    /// Returns the extents of a field.
    fn extents(&self, name: &str) -> PyResult<&[usize]> {
        let found = self.fields.iter().find(|(field, _)| field == name);
        let unknown = || exception(Error::unknown("field", name, self.fields.iter().map(|(name, _)| name)));
        found.map(|(_, extents)| extents.as_slice()).ok_or_else(unknown)
    }
}

/// Returns a number that the calling thread alone has: its process above, and below one of its own that is not 0.
fn own_number() -> u64 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    thread_local!(static OWN: u32 = NEXT.fetch_add(1, Ordering::Relaxed));
    u64::from(std::process::id()) << 32 | u64::from(OWN.with(|own| *own))
}

#[pymethods]
impl Simulation {
    /// Advances, and looks between epochs whether it shall end.
    /// `observe` gets the steps done since the start, between epochs.
    #[pyo3(signature = (steps, seconds = None, observe = None))]
    fn run(
        &self,
        py: Python<'_>,
        steps: u64,
        seconds: Option<f64>,
        observe: Option<Py<PyAny>>,
    ) -> PyResult<Report> {
        let deadline = seconds.map(Duration::try_from_secs_f64).transpose().map_err(|_| {
            exception(Error::invalid("seconds", "no run can last so long", "give a number above 0"))
        })?;
        let pace = Pace { epoch: EPOCH, deadline, ..Pace::default() };
        self.with(py, |simulation| {
            let (mut interrupt, mut watch) = (None, Watch::new());
            let report = simulation.run_with(steps, pace, |running| {
                let step = running.step();
                self.step.store(step, Ordering::Relaxed);
                watch.look(running)?;
                let asked = Python::attach(|py| {
                    py.check_signals()?;
                    observe.as_ref().map_or(Ok(()), |observe| observe.call1(py, (step,)).map(drop))
                });
                Ok(match asked {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(error) => {
                        interrupt = Some(error);
                        ControlFlow::Break(())
                    }
                })
            });
            if let Some(error) = interrupt {
                return Err(error);
            }
            let mut report = report.map_err(exception)?;
            // No panic can leave it half changed.
            let mut health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
            let went_wrong = health.after(&watch, simulation, &mut report).map_err(exception)?;
            Ok(Report { report, went_wrong: went_wrong.as_deref().map(in_python) })
        })
    }

    /// A copy of a field's values.
    fn read<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let extents = self.extents(name)?;
        let values = self.with(py, |simulation| simulation.field(name).map_err(exception))?;
        numpy(py, values, extents)
    }

    /// A field's values where they lie on a CUDA device, to be read and written.
    fn export(&self, py: Python<'_>, name: &str) -> PyResult<Lent> {
        let axes = self.extents(name)?.len();
        let lent = |simulation: &mut abide::Simulation| simulation.device_buffer_mut(name).map_err(exception);
        self.with(py, lent)?.map(|buffer| Lent::new(buffer, axes)).ok_or_else(|| {
            let (who, reason) =
                (format!("backend {}", self.backend), "it exports no memory to other packages");
            exception(Error::unsupported(who, reason, "take a copy by sim.field, or run on CUDA"))
        })
    }

    /// A copy of a field's values on the CUDA device; `None` on other backends.
    fn copy(&self, py: Python<'_>, name: &str) -> PyResult<Option<Lent>> {
        let axes = self.extents(name)?.len();
        let buffer = self.with(py, |simulation| {
            let lent = simulation.device_buffer::<DeviceBuffer>(name);
            lent.map(|buffer| buffer.copy()).transpose().map_err(exception)
        })?;
        Ok(buffer.map(|buffer| Lent::new(buffer, axes)))
    }

    /// Replaces a field's values.
    fn write(&self, py: Python<'_>, name: &str, values: &Bound<'_, PyAny>) -> PyResult<()> {
        let extents = self.extents(name)?;
        let given = given(values)?;
        if given.extents != extents {
            let reason = format!("the array's shape is {:?}, the field's is {extents:?}", given.extents);
            let change = "give an array of the field's shape";
            return Err(exception(Error::invalid(format!("field {name}"), reason, change)));
        }
        let dtype = self.dtype;
        self.with(py, |simulation| {
            let values = given.values;
            let values =
                if values.dtype() == dtype { values } else { values.cast(dtype).map_err(exception)? };
            simulation.write(name, &values).map_err(exception)
        })
    }

    /// Replaces a field's values by those of another package's array on the same CUDA device.
    fn fill(&self, py: Python<'_>, name: &str, array: Array<'_>) -> PyResult<()> {
        let (extents, dtype) = (self.extents(name)?, self.dtype);
        let refused = |reason: String, change: &str| {
            Err(exception(Error::invalid(format!("field {name}"), reason, change)))
        };
        // What keeps the values in place goes after the copy has ended.
        let (from, _keeper) = array.values()?;
        if from.shape != extents {
            let reason = format!("the array's shape is {:?}, the field's is {extents:?}", from.shape);
            return refused(reason, "give an array of the field's shape");
        }
        if from.dtype != dtype {
            let reason = format!("the array is {}, the run is {dtype}", from.dtype);
            return refused(reason, "convert it on the device first, as by .astype or .to");
        }
        let mut strides = [0; 3];
        strides[3 - extents.len()..].copy_from_slice(&from.strides);
        self.with(py, |simulation| {
            match simulation.device_buffer_mut::<DeviceBuffer>(name).map_err(exception)? {
                // SAFETY: who made the array promises that the values are there, until the keeper goes.
                Some(buffer) => unsafe { buffer.fill(from.address, strides) }.map_err(exception),
                None => {
                    let reason = format!("the array lies on a GPU, the simulation runs on {}", self.backend);
                    refused(reason, "bring it to the host first, as by .get() of CuPy or .cpu() of torch")
                }
            }
        })
    }

    /// A copy of the values in a box, from the low corner up to the high one, which is not part of it.
    fn window<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        low: Vec<usize>,
        high: Vec<usize>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let axes = self.extents(name)?.len();
        if low.len() != axes || high.len() != axes {
            let reason = format!("its corners have {} and {} indices on {axes} axes", low.len(), high.len());
            return Err(exception(Error::invalid("window", reason, "give one index an axis")));
        }
        let (mut from, mut to) = ([0; 3], [1; 3]);
        from[3 - axes..].copy_from_slice(&low);
        to[3 - axes..].copy_from_slice(&high);
        let values = self.with(py, |simulation| simulation.window(name, from, to).map_err(exception))?;
        let extents: Vec<usize> = low.iter().zip(&high).map(|(low, high)| high - low).collect();
        numpy(py, values, &extents)
    }

    /// Sets parameters for the steps that follow.
    fn set_parameters(&self, py: Python<'_>, values: Vec<(String, f64)>) -> PyResult<()> {
        let values: Vec<(&str, f64)> = values.iter().map(|(name, value)| (&**name, *value)).collect();
        self.with(py, |simulation| simulation.set_parameters(&values).map_err(exception))
    }

    /// The parameters' names and values.
    fn parameters(&self, py: Python<'_>) -> PyResult<Vec<(String, f64)>> {
        self.with(py, |simulation| {
            let problem = simulation.problem();
            let names = problem.program.parameters().iter().map(|parameter| parameter.name.clone());
            Ok(names.zip(problem.parameters.iter().copied()).collect())
        })
    }

    /// The computed scalars' names and values.
    fn scalars(&self, py: Python<'_>) -> PyResult<Vec<(String, f64)>> {
        self.with(py, |simulation| {
            let program = simulation.problem().program.clone();
            let all = simulation.scalars().map_err(exception)?.into_iter().zip(program.scalars());
            Ok(all.filter(|(_, scalar)| !scalar.is_internal).map(|(own, _)| own).collect())
        })
    }

    /// The rows recorded since the last call: the columns' names, and steps with the other columns' values.
    #[allow(clippy::type_complexity)]
    fn records(&self, py: Python<'_>) -> PyResult<(Vec<String>, Vec<(u64, Vec<f64>)>)> {
        self.with(py, |simulation| {
            let rows = simulation.records().map_err(exception)?;
            let rows = rows.iter().map(|(step, values)| (step, values.to_vec())).collect();
            Ok((simulation.columns(), rows))
        })
    }

    /// Counts the values of all fields that are NaN or infinite.
    fn non_finite(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |simulation| simulation.non_finite().map_err(exception))
    }

    /// Writes a checkpoint.
    fn checkpoint(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.with(py, |simulation| simulation.checkpoint(&path).map_err(exception))
    }

    /// Writes fields to a file, whose name says the format; all of them, or that which is shown, where none is named.
    fn save(&self, py: Python<'_>, path: PathBuf, fields: Vec<String>) -> PyResult<()> {
        self.with(py, |simulation| simulation.save(&path, &fields).map_err(exception))
    }

    /// The time: a scalar of that name, else the steps times the parameter `dt`, else the steps.
    fn time(&self, py: Python<'_>) -> PyResult<f64> {
        self.with(py, |simulation| Ok(simulation.snapshot(&[]).map_err(exception)?.time))
    }

    /// Where a field's values stand: the place of the first one along each axis, and the distance to the next.
    fn places(&self, py: Python<'_>, name: &str) -> PyResult<Vec<(f64, f64)>> {
        let axes = self.extents(name)?.len();
        self.with(py, |simulation| {
            let problem = simulation.problem();
            let space = problem.space_of(problem.program.field(name).map_err(exception)?);
            Ok((3 - axes..3).map(|axis| (space.origin[axis], space.spacing[axis])).collect())
        })
    }

    /// The plan that runs.
    fn plan(&self, py: Python<'_>) -> PyResult<Plan> {
        self.with(py, |simulation| Ok(Plan(simulation.plan().clone())))
    }

    /// The steps done since the start, also while another thread runs it.
    #[getter]
    fn step(&self) -> u64 {
        self.step.load(Ordering::Relaxed)
    }

    /// The program's name.
    #[getter]
    fn program(&self) -> &str {
        &self.program
    }

    /// The name of the backend that runs it.
    #[getter]
    fn backend(&self) -> &str {
        self.backend
    }

    /// The extents of the domain in cells, slowest axis first.
    #[getter]
    fn shape(&self) -> Vec<usize> {
        self.shape.clone()
    }

    /// `f32` or `f64`.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.dtype.name()
    }

    /// Names and extents of the fields.
    #[getter]
    fn fields(&self) -> Vec<(String, Vec<usize>)> {
        self.fields.clone()
    }

    /// The name of the field that pictures show.
    #[getter]
    fn shown(&self) -> &str {
        self.fields.get(self.shown).map_or("", |(name, _)| name)
    }

    /// Where the simulation differs from what was asked, and why.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

/// A picture of values as the bytes of a .png file.
#[pyfunction]
#[pyo3(signature = (values, range = None))]
pub fn png(py: Python<'_>, values: &Bound<'_, PyAny>, range: Option<(f64, f64)>) -> PyResult<Vec<u8>> {
    let given = given(values)?;
    crate::guard::detached(py, move || {
        let shape = Shape::new(&given.extents).map_err(exception)?;
        let folder = tempfile::tempdir().map_err(|error| raise("FileError", error.to_string()))?;
        let path = folder.path().join("picture.png");
        let range = range.map(|(low, high)| abide::io::Range { low, high });
        let staged = abide::io::write(&path, &shape, &[("u", &given.values)], 0, range);
        staged.and_then(abide::io::Staged::commit).map_err(exception)?;
        std::fs::read(&path).map_err(|error| raise("FileError", error.to_string()))
    })
}

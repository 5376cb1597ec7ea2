//! From a program and its values to a simulation or a plan.

use std::path::PathBuf;
use std::sync::Arc;

use abide::backend::{self, Devices};
use abide::plan::{Alike, plan_ranks};
use abide::{Builder, Choice, DeviceSpec, Error, Options};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{Given, given};
use crate::errors::exception;
use crate::guard::{caught, detached};
use crate::program::{Program, start_of};
use crate::report::Plan;
use crate::simulation::Simulation;

/// A program, or the name of an entry of the catalogue.
#[derive(FromPyObject)]
pub enum Model {
    /// A program that Python recorded.
    Program(Py<Program>),
    /// An entry's name.
    Name(String),
}

impl Model {
    fn builder(&self) -> Builder {
        match self {
            Model::Program(program) => abide::Simulation::builder(Arc::clone(&program.get().0)),
            Model::Name(name) => abide::Simulation::builder(name.as_str()),
        }
    }
}

/// Reads an option of this name, if it is there and not `None`.
fn option<'a, 'py, T: FromPyObjectOwned<'py>>(
    options: &Bound<'py, PyDict>,
    name: &str,
) -> PyResult<Option<T>> {
    match options.get_item(name)? {
        Some(value) if !value.is_none() => {
            let read = value.extract::<T>();
            read.map(Some).map_err(|_| {
                let shown = value.repr().map_or_else(|_| "it".to_owned(), |text| text.to_string());
                exception(Error::invalid(name, format!("{shown} cannot be used"), "give another value"))
            })
        }
        _ => Ok(None),
    }
}

/// Reads an option that has a name of its own in Abide, such as an execution.
fn named<T: std::str::FromStr<Err = Error>>(options: &Bound<'_, PyDict>, name: &str) -> PyResult<Option<T>> {
    option::<String>(options, name)?.map(|text| text.parse().map_err(exception)).transpose()
}

/// The devices that Python asks for.
#[derive(FromPyObject)]
pub enum Asked {
    /// Those of these numbers.
    These(Vec<usize>),
    /// A number of them, or `all`, in words.
    Words(String),
}

impl Asked {
    /// Returns what was asked for.
    pub fn devices(self) -> PyResult<Devices> {
        match self {
            Asked::These(numbers) => Ok(Devices::These(numbers)),
            Asked::Words(words) => words.parse().map_err(exception),
        }
    }
}

/// Describes a simulation by the options that Python gives.
fn described(model: &Model, options: &Bound<'_, PyDict>) -> PyResult<Builder> {
    let mut builder = model.builder();
    if let Some(size) = option::<Vec<usize>>(options, "shape")? {
        builder = builder.size(&size);
    }
    if let Some(dtype) = named(options, "dtype")? {
        builder = builder.dtype(dtype);
    }
    if let Some(boundary) = named(options, "boundary")? {
        builder = builder.boundary_text(boundary);
    }
    for (name, value) in option::<Vec<(String, f64)>>(options, "parameters")?.unwrap_or_default() {
        builder = builder.param(&name, value);
    }
    for (name, value) in option::<Vec<(String, f64)>>(options, "scalars")?.unwrap_or_default() {
        builder = builder.scalar(&name, value);
    }
    if let Some(until) = option::<String>(options, "until")? {
        builder = builder.until(&until);
    }
    if let Some((scalar, by)) = option::<(String, f64)>(options, "marks")? {
        builder = builder.marks(&scalar, by);
    }
    if let Some(every) = option(options, "record")? {
        builder = builder.record(every);
    }
    for (field, index) in option::<Vec<(String, Vec<usize>)>>(options, "probes")?.unwrap_or_default() {
        builder = builder.probe(&field, &index);
    }
    let Options { execution, cache, depth, tune, exchange, .. } = chosen(options)?;
    builder = builder.execution(execution).cache(cache).depth(depth).tune(tune).exchange(exchange);
    builder = builder.pin(option(options, "pin")?.unwrap_or(false));
    if let Some(path) = option::<PathBuf>(options, "resume")? {
        builder = builder.resume(path).force(option(options, "force")?.unwrap_or(false));
    }
    if let Some(asked) = option::<Asked>(options, "devices")? {
        builder = builder.devices(asked.devices()?);
    }
    Ok(builder.backend(named(options, "backend")?.unwrap_or(Choice::Auto)))
}

/// Reads the options of a plan.
fn chosen(options: &Bound<'_, PyDict>) -> PyResult<Options> {
    Ok(Options {
        execution: named(options, "execution")?.unwrap_or_default(),
        cache: named(options, "cache")?.unwrap_or_default(),
        depth: named(options, "depth")?.unwrap_or_default(),
        tune: named(options, "tune")?.unwrap_or_default(),
        fuse: named(options, "fuse")?.unwrap_or_default(),
        lowering: abide::Lowering::Auto,
        jam: abide::Jam::Auto,
        team: abide::Team::Auto,
        rows: abide::LoopRows::Auto,
        tables: abide::Placement::Auto,
        exchange: named(options, "exchange")?.unwrap_or_default(),
        pin: option(options, "pin")?.unwrap_or(false),
        slab: false,
    })
}

/// Starts a simulation. `fields` has the starts by name: arrays, numbers, or names.
#[pyfunction]
pub fn start(
    py: Python<'_>,
    model: Model,
    fields: Vec<(String, Bound<'_, PyAny>)>,
    options: &Bound<'_, PyDict>,
) -> PyResult<Simulation> {
    let mut builder = caught(|| described(&model, options))?;
    for (name, values) in fields {
        builder = match values.hasattr("__array_interface__")? && !values.getattr("shape")?.is_empty()? {
            true => {
                let Given { values, extents } = given(&values)?;
                let shape = abide::Shape::new(&extents).map_err(exception)?;
                builder.input(&name, abide::io::Loaded { values, shape, members: None })
            }
            false => builder.start(&name, start_of(&values)?),
        };
    }
    let simulation = detached(py, || builder.build().map_err(exception))?;
    Simulation::new(simulation)
}

/// Plans a problem without running it: for a device that need not be here, or for a backend's own.
#[pyfunction]
pub fn plan(py: Python<'_>, model: Model, options: &Bound<'_, PyDict>) -> PyResult<Plan> {
    let builder = caught(|| described(&model, options))?;
    let device: Option<String> = option(options, "device")?;
    let choice = named(options, "backend")?.unwrap_or(Choice::Auto);
    let asked = option::<Asked>(options, "devices")?.map(Asked::devices).transpose()?;
    let options = chosen(options)?;
    detached(py, move || {
        let made = || {
            let (problem, devices) = (builder.problem()?, backend::devices(asked)?);
            if let Some(device) = device {
                let Devices::Count(count) = devices else {
                    let reason = format!("{devices} were asked for, and it need not be here");
                    let who = format!("device {device}");
                    return Err(Error::unsupported(who, reason, "ask for a number of devices, as in 4"));
                };
                let device = DeviceSpec::preset(&device)?;
                return plan_ranks(&problem, &options, &Alike { device: &device, count });
            }
            let open = |name: &str| backend::open_on(name, &devices);
            if let Choice::Named(name) = choice {
                return backend::plan(&open(name)?, &problem, &options);
            }
            let here = backend::names().find_map(|name| open(name).ok());
            let present = backend::names().filter_map(|name| open(name).ok());
            let hardware = present.into_iter().find(|opened| opened.kind != backend::Kind::Software);
            match hardware.or(here) {
                Some(opened) => backend::plan(&opened, &problem, &options),
                None => {
                    Err(Error::unsupported("backend auto", "none is here", "name a device, as in \"a100\""))
                }
            }
        };
        made().map(Plan).map_err(exception)
    })
}

/// The name of the program whose run a checkpoint holds.
#[pyfunction]
pub fn program_of(path: PathBuf) -> PyResult<String> {
    caught(|| Ok(abide::io::checkpoint::read_head(&path).map_err(exception)?.program))
}

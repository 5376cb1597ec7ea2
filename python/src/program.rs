//! Programs from what Python recorded of them.

use std::path::PathBuf;
use std::sync::Arc;

use abide::program::{Centring, Condition, Definition, Reduction, Region, Scope, Solve, Start, Wall};
use abide::{Error, Expr, text};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::{exception, raise};
use crate::formula::Tape;
use crate::guard::caught;

/// A checked program.
#[pyclass(frozen, module = "pyabide._pyabide")]
pub struct Program(pub Arc<abide::Program>);

#[pymethods]
impl Program {
    /// Builds a program of declared parts and of the stages of each step, whose formulas are numbers on the
    /// tape. Those of `derived` are formulas of parameters, which become parameters of these names. `grid` has the
    /// spacing and the origin of axes, and `walls` the conditions of fields with their sides, kinds and values.
    #[staticmethod]
    #[pyo3(signature = (name, dimensions, boundary, until, parts, tape, derived, steps, grid, walls))]
    #[allow(clippy::too_many_arguments)]
    fn define(
        name: &str,
        dimensions: usize,
        boundary: Option<&str>,
        until: Option<&str>,
        parts: Vec<Bound<'_, PyTuple>>,
        tape: Vec<Bound<'_, PyTuple>>,
        derived: Vec<(String, usize)>,
        steps: Vec<Vec<Bound<'_, PyTuple>>>,
        grid: Vec<(String, usize, Along)>,
        walls: Vec<(String, String, String, Vec<usize>)>,
    ) -> PyResult<Program> {
        caught(|| {
            let mut tape = Tape::read(&tape)?;
            let mut definition = Definition::new(name, dimensions);
            for part in &parts {
                declare(&mut definition, dimensions, part)?;
            }
            tape.check(derived.iter().map(|(_, number)| *number))?;
            for (name, number) in &derived {
                definition.derived(name, "of other parameters", |s| tape.replay(s, &[*number])[0]);
            }
            tape.name(derived);
            for (kind, axis, value) in &grid {
                match kind.as_str() {
                    "spacing" => definition.spacing(*axis, |s| value.expr(s)),
                    _ => definition.origin(*axis, |s| value.expr(s)),
                };
            }
            if let Some(boundary) = boundary {
                definition.boundaries(boundary);
            }
            for (field, sides, kind, values) in &walls {
                tape.check(values.iter().copied())?;
                let condition = Condition::of_name(kind);
                definition.wall(field, sides, |s| {
                    let all = tape.replay(s, values);
                    let wall = condition.and_then(|condition| Wall::of(condition, &all));
                    wall.unwrap_or_else(|| Wall::dirichlet(s.constant(f64::NAN)))
                });
            }
            if let Some(until) = until {
                definition.until(until);
            }
            for (number, stages) in steps.iter().enumerate() {
                definition.step();
                for stage in stages {
                    add(&mut definition, number, &tape, stage)?;
                }
            }
            Ok(Program(Arc::new(definition.build().map_err(exception)?)))
        })
    }

    /// The name.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// The number of axes.
    #[getter]
    fn dimensions(&self) -> usize {
        self.0.dimensions()
    }

    /// The names of the fields.
    #[getter]
    fn fields(&self) -> Vec<String> {
        self.0.fields().to_vec()
    }

    /// Name, default and meaning of each parameter that is no formula of others.
    #[getter]
    fn parameters(&self) -> Vec<(String, f64, String)> {
        let own = self.0.parameters().iter().enumerate().filter(|(number, _)| !self.0.is_derived(*number));
        own.map(|(_, parameter)| (parameter.name.clone(), parameter.default, parameter.about.clone()))
            .collect()
    }

    /// The names of the fields whose values each run gives.
    #[getter]
    fn given(&self) -> Vec<String> {
        let own = self.0.fields().iter().enumerate();
        own.filter(|(number, _)| *self.0.start(*number) == Start::Given)
            .map(|(_, name)| name.clone())
            .collect()
    }

    /// The boundary of the fields that have none of their own, in words.
    #[getter]
    fn boundary(&self) -> String {
        self.0.boundaries().describe(self.0.dimensions())
    }

    /// The condition that ends a run, if there is one.
    #[getter]
    fn until(&self) -> Option<String> {
        self.0.until().map(|until| until.describe(&self.0))
    }

    /// The names of the computed scalars.
    #[getter]
    fn scalars(&self) -> Vec<String> {
        self.0.scalars().iter().map(|scalar| scalar.name.clone()).collect()
    }

    /// The program as the text of a model file, with a table `run` for these options.
    fn text(&self, run: Vec<String>) -> PyResult<String> {
        caught(|| Ok(text::write(&self.0).map_err(exception)? + &text::run(&run)))
    }

    /// Whether every schedule can run it.
    #[getter]
    fn is_plain(&self) -> bool {
        self.0.is_plain()
    }

    /// Operations, bytes in float32 and the radius along each axis, of a cell and step.
    #[getter]
    fn footprint(&self) -> (usize, usize, Vec<usize>) {
        let radius = self.0.radius();
        let own = radius[3 - self.0.dimensions()..].to_vec();
        (self.0.flops(), self.0.bytes(abide::DType::F32), own)
    }
}

/// A number, or the name of a parameter.
#[derive(FromPyObject)]
enum Along {
    Number(f64),
    Parameter(String),
}

impl Along {
    fn expr<'g>(&self, scope: &Scope<'g>) -> Expr<'g> {
        match self {
            Along::Number(number) => scope.constant(*number),
            Along::Parameter(name) => scope.param(name),
        }
    }
}

fn declare(definition: &mut Definition, dimensions: usize, part: &Bound<'_, PyTuple>) -> PyResult<()> {
    let kind: String = part.get_item(0)?.extract()?;
    match kind.as_str() {
        "field" => {
            type Field<'py> =
                (String, String, String, usize, Option<Bound<'py, PyAny>>, Option<String>, Option<String>);
            let (_, name, on, components, start, boundary, precision): Field<'_> = part.extract()?;
            let centring = centring(&on, dimensions)?;
            match components {
                0 => definition.field(&name, centring),
                count => definition.components(&name, count, centring),
            };
            let start = start.map_or(Ok(Start::Given), |start| start_of(&start))?;
            definition.start(&name, start);
            if let Some(boundary) = boundary {
                definition.boundary_of(&name, &boundary);
            }
            if let Some(precision) = precision {
                definition.precision(&name, precision.parse().map_err(exception)?);
            }
        }
        "temporary" => {
            let (_, name, on): (String, String, String) = part.extract()?;
            definition.temporary(&name, centring(&on, dimensions)?);
        }
        "parameter" => {
            let (_, name, default, about): (String, String, f64, String) = part.extract()?;
            definition.parameter(&name, default, &about);
        }
        "scalar" => {
            let (_, name, initial, about): (String, String, Option<f64>, String) = part.extract()?;
            definition.scalar(&name, initial, &about);
        }
        "extent" => {
            let (_, name, axis, about): (String, String, usize, String) = part.extract()?;
            definition.extent(&name, axis, &about);
        }
        _ => return Err(raise("Defect", format!("no part of a program is named `{kind}`"))),
    }
    Ok(())
}

/// Adds a stage to a step of the cycle, or begins or ends a loop there.
fn add(definition: &mut Definition, number: usize, tape: &Tape, stage: &Bound<'_, PyTuple>) -> PyResult<()> {
    let (kind, dimensions): (String, usize) = (stage.get_item(0)?.extract()?, definition.dimensions());
    let mut step = definition.extend(number);
    match kind.as_str() {
        "repeat" => {
            let (_, most, until): (String, u64, Option<String>) = stage.extract()?;
            definition.begin_loop(number, most, until.as_deref());
        }
        "once" => definition.begin_once(number),
        "end of loop" => definition.end_loop(),
        "solve" => {
            type Solved = (String, String, (usize, usize), String, f64, u64, bool);
            let (_, unknown, (operator, rhs), method, tolerance, most, null_space): Solved =
                stage.extract()?;
            tape.check([operator, rhs].into_iter())?;
            let method = method.parse().map_err(exception)?;
            let how = Solve { method, tolerance, most, null_space };
            step.solve(&unknown, &how, &|s| tape.replay(s, &[operator])[0], &|s| tape.replay(s, &[rhs])[0]);
        }
        "set" => {
            type Set = (String, String, Vec<(String, usize)>, Option<usize>, Vec<Vec<usize>>);
            let (_, name, sets, mask, points): Set = stage.extract()?;
            let outputs: Vec<usize> = sets.iter().map(|(_, value)| *value).chain(mask).collect();
            tape.check(outputs.iter().copied())?;
            let define = |s: &Scope<'_>| {
                let values = tape.replay(s, &outputs);
                for ((field, _), value) in sets.iter().zip(&values) {
                    s.set(field, *value);
                }
                if let (Some(_), Some(mask)) = (mask, values.last()) {
                    s.only_where(*mask);
                }
            };
            match points.is_empty() {
                true => step.stage(&name, define),
                false => step.points_slice(&name, &points, define),
            };
        }
        "reduce" => {
            type Reduce = (String, String, String, String, Vec<[usize; 2]>, usize, usize);
            let (_, scalar, how, on, margins, value, every): Reduce = stage.extract()?;
            tape.check([value].into_iter())?;
            let mut region = Region::from(centring(&on, dimensions)?);
            for (axis, [low, high]) in margins.into_iter().enumerate() {
                region = region.without(3 - dimensions + axis, low, high);
            }
            let how = match how.as_str() {
                "min" => Reduction::Min,
                "max" => Reduction::Max,
                _ => Reduction::Sum,
            };
            step.reduce_every(every, &scalar, how, region, |s| tape.replay(s, &[value])[0]);
        }
        "compute" => {
            let (_, scalar, value): (String, String, usize) = stage.extract()?;
            tape.check([value].into_iter())?;
            step.compute(&scalar, |s| tape.replay(s, &[value])[0]);
        }
        _ => return Err(raise("Defect", format!("no stage is named `{kind}`"))),
    }
    Ok(())
}

/// Reads `cells`, `nodes`, `x-faces` or `x-edges`.
fn centring(text: &str, dimensions: usize) -> PyResult<Centring> {
    Centring::parse(text, dimensions).map_err(exception)
}

/// Reads a start: a number, or a name such as `random:7`.
pub fn start_of(start: &Bound<'_, PyAny>) -> PyResult<Start> {
    if let Ok(name) = start.extract::<String>() {
        return name.parse().map_err(exception);
    }
    let reason = || format!("it is {}", start.get_type());
    let value: f64 = start.extract().map_err(|_| {
        let change = "give an array, a number, or a name such as \"random:1\"";
        exception(Error::invalid("the start of a field", reason(), change))
    })?;
    Ok(Start::Constant(value))
}

/// Reads a model file; returns its program, and the options of its table `run`.
#[pyfunction]
pub fn load(path: PathBuf) -> PyResult<(Program, Vec<String>)> {
    caught(|| abide::io::model::read(&path).and_then(made).map_err(exception))
}

/// Reads the text of a model file, which `source` names in errors.
#[pyfunction]
pub fn loads(text: &str, source: &str) -> PyResult<(Program, Vec<String>)> {
    caught(|| text::read(text, source).and_then(made).map_err(exception))
}

fn made(model: text::Model) -> abide::Result<(Program, Vec<String>)> {
    abide::io::model::check_options(&model.options)?;
    Ok((Program(Arc::new(model.program)), model.options))
}

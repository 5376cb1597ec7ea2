//! The description of a simulation: from the computation to its backend.

use std::path::PathBuf;
use std::sync::Arc;

use abide_core::catalogue;

use crate::Simulation;
use crate::backend::{self, Choice, Host, Opened};
use crate::domain::{BoundaryText, Sides};
use crate::io::checkpoint::Head;
use crate::io::{self, Loaded};
use crate::program::{Marks, Probe, Problem, Record, Until};
use crate::{
    Array, Boundaries, Boundary, CachePolicy, DType, Depth, Error, Execution, Options, Program, Result,
    Shape, Start, Stencil, Tune,
};

/// Sources of a simulation's model: a stencil, a program, or the name of an entry of the catalogue.
pub trait IntoModel {
    /// Turns the source into the model.
    fn into_model(self) -> Result<Model>;
}

/// A program, or an entry of the catalogue whose number of axes the size decides.
#[derive(Clone)]
pub enum Model {
    /// A program.
    Program(Arc<Program>),
    /// An entry of the catalogue.
    Entry(&'static catalogue::Entry),
}

impl<S: Stencil> IntoModel for &S {
    fn into_model(self) -> Result<Model> {
        Ok(Model::Program(Arc::new(Program::new(self)?)))
    }
}

impl IntoModel for Program {
    fn into_model(self) -> Result<Model> {
        Ok(Model::Program(Arc::new(self)))
    }
}

impl IntoModel for Arc<Program> {
    fn into_model(self) -> Result<Model> {
        Ok(Model::Program(self))
    }
}

impl IntoModel for &str {
    fn into_model(self) -> Result<Model> {
        catalogue::find(self).map(Model::Entry)
    }
}

impl Model {
    /// Returns the numbers of axes that the model can have.
    pub fn dimensions(&self) -> std::ops::RangeInclusive<usize> {
        match self {
            Model::Program(program) => program.dimensions()..=program.dimensions(),
            Model::Entry(entry) => entry.dimensions.clone(),
        }
    }

    /// Returns the program for a number of axes.
    pub fn program(&self, dimensions: usize) -> Result<Arc<Program>> {
        match self {
            // `Problem::check` reports a wrong number of axes, with the size.
            Model::Program(program) => Ok(program.clone()),
            Model::Entry(entry) => entry.program(dimensions).map(Arc::new),
        }
    }

    /// Returns whether the values of a field stand at the centres of cells, so that their extents are the
    /// domain's. `true` where the model has no such field or number of axes, which the builder refuses.
    pub fn is_on_cells(&self, field: &str, dimensions: usize) -> bool {
        let program = self.program(dimensions);
        let elsewhere = |program: Arc<Program>| {
            program.field(field).is_ok_and(|field| !program.kinds()[field].centring.is_cell())
        };
        !program.is_ok_and(elsewhere)
    }

    /// Returns the size used where none is given and no input implies one: two axes where the model can have
    /// them.
    pub fn default_size(&self) -> Result<Shape> {
        let range = self.dimensions();
        Shape::new(match 2.clamp(*range.start(), *range.end()) {
            1 => &[4096],
            2 => &[512, 512],
            _ => &[128; 3],
        })
    }
}

/// Values for a field; those of an `ndarray` also tell the size.
pub struct Values {
    values: Array,
    shape: Result<Option<Shape>>,
}

impl From<Array> for Values {
    fn from(values: Array) -> Self {
        Values { values, shape: Ok(None) }
    }
}

impl From<Loaded> for Values {
    fn from(loaded: Loaded) -> Self {
        Values { values: loaded.values, shape: Ok(Some(loaded.shape)) }
    }
}

impl From<Vec<f32>> for Values {
    fn from(values: Vec<f32>) -> Self {
        Array::F32(values).into()
    }
}

impl From<Vec<f64>> for Values {
    fn from(values: Vec<f64>) -> Self {
        Array::F64(values).into()
    }
}

impl<T: crate::Real, D: ndarray::Dimension> From<ndarray::Array<T, D>> for Values {
    fn from(array: ndarray::Array<T, D>) -> Self {
        let shape = Shape::new(array.shape()).map(Some);
        // In the order of the axes, whatever their order in memory.
        Values { values: T::into_array(array.iter().copied().collect()), shape }
    }
}

enum Initial {
    Values(Values),
    File(PathBuf),
    Start(Start),
}

/// Describes a simulation; [`Builder::build`] checks all of it and starts it.
pub struct Builder {
    model: Result<Model>,
    size: Option<Vec<usize>>,
    dtype: Option<DType>,
    boundaries: Option<Boundaries>,
    boundary_text: Option<BoundaryText>,
    scalars: Vec<(String, f64)>,
    until: Option<String>,
    marks: Option<(String, f64)>,
    record: Option<u64>,
    probes: Vec<(String, Vec<usize>)>,
    parameters: Vec<(String, f64)>,
    initial: Vec<(String, Initial)>,
    choice: Choice,
    opened: Option<Opened>,
    options: Options,
    resume: Option<PathBuf>,
    first_step: u64,
    output_bytes: Option<u64>,
}

impl Builder {
    pub(crate) fn new(model: impl IntoModel) -> Self {
        Builder {
            model: model.into_model(),
            size: None,
            dtype: None,
            boundaries: None,
            boundary_text: None,
            scalars: Vec::new(),
            until: None,
            marks: None,
            record: None,
            probes: Vec::new(),
            parameters: Vec::new(),
            initial: Vec::new(),
            choice: Choice::Auto,
            opened: None,
            options: Options::default(),
            resume: None,
            first_step: 0,
            output_bytes: None,
        }
    }

    /// Sets the extents of the domain, slowest axis first. Unless given: an input's, the checkpoint's, or 512
    /// × 512 in two dimensions, 4096 in one, 128 cubed in three.
    pub fn size(mut self, extents: &[usize]) -> Self {
        self.size = Some(extents.to_vec());
        self
    }

    /// Sets the type of all fields; f32 unless given.
    pub fn dtype(mut self, dtype: DType) -> Self {
        self.dtype = Some(dtype);
        self
    }

    /// Sets the boundary at every side; the program's own unless given.
    pub fn boundary(self, boundary: Boundary) -> Self {
        self.boundaries(Boundaries::all(boundary))
    }

    /// Sets the boundary at each axis and side.
    pub fn boundaries(mut self, boundaries: Boundaries) -> Self {
        self.boundaries = Some(boundaries);
        self
    }

    /// Sets the boundaries as they are written, for all fields and for single ones: `mirror,u:x-=-reflect`
    /// and the like. What it does not name is the program's.
    pub fn boundary_text(mut self, text: BoundaryText) -> Self {
        self.boundary_text = Some(text);
        self
    }

    /// Sets a computed scalar's value before the first step; the program's unless given.
    pub fn scalar(mut self, name: &str, value: f64) -> Self {
        self.scalars.push((name.to_owned(), value));
        self
    }

    /// Ends the run by a condition on a computed scalar, tested after each step: `SCALAR OP NUMBER`, as in
    /// `time >= 15.5`. NaN in the scalar ends it too.
    pub fn until(mut self, condition: &str) -> Self {
        self.until = Some(condition.to_owned());
        self
    }

    /// Marks every multiple of a number that a computed scalar reaches, as in `marks("time", 0.5)`: an epoch of
    /// [`Simulation::run_with`] ends after the first step at which the scalar has reached the next one, and its
    /// progress says so. Until then the run stays on the device. NaN in the scalar ends a run.
    pub fn marks(mut self, scalar: &str, by: f64) -> Self {
        self.marks = Some((scalar.to_owned(), by));
        self
    }

    /// Records all computed scalars, and every [`Builder::probe`], each so many steps, counted from the start;
    /// [`Simulation::records`] returns the rows.
    ///
    /// Programs that have scalars, or fields on faces and nodes, record on the device. A plain program runs by
    /// the same plan as without a record, is halted at each row, and its values are read one by one.
    pub fn record(mut self, every: u64) -> Self {
        self.record = Some(every);
        self
    }

    /// Records a field's value at an index, slowest axis first, too: at every step unless [`Builder::record`]
    /// says otherwise.
    pub fn probe(mut self, field: &str, index: &[usize]) -> Self {
        self.probes.push((field.to_owned(), index.to_vec()));
        self
    }

    /// Sets a parameter's value; the program's default unless given.
    pub fn param(mut self, name: &str, value: f64) -> Self {
        self.parameters.push((name.to_owned(), value));
        self
    }

    /// Sets a field's initial values, cast to the run's type: an [`Array`] or a vector in the order of the
    /// cells, an `ndarray`, or what [`io::read`] returned.
    pub fn input(mut self, field: &str, values: impl Into<Values>) -> Self {
        self.initial.push((field.to_owned(), Initial::Values(values.into())));
        self
    }

    /// Reads a field's initial values from a file as [`io::read`] does, cast to the run's type. The header is
    /// read when the size is needed, the values once the machine is found to have memory for them.
    pub fn input_file(mut self, field: &str, path: impl Into<PathBuf>) -> Self {
        self.initial.push((field.to_owned(), Initial::File(path.into())));
        self
    }

    /// Sets a field's named initial state; the program's own unless given.
    pub fn start(mut self, field: &str, start: Start) -> Self {
        self.initial.push((field.to_owned(), Initial::Start(start)));
        self
    }

    /// Chooses the backend.
    pub fn backend(mut self, choice: Choice) -> Self {
        self.choice = choice;
        self
    }

    /// Takes a backend that is open already, in place of a choice.
    pub fn on(mut self, opened: &Opened) -> Self {
        self.opened = Some(opened.clone());
        self
    }

    /// Sets the schedule.
    pub fn execution(mut self, execution: Execution) -> Self {
        self.options.execution = execution;
        self
    }

    /// Sets where a persistent run keeps its cells from step to step.
    pub fn cache(mut self, cache: CachePolicy) -> Self {
        self.options.cache = cache;
        self
    }

    /// Sets the temporal depth: the steps that a tile advances between exchanges with its neighbours.
    pub fn depth(mut self, depth: Depth) -> Self {
        self.options.depth = depth;
        self
    }

    /// Sets whether plans are timed on the device first, where a backend has several. Unless given, the plan
    /// that an earlier tuning kept is used and nothing is timed.
    pub fn tune(mut self, tune: Tune) -> Self {
        self.options.tune = tune;
        self
    }

    /// Sets whether each of a CPU's threads stays on a core of its own. No other backend has threads to pin,
    /// so every other backend refuses.
    pub fn pin(mut self, pin: bool) -> Self {
        self.options.pin = pin;
        self
    }

    /// Goes on from a checkpoint. Whatever else is given must agree with it.
    pub fn resume(mut self, path: impl Into<PathBuf>) -> Self {
        self.resume = Some(path.into());
        self
    }

    /// Counts the steps from this one instead of 0, where the inputs are the fields after so many steps. A
    /// checkpoint brings its own count.
    pub fn first_step(mut self, step: u64) -> Self {
        self.first_step = step;
        self
    }

    /// Sets the bytes that reading fields back and writing files will take at once. The builder asks whether
    /// the machine has memory for these and all else together. Unless given: the bytes of one field.
    pub fn output_bytes(mut self, bytes: u64) -> Self {
        self.output_bytes = Some(bytes);
        self
    }

    /// Returns the checked problem alone, without a device.
    pub fn problem(self) -> Result<Problem> {
        self.prepare().map(|(_, prepared)| prepared.problem)
    }

    /// Checks the description, fills the fields and loads them onto the device.
    pub fn build(self) -> Result<Simulation> {
        let (builder, prepared) = self.prepare()?;
        let Prepared { problem, resumed } = prepared;
        let host = host(&problem, &builder)?;
        let (mut step, mut notes) = (builder.first_step, Vec::new());
        let fields = || match resumed {
            Some((path, head)) => {
                step = head.steps;
                let checkpoint = io::checkpoint::read(&path)?;
                let shapes = (0..head.fields.len()).map(|field| problem.shape_of(field));
                if checkpoint.shapes != shapes.collect::<Result<Vec<_>>>()? {
                    let message = "a field has not the extents of the program's";
                    return Err(Error::file(path, message, "give a checkpoint of this program"));
                }
                match checkpoint.head == head {
                    true => Ok(checkpoint.fields),
                    false => {
                        Err(Error::file(path, "it changed while it was read", "resume once it is written"))
                    }
                }
            }
            None => fill(&problem, builder.initial, &mut notes),
        };
        let mut begun = match &builder.opened {
            Some(opened) => backend::begin_on(opened, &problem, &builder.options, host, fields)?,
            None => backend::begin(builder.choice, &problem, &builder.options, host, fields)?,
        };
        notes.extend(backend::cache_refusal());
        notes.append(&mut begun.notes);
        begun.notes = notes;
        Ok(Simulation::new(problem, begun, step))
    }

    fn prepare(mut self) -> Result<(Builder, Prepared)> {
        let model = std::mem::replace(&mut self.model, Err(Error::unknown("model", "", [""; 0])))?;
        let resumed = match &self.resume {
            Some(path) => Some((path.clone(), io::checkpoint::read_head(path)?)),
            None => None,
        };
        let shape = self.shape(&model, resumed.as_ref().map(|(_, head)| head))?;
        let program = model.program(shape.dimensions())?;
        let default = program.boundary();
        if let Some(text) = &self.boundary_text {
            self.boundaries = Some(text.resolve(default, program.dimensions())?);
        }
        let boundaries = self.boundaries.unwrap_or_else(|| Boundaries::all(default));
        let dtype = self.dtype.unwrap_or(DType::F32);
        let mut problem = Problem::unchecked(program, shape, dtype);
        problem.boundaries = boundaries;
        if let Some(text) = &self.boundary_text {
            let program = &problem.program;
            let own = text.of_fields(program.fields(), program.dimensions())?;
            problem.sides = own.iter().zip(&problem.sides).map(|(own, sides)| own.or(*sides)).collect();
        }
        for (name, value) in &self.scalars {
            let number = problem.program.scalar(name)?;
            check_parameter(name, *value, dtype)?;
            problem.scalars[number] = *value;
        }
        problem.first_step = self.first_step;
        problem.until = match &self.until {
            Some(condition) => Some(Until::parse(condition, &problem.program)?),
            None => None,
        };
        problem.marks = match &self.marks {
            Some((scalar, by)) => Some(Marks::new(&problem.program, scalar, *by)?),
            None => None,
        };
        if self.record.is_some() || !self.probes.is_empty() {
            let probes = self.probes.iter().map(|(field, index)| Probe::new(&problem.program, field, index));
            let probes = probes.collect::<Result<Vec<_>>>()?;
            problem.record = Some(Record::new(&problem.program, self.record.unwrap_or(1), probes));
        }
        for (name, value) in &self.parameters {
            let number = problem.program.parameter(name)?;
            check_parameter(name, *value, dtype)?;
            problem.parameters[number] = *value;
        }
        for (name, _) in &self.initial {
            problem.program.field(name)?;
        }
        if let Some((_, head)) = &resumed {
            self.adopt(head, &mut problem)?;
        }
        problem.check()?;
        Ok((self, Prepared { problem, resumed }))
    }

    /// Returns the size: the given one, else the one that the checkpoint or an input implies, else the
    /// model's default.
    fn shape(&mut self, model: &Model, resumed: Option<&Head>) -> Result<Shape> {
        let given = self.size.as_deref().map(Shape::new).transpose()?;
        let mut implied = None;
        for (name, initial) in &mut self.initial {
            let own = match initial {
                Initial::Start(_) => None,
                Initial::Values(values) => values.shape.clone()?,
                Initial::File(path) => match io::announced(path)? {
                    Some(announced) => Some(announced.shape),
                    // A file that can be read only once is read now.
                    None => {
                        let Loaded { values, shape } = io::read(path)?;
                        *initial = Initial::Values(values.into());
                        Some(shape)
                    }
                },
            };
            // What stands on faces and nodes is held against its field's extents when the fields are filled.
            let Some(own) = own.filter(|own| model.is_on_cells(name, own.dimensions())) else { continue };
            if let Some(other) = given.or(implied).filter(|other| *other != own) {
                return Err(Error::invalid(
                    format!("input of field {name}"),
                    format!("its size is {own}, the domain's is {other}"),
                    "give inputs of the domain's size, or leave --size out",
                ));
            }
            implied = Some(own);
        }
        match given.or(implied).or(resumed.map(|head| head.shape)) {
            Some(shape) => Ok(shape),
            None => model.default_size(),
        }
    }

    /// Takes from a checkpoint everything that was not given, and refuses whatever was given otherwise.
    fn adopt(&self, checkpoint: &Head, problem: &mut Problem) -> Result<()> {
        let path = self.resume.clone().unwrap_or_default();
        let differs = |what: &str, stored: String, given: String| {
            Error::file(
                path.clone(),
                format!("{what}: the checkpoint has {stored}, given is {given}"),
                format!("leave {what} out to go on as before"),
            )
        };
        if !self.initial.is_empty() {
            return Err(Error::file(path, "a checkpoint brings all fields with it", "leave the inputs out"));
        }
        let program = &problem.program;
        if checkpoint.program != program.name() {
            return Err(differs("the program", checkpoint.program.clone(), program.name().to_owned()));
        }
        if checkpoint.fields != program.fields() {
            return Err(differs("the fields", checkpoint.fields.join(", "), program.fields().join(", ")));
        }
        if checkpoint.parameters.iter().map(|p| &p.0).ne(program.parameters().iter().map(|p| &p.name)) {
            let stored = checkpoint.parameters.iter().map(|p| p.0.as_str()).collect::<Vec<_>>().join(", ");
            let own = program.parameters().iter().map(|p| p.name.as_str()).collect::<Vec<_>>().join(", ");
            return Err(differs("the parameters", stored, own));
        }
        if checkpoint.scalars.iter().map(|s| &s.0).ne(program.scalars().iter().map(|s| &s.name)) {
            let stored = checkpoint.scalars.iter().map(|s| s.0.as_str()).collect::<Vec<_>>().join(", ");
            let own = program.scalars().iter().map(|s| s.name.as_str()).collect::<Vec<_>>().join(", ");
            return Err(differs("the computed scalars", stored, own));
        }
        if !self.scalars.is_empty() {
            return Err(Error::file(
                path,
                "a checkpoint brings all scalars with it",
                "leave the scalars out",
            ));
        }
        let own = |sides: &[Sides]| {
            let written = program.fields().iter().zip(sides).filter(|(_, sides)| **sides != Sides::default());
            written.map(|(name, sides)| format!("{name}:{sides}")).collect::<Vec<_>>().join(" ")
        };
        if self.boundary_text.is_some() && own(&checkpoint.sides) != own(&problem.sides) {
            return Err(differs("the boundary", own(&checkpoint.sides), own(&problem.sides)));
        }
        if checkpoint.shape != problem.shape {
            return Err(differs("the size", checkpoint.shape.to_string(), problem.shape.to_string()));
        }
        if self.dtype.is_some_and(|dtype| dtype != checkpoint.dtype) {
            return Err(differs("the dtype", checkpoint.dtype.to_string(), problem.dtype.to_string()));
        }
        let axes = problem.shape.dimensions();
        let sides = |b: &Boundaries| b.0[3 - axes..].to_vec();
        if self.boundaries.as_ref().is_some_and(|given| sides(given) != sides(&checkpoint.boundaries)) {
            return Err(differs(
                "the boundary",
                checkpoint.boundaries.describe(axes),
                problem.boundaries.describe(axes),
            ));
        }
        for (name, given) in &self.parameters {
            let stored = checkpoint.parameters.iter().find(|p| p.0 == *name).map(|p| p.1);
            if let Some(stored) = stored.filter(|stored| stored != given) {
                return Err(differs(&format!("parameter {name}"), stored.to_string(), given.to_string()));
            }
        }
        problem.dtype = checkpoint.dtype;
        problem.boundaries = checkpoint.boundaries;
        problem.parameters = checkpoint.parameters.iter().map(|p| p.1).collect();
        problem.scalars = checkpoint.scalars.iter().map(|s| s.1).collect();
        problem.first_step = checkpoint.steps;
        problem.sides = match checkpoint.sides.is_empty() {
            true => vec![Sides::default(); checkpoint.fields.len()],
            false => checkpoint.sides.clone(),
        };
        Ok(())
    }
}

struct Prepared {
    problem: Problem,
    /// The checkpoint that the run goes on from; its fields are still to be read.
    resumed: Option<(PathBuf, Head)>,
}

/// Returns the host's memory that filling the fields and writing them will take.
fn host(problem: &Problem, builder: &Builder) -> Result<Host> {
    let mut host = Host::of(problem);
    host.output = builder.output_bytes.map_or(host.output, u128::from);
    for name in problem.program.fields() {
        match builder.initial.iter().rfind(|(field, _)| field == name) {
            Some((_, Initial::Values(Values { values, .. }))) if values.dtype() == problem.dtype => {
                host.fields -= 1
            }
            Some((_, Initial::File(path))) => {
                let besides = io::announced(path)?.map_or(0, |announced| announced.besides(problem.dtype));
                host.reading = host.reading.max(besides);
            }
            _ => {}
        }
    }
    Ok(host)
}

/// Makes the initial fields in the program's order; `notes` tell what was changed to make the values fit.
fn fill(
    problem: &Problem,
    mut initial: Vec<(String, Initial)>,
    notes: &mut Vec<String>,
) -> Result<Vec<Array>> {
    let mut fields = Vec::new();
    for (number, name) in problem.program.fields().iter().enumerate() {
        // Of several inputs for one field the last counts.
        let own = initial.iter().rposition(|(field, _)| field == name).map(|at| initial.swap_remove(at).1);
        let shape = problem.shape_of(number)?;
        fields.push(match own {
            None => problem.program.start(number).fill(&shape, problem.dtype)?,
            Some(Initial::Start(start)) => start.fill(&shape, problem.dtype)?,
            Some(Initial::Values(Values { values, shape: own })) => {
                if let Some(own) = own?.filter(|own| *own != shape) {
                    return Err(Error::invalid(
                        format!("input of field {name}"),
                        format!("its size is {own}, the field's is {shape}"),
                        "give inputs of the field's size",
                    ));
                }
                typed(problem, name, values, notes)?
            }
            Some(Initial::File(path)) => {
                let loaded = io::read_for(&path, problem.dtype)?;
                if loaded.shape != shape {
                    let message = format!("its size is {}, the field's is {shape}", loaded.shape);
                    return Err(Error::file(path, message, "give inputs of the field's size"));
                }
                typed(problem, name, loaded.values, notes)?
            }
        });
    }
    backend::check_fields(problem, &fields)?;
    Ok(fields)
}

/// Returns the values in the run's type; where they are rounded, a note says so.
fn typed(problem: &Problem, name: &str, values: Array, notes: &mut Vec<String>) -> Result<Array> {
    if values.dtype() == problem.dtype {
        return Ok(values);
    }
    if problem.dtype == DType::F32 {
        notes.push(format!("field {name}: input in f64 rounded to f32, the run's type"));
    }
    values.cast(problem.dtype)
}

/// Checks that a parameter's value is a number of the run's type.
pub(crate) fn check_parameter(name: &str, value: f64, dtype: DType) -> Result<()> {
    if dtype.is_finite(value) {
        return Ok(());
    }
    Err(Error::invalid(
        format!("parameter {name}"),
        format!("{value:?} is not a finite number in {dtype}"),
        "give a finite value",
    ))
}

//! The description of a simulation: from the computation to its backend.

mod batch;
mod model;
mod prepare;
mod source;

use std::path::PathBuf;

use abide_core::floating::standard;

use self::batch::Setting;
pub use self::model::{IntoModel, Model, Values};
pub(crate) use self::prepare::check_parameter;
use self::prepare::{Prepared, host};
use self::source::Source;
use crate::Simulation;
use crate::backend::{self, Choice, Devices, Opened};
use crate::domain::BoundaryText;
use crate::program::Problem;
use crate::{
    Boundaries, Boundary, CachePolicy, DType, Depth, Error, Exchanging, Execution, Fuse, Jam, LoopRows,
    Lowering, Options, Placement, Result, Start, Team, Tune,
};

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
    parameters: Vec<(String, Setting)>,
    batch: Option<usize>,
    initial: Vec<(String, Initial)>,
    choice: Choice,
    opened: Option<Opened>,
    devices: Option<Devices>,
    options: Options,
    resume: Option<PathBuf>,
    force: bool,
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
            batch: None,
            initial: Vec::new(),
            choice: Choice::Auto,
            opened: None,
            devices: None,
            options: Options::default(),
            resume: None,
            force: false,
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
    /// `time >= 15.5`; the program's own condition, if it has one, unless given. NaN in the scalar ends it too.
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
        self.parameters.push((name.to_owned(), Setting::All(value)));
        self
    }

    /// Runs so many independent domains of the one shape at once, the *members* of a batch. Each has the bits
    /// that it would have alone.
    ///
    /// Fields are given and read with the members one after another, as arrays with the members' axis first; a
    /// start or an input without that axis is for all of them alike, but a start that is random has the seed plus
    /// the member's number. Parameters are for all members, or for each its own ([`Builder::param_spread`],
    /// [`Builder::param_each`]). A batch has no [`Builder::until`], no marks and no record.
    ///
    /// ```
    /// use abide::prelude::*;
    ///
    /// let heat = Simulation::builder("heat").size(&[33, 65]).batch(4).param_spread("kappa", 0.1, 0.25);
    /// let mut heat = heat.backend(Choice::CPU).build()?;
    /// let report = heat.run(100)?;
    /// assert_eq!(report.cells, 4 * 33 * 65);
    /// assert_eq!(heat.field_nd::<f32>("u")?.shape(), [4, 33, 65]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn batch(mut self, members: usize) -> Self {
        self.batch = Some(members);
        self
    }

    /// Spreads a parameter linearly over the members of a batch: of n members, number i has
    /// `first + (last - first) * i / (n - 1)`, and a single one `first`.
    pub fn param_spread(mut self, name: &str, first: f64, last: f64) -> Self {
        self.parameters.push((name.to_owned(), Setting::Spread(first, last)));
        self
    }

    /// Sets a parameter's value for each member of a batch.
    pub fn param_each(mut self, name: &str, values: impl Into<Vec<f64>>) -> Self {
        self.parameters.push((name.to_owned(), Setting::Each(values.into())));
        self
    }

    /// Sets a field's initial values, cast to the run's type: an [`Array`](crate::Array) or a vector in the order of the
    /// cells, an `ndarray`, or what [`io::read`](crate::io::read) returned.
    pub fn input(mut self, field: &str, values: impl Into<Values>) -> Self {
        self.initial.push((field.to_owned(), Initial::Values(values.into())));
        self
    }

    /// Reads a field's initial values from a file as [`io::read`](crate::io::read) does, cast to the run's type. The header is
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

    /// Runs on several devices of the backend, each a slab of the domain cut along its slowest axis, with the bits of one
    /// device: a number of them, [`Devices::All`], or [`Devices::These`]. Fewer run where the domain is too thin, and a note
    /// says so. Unless given: what the environment variable `ABIDE_DEVICES` says, else one. The CPU's devices are groups of
    /// its threads; wgpu takes one.
    ///
    /// ```
    /// use abide::prelude::*;
    ///
    /// let heat = |devices| Simulation::builder("heat").size(&[65, 33]).backend(Choice::CPU).devices(devices).build();
    /// let (mut one, mut three) = (heat(1)?, heat(3)?);
    /// one.run(40)?;
    /// let report = three.run(40)?;
    /// assert_eq!(report.ranks.len(), 3);
    /// assert!(one.field("u")?.same_bits(&three.field("u")?));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn devices(mut self, devices: impl Into<Devices>) -> Self {
        self.devices = Some(devices.into());
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

    /// Sets how the stages of a program become kernels; a plain one's do not.
    pub fn fuse(mut self, fuse: Fuse) -> Self {
        self.options.fuse = fuse;
        self
    }

    /// Sets how loops of formulas become text.
    pub fn lowering(mut self, lowering: Lowering) -> Self {
        self.options.lowering = lowering;
        self
    }

    /// Sets how many points of a thread share each pass through jammed loops.
    pub fn jam(mut self, jam: Jam) -> Self {
        self.options.jam = jam;
        self
    }

    /// Sets how many threads share the loops of a point, where teams do.
    pub fn team(mut self, team: Team) -> Self {
        self.options.team = team;
        self
    }

    /// Sets how many turns of a kept loop share each pass through its inner loops.
    pub fn rows(mut self, rows: LoopRows) -> Self {
        self.options.rows = rows;
        self
    }

    /// Sets where the tables of loops lie.
    pub fn tables(mut self, tables: Placement) -> Self {
        self.options.tables = tables;
        self
    }

    /// Sets how several devices exchange planes. Unless given: by stores where all can make them, else by
    /// copies, else over the devices' network, else by messages.
    pub fn exchange(mut self, exchange: Exchanging) -> Self {
        self.options.exchange = exchange;
        self
    }

    /// Sets whether each of a CPU's threads stays on a core of its own. No other backend has threads to pin,
    /// so every other backend refuses.
    pub fn pin(mut self, pin: bool) -> Self {
        self.options.pin = pin;
        self
    }

    /// Goes on from a checkpoint. Whatever else is given must agree with it, the formulas of the program too.
    pub fn resume(mut self, path: impl Into<PathBuf>) -> Self {
        self.resume = Some(path.into());
        self
    }

    /// Sets whether a checkpoint of a program with other formulas is resumed all the same. Its fields, parameters and
    /// scalars must have the names of the program's; a note says what differs.
    pub fn force(mut self, force: bool) -> Self {
        self.force = force;
        self
    }

    /// Counts the steps from this one instead of 0, where the inputs are the fields after so many steps. A
    /// checkpoint brings its own count.
    pub fn first_step(mut self, step: u64) -> Self {
        self.first_step = step;
        self
    }

    /// Sets the bytes that reading fields back and writing files will take at once. The builder checks that
    /// the machine has memory for these and everything else combined. Unless given: the bytes of one field.
    pub fn output_bytes(mut self, bytes: u64) -> Self {
        self.output_bytes = Some(bytes);
        self
    }

    /// Returns the checked problem alone, without a device.
    ///
    /// ```
    /// use abide::prelude::*;
    ///
    /// let problem = Simulation::builder("heat").size(&[64, 80]).dtype(DType::F64).problem()?;
    /// assert_eq!(problem.shape.extents(), [64, 80]);
    /// assert!(matches!(Simulation::builder("heaat").problem(), Err(Error::Unknown { .. })));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] where the catalogue has no such model, or the program no such field, parameter or scalar;
    /// [`Error::Invalid`] for values of the wrong number, type or size, for parameters that are not finite, and for
    /// what the domain and its boundaries do not allow; [`Error::Limit`] for a size, a number of axes or of members
    /// beyond what there is; [`Error::File`] where an input or a checkpoint cannot be read, or a checkpoint does not
    /// agree with what was given.
    pub fn problem(self) -> Result<Problem> {
        standard(|| self.prepare()).map(|(_, prepared)| prepared.problem)
    }

    /// Checks the description, fills the fields and loads them onto the device.
    ///
    /// ```
    /// use abide::prelude::*;
    ///
    /// let build = |size: &[usize]| Simulation::builder("heat").size(size).backend(Choice::CPU).build();
    /// assert_eq!(build(&[16, 16])?.backend(), "cpu");
    /// assert!(matches!(build(&[16, 16, 16, 16]), Err(Error::Limit { .. })));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Builder::problem`]; [`Error::Unavailable`] where the chosen backend's device or driver is absent, or
    /// this build lacks it; [`Error::Unsupported`] where it cannot run the problem as asked, or, with
    /// [`Choice::Auto`], where no backend can; [`Error::Limit`] where the machine or the device has no memory for it,
    /// or has fewer devices; [`Error::Compile`] and [`Error::Device`] where the driver fails.
    pub fn build(self) -> Result<Simulation> {
        standard(|| self.begun())
    }

    fn begun(self) -> Result<Simulation> {
        let (builder, prepared) = self.prepare()?;
        let Prepared { problem, resumed, notes: known } = prepared;
        if resumed.is_none() {
            builder.check_starts(&problem)?;
        }
        let host = host(&problem, &builder)?;
        let devices = match (&builder.opened, builder.devices) {
            (Some(opened), Some(several)) if !several.is_one() => {
                return Err(Error::unsupported(
                    format!("backend {}", opened.backend.name()),
                    format!("{several} were asked for of a backend that is open already"),
                    "open it by backend::open_on, or choose it by Builder::backend",
                ));
            }
            (Some(_), _) => Devices::Count(1),
            (_, asked) => backend::devices(asked)?,
        };
        let step = resumed.as_ref().map_or(builder.first_step, |(_, head)| head.steps);
        let pictured = resumed.as_ref().and_then(|(_, head)| head.pictured);
        let mut source = Source::new(&problem, builder.initial, resumed);
        let mut begun = match &builder.opened {
            Some(opened) => backend::begin_on(opened, &problem, &builder.options, host, &mut source)?,
            None => backend::begin(builder.choice, &devices, &problem, &builder.options, host, &mut source)?,
        };
        let mut notes = [known, source.into_notes()].concat();
        notes.extend(backend::cache_refusal());
        notes.append(&mut begun.notes);
        begun.notes = notes;
        Ok(Simulation::new(problem, begun, step, pictured))
    }
}

//! A program running on a domain: the library's front door.

mod origin;
mod running;
mod values;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use abide_core::floating::{kept, standard};

use crate::backend::{Begun, Kind, Pace, Progress, RunReport, Session, drive};
use crate::builder::{Builder, IntoModel};
use crate::held::Held;
use crate::program::{Problem, Rows};
use crate::{Array, Error, Plan, Real, Result, files, io};

pub use running::Running;

/// A program, its fields on a device, and the steps done so far.
///
/// ```
/// use abide::prelude::*;
///
/// let mut heat = Simulation::builder("heat").size(&[33, 65]).param("kappa", 0.2).backend(Choice::CPU).build()?;
/// let report = heat.run(100)?;
/// assert_eq!(report.steps, 100);
/// let u = heat.field("u")?;
/// assert_eq!(u.len(), 33 * 65);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors of the device
///
/// Calls that reach the device can fail with [`Error::Device`], where the driver, the device or another process of the
/// run fails; with [`Error::Compile`], where a kernel that is first needed now does not compile; with
/// [`Error::Limit`], where the machine or the device has no memory for what is asked; and with [`Error::Unsupported`],
/// in a process that was forked after the simulation had begun on a GPU.
pub struct Simulation {
    problem: Problem,
    backend: &'static str,
    kind: Kind,
    session: Held<dyn Session>,
    step: u64,
    pictured: Option<io::Range>,
    notes: Vec<String>,
}

impl Simulation {
    /// Begins to describe a simulation of a stencil, of a program, or of an entry of the catalogue by name.
    pub fn builder(model: impl IntoModel) -> Builder {
        Builder::new(model)
    }

    /// Goes on from a checkpoint of an entry of the catalogue, on the best backend. For a program of your
    /// own, or another backend, use [`Builder::resume`].
    ///
    /// ```
    /// use abide::prelude::*;
    ///
    /// let path = std::env::temp_dir().join(format!("abide-resume-{}.npz", std::process::id()));
    /// let mut heat = Simulation::builder("heat").size(&[16, 16]).backend(Choice::CPU).build()?;
    /// heat.run(10)?;
    /// heat.checkpoint(&path)?;
    /// assert_eq!(Simulation::resume(&path)?.step(), 10);
    /// # let _ = std::fs::remove_file(&path);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::File`] where the file is no whole checkpoint or is of another program; [`Error::Unknown`] where the
    /// catalogue has no program of that name; those of [`Builder::build`].
    pub fn resume(path: impl AsRef<Path>) -> Result<Simulation> {
        let path = path.as_ref();
        let name = io::checkpoint::read_head(path)?.program;
        Builder::new(name.as_str()).resume(path).build()
    }

    pub(crate) fn new(problem: Problem, begun: Begun, step: u64, pictured: Option<io::Range>) -> Simulation {
        let Begun { backend, kind, session, notes } = begun;
        Simulation { problem, backend, kind, session: Held::new(session, kind), step, pictured, notes }
    }

    /// Returns the range of values in the pictures of this run so far, as [`Simulation::set_pictured`] said before the
    /// checkpoint that the run goes on from; `None` without one.
    pub fn pictured(&self) -> Option<io::Range> {
        self.pictured
    }

    /// Says what range of values the pictures of this run have shown so far. Checkpoints keep it, so that the pictures of
    /// a resumed run have the colours of one run.
    pub fn set_pictured(&mut self, range: Option<io::Range>) {
        self.pictured = range;
    }

    /// Returns the problem that is solved, with the parameters as they are now.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// Returns the name of the backend that runs the simulation.
    pub fn backend(&self) -> &'static str {
        self.backend
    }

    /// Returns what the device that runs it is made of.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the plan that runs.
    pub fn plan(&self) -> &Plan {
        self.session.anywhere().plan()
    }

    /// Returns the steps done since the start, those before a checkpoint included.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Returns the step after `steps` more.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] where 64 bits cannot count it, as from a checkpoint that claims too many steps.
    pub fn last_step(step: u64, steps: u64) -> Result<u64> {
        let asked = || format!("{step} and {steps} more");
        step.checked_add(steps).ok_or_else(|| {
            Error::limit("steps since the start", asked(), u64::MAX, "begin anew, or give fewer --steps")
        })
    }

    /// Returns the deviations from what was asked, each with its reason.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Advances and reports. Many short runs cost what a long one costs: no field is looked at.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] where 64 bits cannot count the steps since the start; the
    /// [device's](Simulation#errors-of-the-device).
    pub fn run(&mut self, steps: u64) -> Result<RunReport> {
        // Nobody watches: epochs are only so short that a device shared with a display stays responsive.
        let pace = Pace { epoch: Duration::from_secs(1), ..Pace::default() };
        self.run_with(steps, pace, |_| Ok(ControlFlow::Continue(())))
    }

    /// Advances in epochs of about `pace.epoch` and reports. Those with [`Pace::every`] end at its multiples, counted
    /// from the start of the simulation. After each epoch, `observe` may read and change the simulation, and end the run by
    /// [`ControlFlow::Break`].
    ///
    /// ```
    /// use std::ops::ControlFlow;
    ///
    /// use abide::prelude::*;
    ///
    /// let mut heat = Simulation::builder("heat").size(&[16, 16]).backend(Choice::CPU).build()?;
    /// let pace = Pace { every: Some(10), ..Pace::default() };
    /// let report = heat.run_with(100, pace, |running| {
    ///     let is_enough = running.step() >= 30;
    ///     Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    /// })?;
    /// assert_eq!((report.steps, heat.step()), (30, 30));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] where 64 bits cannot count the steps since the start; the
    /// [device's](Simulation#errors-of-the-device). An error of `observe` ends the run and is returned.
    pub fn run_with(
        &mut self,
        steps: u64,
        pace: Pace,
        mut observe: impl FnMut(&mut Running<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<RunReport> {
        Simulation::last_step(self.step, steps)?;
        let Simulation { problem, backend, session, step, pictured, .. } = self;
        let begun = *step;
        let session = session.here()?;
        let pace = Pace { begun, ..pace };
        let mut observe = |session: &mut dyn Session, progress: &Progress| {
            *step = begun + progress.steps;
            kept(|| observe(&mut Running { problem, session, step: *step, progress: *progress, pictured }))
        };
        let mut report = standard(|| drive(backend, session, steps, pace, &mut observe))?;
        report.notes.splice(0..0, self.notes.iter().cloned());
        // The scalars of a batch are many under each name.
        let known: BTreeMap<String, f64> =
            if self.problem.is_batch() { BTreeMap::new() } else { self.scalars()?.into_iter().collect() };
        if let Some(until) = self.problem.until {
            let scalar = &self.problem.program.scalars()[until.scalar].name;
            let value = known.get(scalar).copied().unwrap_or(f64::NAN);
            if value.is_nan() {
                report.notes.push(format!("{scalar} is NaN after step {}: the run ended there", self.step));
            } else if until.ends(value) {
                report.notes.push(format!(
                    "{} after step {}",
                    until.describe(&self.problem.program),
                    self.step
                ));
            }
        }
        let watched = self
            .problem
            .marks
            .filter(|marks| self.problem.until.is_none_or(|until| until.scalar != marks.scalar));
        if let Some(marks) = watched {
            let scalar = &self.problem.program.scalars()[marks.scalar].name;
            if known.get(scalar).is_some_and(|value| value.is_nan()) {
                report.notes.push(format!("{scalar} is NaN after step {}: the run ended there", self.step));
            }
        }
        let is_public = |name: &String| {
            let mut all = self.problem.program.scalars().iter();
            all.any(|scalar| scalar.name == *name && !scalar.is_internal)
        };
        report.scalars = known.into_iter().filter(|(name, _)| is_public(name)).collect();
        Ok(report)
    }

    /// Advances without a report, past all marks, and returns the seconds that the device took.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] where 64 bits cannot count the steps since the start; the
    /// [device's](Simulation#errors-of-the-device).
    pub fn advance(&mut self, steps: u64) -> Result<f64> {
        let last = Simulation::last_step(self.step, steps)?;
        let (mut left, mut seconds) = (steps, 0.0);
        loop {
            let session = self.session.here()?;
            seconds += standard(|| session.advance(left))?;
            left = session.remaining();
            self.step = last - left;
            if left == 0 || !session.is_at_mark() {
                return Ok(seconds);
            }
        }
    }

    /// Counts the values of all fields that are NaN or infinite, where they lie. A run does not: it takes as
    /// long as a step or so.
    ///
    /// # Errors
    ///
    /// The [device's](Simulation#errors-of-the-device).
    pub fn non_finite(&mut self) -> Result<u64> {
        values::non_finite(&self.problem, self.session.here()?)
    }

    /// Returns the names of what the run records: `step`, the computed scalars, `time` first, and the probes;
    /// none without [`Builder::record`].
    pub fn columns(&self) -> Vec<String> {
        self.problem.record.as_ref().map_or_else(Vec::new, |record| record.columns(&self.problem.program))
    }

    /// Returns the rows recorded since the last call, in the order of the steps. Each has the steps done since
    /// the start, and the values of the other [`Simulation::columns`]. The first is that of the values before
    /// the first step; a computed scalar that has no value yet is 0 there.
    ///
    /// ```
    /// use abide::prelude::*;
    ///
    /// let builder = Simulation::builder("heat").size(&[33, 65]).backend(Choice::CPU);
    /// let mut heat = builder.record(10).probe("u", &[16, 32]).build()?;
    /// heat.run(25)?;
    /// assert_eq!(heat.columns(), ["step", "u@16,32"]);
    /// let rows = heat.records()?;
    /// assert_eq!(rows.iter().map(|(step, _)| step).collect::<Vec<_>>(), [0, 10, 20]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The [device's](Simulation#errors-of-the-device).
    pub fn records(&mut self) -> Result<Rows> {
        self.session.here()?.take_rows()
    }

    /// Returns the names and the current values of the computed scalars. Those of a batch are each member's:
    /// [`Simulation::scalars_of`].
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] for a batch whose program computes scalars; the
    /// [device's](Simulation#errors-of-the-device).
    pub fn scalars(&mut self) -> Result<Vec<(String, f64)>> {
        values::scalars(&self.problem, self.session.here()?)
    }

    /// Returns the names and the current values of the computed scalars of a member of a batch.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] where there is no such member; the [device's](Simulation#errors-of-the-device).
    pub fn scalars_of(&mut self, member: usize) -> Result<Vec<(String, f64)>> {
        let (members, all) = (self.problem.members(), self.problem.program.scalars());
        if member >= members {
            return Err(Error::limit("member of a batch", member, members - 1, "count members from 0"));
        }
        let values = self.session.here()?.scalars()?.into_iter().skip(member * all.len());
        Ok(all.iter().map(|scalar| scalar.name.clone()).zip(values).collect())
    }

    /// Returns the current value of a computed scalar.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] where the program computes no such scalar, [`Error::Unsupported`] for a batch; the
    /// [device's](Simulation#errors-of-the-device).
    pub fn scalar(&mut self, name: &str) -> Result<f64> {
        values::scalar(&self.problem, self.session.here()?, name)
    }

    /// Reads a field's values; in a batch those of all members, one after another.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] where the program has no such field; the [device's](Simulation#errors-of-the-device).
    pub fn field(&mut self, name: &str) -> Result<Array> {
        values::read(&self.problem, self.session.here()?, name)
    }

    /// Reads a field as an array of its extents, in a batch with the members' axis first, its values rounded to `T` where the run has the other type.
    ///
    /// ```
    /// use abide::prelude::*;
    ///
    /// let mut heat = Simulation::builder("heat").size(&[16, 20]).backend(Choice::CPU).build()?;
    /// assert_eq!(heat.field_nd::<f64>("u")?.shape(), [16, 20]);
    /// assert!(matches!(heat.field_nd::<f64>("w"), Err(Error::Unknown { .. })));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Simulation::field`].
    pub fn field_nd<T: Real>(&mut self, name: &str) -> Result<ndarray::ArrayD<T>> {
        let values = self.field(name)?;
        let values = standard(|| values.cast(T::DTYPE))?;
        let values = T::slice(&values).unwrap_or_default().to_vec();
        let shape = self.problem.shape_of(self.problem.program.field(name)?)?;
        let members = self.problem.is_batch().then_some(self.problem.members());
        ndarray::ArrayD::from_shape_vec(io::extents(members, &shape), values).map_err(|e| {
            Error::invalid(format!("field {name}"), e.to_string(), "read it with Simulation::field")
        })
    }

    /// Reads the values of a field in the box `low..high`, slowest of three axes first; in a batch in the box of
    /// each member, one after another.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] where the program has no such field, [`Error::Limit`] for a box that is empty or
    /// reaches beyond the field; the [device's](Simulation#errors-of-the-device).
    pub fn window(&mut self, name: &str, low: [usize; 3], high: [usize; 3]) -> Result<Array> {
        self.session.here()?.read_window(self.problem.program.field(name)?, low, high)
    }

    /// Returns the buffer of type `B` that holds a field's values after the last step, for a caller on the same
    /// device: a [`DeviceBuffer`](abide_cuda::DeviceBuffer) where the backend is CUDA, a
    /// [`wgpu::Buffer`](abide_wgpu::wgpu::Buffer) where it is wgpu, a [`HostBuffer`](abide_cpu::HostBuffer) where it is the
    /// CPU. Later steps overwrite the buffer.
    pub fn device_buffer<B: 'static>(&self, name: &str) -> Option<B> {
        values::device_buffer(&self.problem, self.session.of_here()?, name)
    }

    /// Returns the buffer of [`Simulation::device_buffer`] for a caller that writes into it before the next
    /// step; `None` where the backend has none for writing: CUDA has.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] where the program has no such field; the [device's](Simulation#errors-of-the-device).
    pub fn device_buffer_mut<B: 'static>(&mut self, name: &str) -> Result<Option<B>> {
        values::device_buffer_mut(&self.problem, self.session.here()?, name)
    }

    /// Replaces a field's values.
    ///
    /// ```
    /// use abide::prelude::*;
    ///
    /// let mut heat = Simulation::builder("heat").size(&[16, 20]).backend(Choice::CPU).build()?;
    /// heat.write("u", &Array::F32(vec![0.5; 16 * 20]))?;
    /// heat.write_window("u", [0, 3, 4], [1, 4, 6], &Array::F32(vec![1.0, 2.0]))?;
    /// assert_eq!(heat.window("u", [0, 3, 3], [1, 4, 6])?, Array::F32(vec![0.5, 1.0, 2.0]));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] where the program has no such field, [`Error::Invalid`] for values of another number
    /// or type; the [device's](Simulation#errors-of-the-device).
    pub fn write(&mut self, name: &str, values: &Array) -> Result<()> {
        values::write(&self.problem, self.session.here()?, name, values)
    }

    /// Replaces the values of a field in the box `low..high`, slowest of three axes first.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] where the program has no such field, [`Error::Limit`] for a box that is empty or reaches
    /// beyond the field, [`Error::Invalid`] for values of another number or type; the
    /// [device's](Simulation#errors-of-the-device).
    pub fn write_window(
        &mut self,
        name: &str,
        low: [usize; 3],
        high: [usize; 3],
        values: &Array,
    ) -> Result<()> {
        values::write_window(&self.problem, self.session.here()?, name, [low, high], values)
    }

    /// Sets a parameter for the steps that follow, in a batch of all members.
    ///
    /// ```
    /// use abide::prelude::*;
    ///
    /// let mut heat = Simulation::builder("heat").size(&[16, 16]).backend(Choice::CPU).build()?;
    /// heat.set_parameter("kappa", 0.1)?;
    /// assert!(matches!(heat.set_parameter("kappa", f64::NAN), Err(Error::Invalid { .. })));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Simulation::set_parameters`].
    pub fn set_parameter(&mut self, name: &str, value: f64) -> Result<()> {
        self.set_parameters(&[(name, value)])
    }

    /// Sets several parameters at once. Parameters that are formulas of them follow.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] and [`Error::Invalid`] for a name or a value that cannot be set, and for values of which a
    /// formula has no value; then all parameters stay as they are. Those of the device.
    pub fn set_parameters(&mut self, values: &[(&str, f64)]) -> Result<()> {
        values::set_parameters(&mut self.problem, self.session.here()?, values)
    }

    /// Writes a checkpoint from which [`Simulation::resume`] continues to the bit. Where the checkpoint cannot
    /// be put in its place, it is kept under another name, which the error states.
    ///
    /// # Errors
    ///
    /// [`Error::File`] where it cannot be written, the same in all processes of a run; the
    /// [device's](Simulation#errors-of-the-device).
    pub fn checkpoint(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let (problem, session) = (&self.problem, self.session.here()?);
        let put = io::Staged::commit_durably;
        files::write_checkpoint(problem, session, self.step, self.pictured, path.as_ref(), put)
    }

    /// Writes a field to a `.npy` file, which [`io::Staged::commit`] puts in its place. Where several processes advance the
    /// domain, each writes its part, and all but the first get `None`.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] where the program has no such field; [`Error::File`] where the file cannot be
    /// written, the same in all processes of a run; the [device's](Simulation#errors-of-the-device).
    pub fn write_npy(&mut self, name: &str, path: impl AsRef<Path>) -> Result<Option<io::Staged>> {
        files::write_npy(&self.problem, self.session.here()?, name, path.as_ref())
    }

    /// Writes fields to a `.npz` file, as [`Simulation::write_npy`] does one, with where they come from.
    ///
    /// # Errors
    ///
    /// Those of [`Simulation::write_npy`].
    pub fn write_npz(
        &mut self,
        names: &[String],
        provenance: Option<&io::Provenance>,
        path: impl AsRef<Path>,
    ) -> Result<Option<io::Staged>> {
        files::write_npz(&self.problem, self.session.here()?, names, provenance, path.as_ref())
    }
}

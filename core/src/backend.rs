//! The traits of a backend, and the loop that drives a session in epochs.

mod batch;
mod beside;
mod expected;
mod fields;
mod launches;
mod linear;
mod part;
mod peer;
mod ran;
mod segmented;
mod windows;

use std::any::Any;
use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::communicator::Endpoint;
use crate::device::DeviceSpec;
use crate::error::{Error, Result};
use crate::functions::{Function, FunctionRate};
use crate::plan::{Advances, Measured, Options, Plan};
use crate::program::{Problem, Rows};
use crate::real::{Array, DType};
use crate::slabs::Share;

pub use self::batch::{Advance, MemberSessions, divide};
pub use self::beside::beside;
pub use self::expected::ExpectedTurns;
pub use self::fields::{Fields, Given, planes_of};
pub use self::launches::{LaunchTime, Timing, time_launches};
pub use self::linear::{
    BatchSystem, LinearBackend, LinearDeviceGroup, LinearPeer, LinearSession, LinearSlabs, Observe,
    check_batch, solve_alone,
};
pub use self::part::Part;
pub use self::peer::{CancelCheck, DeviceCommunicator, Peer, Planes};
pub use self::ran::Ran;
pub use self::segmented::{Ahead, Halt, Reducer, Segmented, probed};
pub use self::windows::{
    check_field, check_fields, check_values, check_window, rows_of, window_of, write_rows,
};

/// A way to run programs on one device.
pub trait Backend: Send + Sync {
    /// Returns `cpu`, `wgpu` or `cuda`.
    fn name(&self) -> &'static str;

    /// Returns the device that the backend runs on.
    fn device(&self) -> &DeviceSpec;

    /// Returns, in one line, the driver, compiler or code through which the backend runs, with its version. A
    /// measured rate depends on it as well as on the device.
    fn driver(&self) -> String;

    /// Plans how the backend would run a problem. Nothing is allocated on the device unless the options ask
    /// for tuning and there is a [`Backend::tuner`].
    fn plan(&self, problem: &Problem, options: &Options) -> Result<Plan>;

    /// Returns how fast the device computes an elementary function; `None` if the backend does not time any.
    fn function_rate(&self, _function: Function, _dtype: DType) -> Result<Option<FunctionRate>> {
        Ok(None)
    }

    /// Returns the tuner, which finds the fastest of several plans by timing them; `None` if the backend
    /// chooses by its model alone.
    fn tuner(&self) -> Option<&dyn Tuner> {
        None
    }

    /// Returns the compiler of kernels, where they are compiled when first needed; `None` if there is nothing to
    /// compile in advance.
    fn compiler(&self) -> Option<&dyn Compiler> {
        None
    }

    /// Returns the backend's solvers of linear systems; `None` if it has none.
    fn linear(&self) -> Option<&dyn LinearBackend> {
        None
    }

    /// Compiles, allocates and loads a problem. `fields` has one array for each field of the program, in
    /// order, of the problem's type and size; in a batch, with the values of all members one after another.
    ///
    /// The session's own [`Session::plan`] may differ from `plan` if the compiler's report asked for it; the
    /// plan's notes say so. It records what the problem asks for and halts at its marks; [`Segmented`] does so for
    /// a session that does not by itself. [`MemberSessions`] does so for a batch, where the plan has no kernel for all
    /// members.
    fn open(&self, problem: &Problem, plan: &Plan, fields: Vec<Array>) -> Result<Box<dyn Session>>;

    /// Opens a session as [`Backend::open`] does, with fields that are made now: whole, or of the slab alone where this
    /// process has one and other processes have the rest.
    fn open_from(&self, problem: &Problem, plan: &Plan, fields: &mut dyn Fields) -> Result<Box<dyn Session>> {
        self.open(problem, plan, fields.whole()?)
    }
}

/// A backend that has several plans for a problem, and can time them.
pub trait Tuner {
    /// Times the candidates of the planner's own choice, which is the first of them. If the
    /// options ask for tuning, the fastest is kept for [`Backend::plan`]. An error means that no plan could
    /// be timed.
    fn measure(&self, problem: &Problem, options: &Options) -> Result<Vec<Measured>>;
}

/// A backend that compiles kernels when they are first needed, and keeps them.
pub trait Compiler: Sync {
    /// Compiles the kernels of a plan, so that later sessions find them: those of whole passes of the plan's depth, or
    /// where `any_steps` also those that do the steps which are left over.
    fn compile(&self, problem: &Problem, plan: &Plan, any_steps: bool) -> Result<()>;

    /// Compiles the kernels of a plan's whole passes, and returns the plan that a session opened with it runs: the compiler's
    /// report may ask for another one, of fewer steps a pass, say.
    fn fitted(&self, problem: &Problem, plan: &Plan) -> Result<Plan> {
        self.compile(problem, plan, false)?;
        Ok(plan.clone())
    }
}

/// A problem in progress on a device. What the session of a batch reads, writes and returns has the members one
/// after another.
pub trait Session: Send {
    /// Returns the plan that runs.
    fn plan(&self) -> &Plan;

    /// Compiles and records what an advance of so many steps needs, which is then no part of its time. An advance does so by
    /// itself where this was not called. Returns whether sessions of this backend have anything to prepare at all.
    fn prepare(&mut self, _steps: u64) -> Result<bool> {
        Ok(false)
    }

    /// Advances exactly `steps` steps, returns when they are done, and returns the seconds that the device
    /// took. It returns earlier where the problem's `until` ends the run, or a scalar reaches the next of the
    /// problem's marks.
    ///
    /// Callers cut long runs into epochs (see [`drive`]); zero steps change nothing.
    fn advance(&mut self, steps: u64) -> Result<f64>;

    /// Advances steps as [`Session::advance`] does, while parameters differ from stage to stage: `read` holds, for each step
    /// and each stage, the values of all parameters.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] where the session cannot.
    fn advance_by(&mut self, _steps: u64, _read: &[f64]) -> Result<f64> {
        Err(Error::unsupported(
            format!("scalars that change from step to step ({})", self.plan().summary()),
            "its kernels read parameters that stay",
            "make the plan for the program as a whole",
        ))
    }

    /// Carries out the phase of a step with loops that comes next ([`Program::phases`](crate::Program::phases)), a loop for so many
    /// turns at most, for a caller who does something between them. Neither the condition that ends the run nor its marks and
    /// record are looked at.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] where the session has no phases.
    fn advance_phase(&mut self, _turns: u64) -> Result<Turns> {
        Err(Error::unsupported(
            format!("a program with loops ({})", self.plan().summary()),
            "its session does not stop between their turns",
            "run it on one device",
        ))
    }

    /// Returns the values that the problem's kernels have noted in the last advance, those of [`Problem::noted`] after each of
    /// its steps; none where the problem has none.
    ///
    /// # Errors
    ///
    /// What reading them from the device meets.
    fn take_noted(&mut self) -> Result<Vec<f64>> {
        Ok(Vec::new())
    }

    /// Advances one step and returns the seconds that the device took for each of its launches, in order; see
    /// [`time_launches`]. Sessions that cannot time launches separately do nothing and return an empty list. The
    /// problem has no record, no marks and no condition that ends it.
    fn time_step(&mut self) -> Result<Vec<LaunchTime>> {
        Ok(Vec::new())
    }

    /// Returns how many steps of the last [`Session::advance`] were not done because the problem's `until`
    /// had ended the run, or because it halted at a mark. A run that has ended goes on where a field or a
    /// parameter is set, until the condition holds after a step again.
    fn remaining(&self) -> u64 {
        0
    }

    /// Returns whether the last step of the last [`Session::advance`] reached one of the problem's marks. The
    /// next advance goes on from there.
    fn is_at_mark(&self) -> bool {
        false
    }

    /// Returns the rows of the problem's record since the last call. The first, of the values before the first
    /// step, is there from the beginning.
    fn take_rows(&mut self) -> Result<Rows> {
        Ok(Rows::default())
    }

    /// Reads a field's current values.
    fn read(&mut self, field: usize) -> Result<Array>;

    /// Reads the current values of a field in the box `low..high`, slowest axis first, packed without
    /// padding.
    fn read_window(&mut self, field: usize, low: [usize; 3], high: [usize; 3]) -> Result<Array>;

    /// Replaces a field's values.
    fn write(&mut self, field: usize, values: &Array) -> Result<()>;

    /// Replaces the values of a field in the box `low..high`, slowest axis first, by values packed without
    /// padding; [`check_values`] has the errors.
    fn write_window(&mut self, field: usize, low: [usize; 3], high: [usize; 3], values: &Array)
    -> Result<()>;

    /// Counts a field's values that are NaN or infinite.
    fn non_finite(&mut self, field: usize) -> Result<u64> {
        Ok(self.read(field)?.non_finite() as u64)
    }

    /// Returns the buffer that holds a field's values after the last step, in the backend's own type, for
    /// code that draws on the same device. Later steps overwrite it. `None` if the values lie in no such
    /// buffer.
    fn device_buffer(&self, _field: usize) -> Option<Box<dyn Any>> {
        None
    }

    /// Returns the buffer of [`Session::device_buffer`] for code that writes into it before the next step: no
    /// other field has its values there, and a run that has ended goes on. `None` if values are not to be
    /// written there.
    fn device_buffer_mut(&mut self, _field: usize) -> Result<Option<Box<dyn Any>>> {
        Ok(None)
    }

    /// Returns the current values of the computed scalars, in the program's order.
    fn scalars(&mut self) -> Result<Vec<f64>> {
        Ok(Vec::new())
    }

    /// Sets a parameter for the steps that follow, in a batch for all members.
    fn set_parameter(&mut self, parameter: usize, value: f64) -> Result<()>;

    /// Has the reductions of a slab go over the whole domain: those of stages with a share join their leaves with those
    /// of all ranks, whose sessions do the same. Called before the first step.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] where the session cannot.
    fn reduce_together(&mut self, _shares: Vec<Option<Share>>, _endpoint: Endpoint) -> Result<()> {
        Err(Error::unsupported(
            format!("a program with reductions on several devices ({})", self.plan().summary()),
            "its sessions do not join their reductions",
            "run it on one device, or on several with --backend cpu or cuda",
        ))
    }

    /// Returns the part that hands planes to sessions of other devices without the host's memory between them; `None`
    /// where values are handed on by [`Session::read_window`] and [`Session::write_window`] alone.
    fn peer(&mut self) -> Option<&mut dyn Peer> {
        None
    }

    /// Returns the maximum of the processes' values, where several processes advance the domain and each has this
    /// session; otherwise returns `own`. Decisions that depend on a clock or a signal use it, so that all processes
    /// decide alike.
    fn most(&mut self, own: f64) -> Result<f64> {
        Ok(own)
    }

    /// Returns the part of the domain that this process has, where other processes have the rest; `None` where it has all.
    fn part(&mut self) -> Option<&mut dyn Part> {
        None
    }

    /// Returns the advances of the device since the last call, where they are not those that were asked for; `None` where
    /// they are.
    fn take_advances(&mut self) -> Option<Advances> {
        None
    }

    /// Returns what each rank did since the last call, where several devices advance the domain; nothing otherwise.
    fn take_ranks(&mut self) -> Result<Vec<RankReport>> {
        Ok(Vec::new())
    }
}

/// What a session did of a phase ([`Session::advance_phase`]).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Turns {
    /// How often the stages were carried out.
    pub turns: u64,
    /// Whether the phase is over, so that the next one follows.
    pub is_over: bool,
    /// Seconds that the device took.
    pub seconds: f64,
}

/// What a rank of several devices did in a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RankReport {
    /// The rank, counted from 0.
    pub rank: usize,
    /// Its own planes, in cells along the slowest axis.
    pub planes: Range<usize>,
    /// Seconds in which it computed.
    pub seconds: f64,
    /// How it exchanged planes: by `copies` from device to device, or by `messages` of values through the host.
    pub exchange: &'static str,
    /// Seconds in which it exchanged planes, or waited for other ranks.
    pub exchange_seconds: f64,
    /// The share of its time in which it computed, 0 to 1.
    pub efficiency: f64,
}

/// The state of a run after an epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Steps done in this run.
    pub steps: u64,
    /// Steps asked for.
    pub total: u64,
    /// Seconds that the device took so far.
    pub seconds: f64,
    /// Cells times steps per second so far, in 10⁹.
    pub gcells_per_s: f64,
    /// Whether the last step reached one of the problem's marks.
    pub is_at_mark: bool,
}

/// The length of epochs, and the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// The length of an epoch: a run answers its observer this often.
    pub epoch: Duration,
    /// Epochs end at the multiples of this number of steps, for a caller to whom something must happen at exact steps.
    pub every: Option<u64>,
    /// The steps done before, which [`Pace::every`] counts too: those of a checkpoint, and of earlier calls.
    pub begun: u64,
    /// The time after which a run stops, at the end of its current epoch.
    pub deadline: Option<Duration>,
}

impl Default for Pace {
    fn default() -> Self {
        Pace { epoch: Duration::from_millis(200), every: None, begun: 0, deadline: None }
    }
}

/// The report on a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunReport {
    /// The backend's name.
    pub backend: String,
    /// The device's name.
    pub device: String,
    /// Steps done.
    pub steps: u64,
    /// Steps asked for; more than `steps` only if the run was stopped.
    pub steps_asked: u64,
    /// Cells of the domain; for a batch, summed over all members.
    pub cells: u64,
    /// Seconds that the device took, without loading and reading back.
    pub seconds: f64,
    /// Cells times steps per second, in 10⁹; every cell of the domain counts once per step.
    pub gcells_per_s: f64,
    /// Bytes to and from device memory by the plan's model, in the passes that ran: steps that do not fill a pass take one of
    /// their own, and what stays on the chip is loaded and stored once for each advance.
    pub bytes_moved: f64,
    /// The least bytes possible: every field that is read, read once, and every field that changes, written once, in the
    /// whole run. Never more than `bytes_moved`: see [`least_bytes`](crate::plan::traffic::Projection::least_bytes).
    pub bytes_least: f64,
    /// The measured rate over the rate that the plan projects as the peak.
    pub share_of_projected_peak: f64,
    /// Values of any field that are NaN or infinite, if they were counted ([`Session::non_finite`]).
    pub non_finite: Option<u64>,
    /// The computed scalars after the last step, by name.
    pub scalars: BTreeMap<String, f64>,
    /// What each rank did, where several devices advanced the domain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<RankReport>,
    /// The plan that ran.
    pub plan: Plan,
    /// What of the plan ran: the passes, and how deep they were.
    pub ran: Ran,
    /// Where the run differs from what was asked, and why.
    pub notes: Vec<String>,
}

impl RunReport {
    /// Makes the report of a run of `steps` steps without a halt that took `seconds`.
    pub fn new(backend: &str, plan: &Plan, steps: u64, steps_asked: u64, seconds: f64) -> Self {
        RunReport::of(backend, plan, &Advances::one(steps), steps_asked, seconds)
    }

    /// Makes the report of a run in these advances that took `seconds`.
    pub fn of(backend: &str, plan: &Plan, advances: &Advances, steps_asked: u64, seconds: f64) -> Self {
        let (cells, steps) = (plan.cells() as u64, advances.steps());
        let rate = if seconds > 0.0 { (cells * steps) as f64 / seconds / 1e9 } else { 0.0 };
        let projection = plan.project_advances(advances);
        RunReport {
            backend: backend.to_owned(),
            device: plan.device.name.clone(),
            steps,
            steps_asked,
            cells,
            seconds,
            gcells_per_s: rate,
            bytes_moved: projection.memory_bytes,
            bytes_least: projection.least_bytes,
            share_of_projected_peak: if seconds > 0.0 { projection.seconds / seconds } else { 0.0 },
            non_finite: None,
            scalars: BTreeMap::new(),
            ranks: Vec::new(),
            plan: plan.clone(),
            ran: Ran::of(plan, advances),
            notes: plan.notes.clone(),
        }
    }
}

/// A function that sees the session after each epoch, and may change it or stop the run.
pub type Observer<'a> = dyn FnMut(&mut dyn Session, &Progress) -> Result<ControlFlow<()>> + 'a;

/// Runs `steps` steps in epochs of about `pace.epoch`. After each epoch `observe` sees the session and may
/// stop the run.
///
/// The first epoch is a single pass; later ones grow with the measured rate, at most eightfold, so that no
/// projection can make one far longer than asked.
pub fn drive(
    backend: &str,
    session: &mut dyn Session,
    steps: u64,
    pace: Pace,
    observe: &mut Observer<'_>,
) -> Result<RunReport> {
    let begun = Instant::now();
    // What ranks did before is no part of this run's report.
    session.take_ranks()?;
    session.take_advances();
    let mut advances = Advances::default();
    let cells = session.plan().cells() as f64;
    // Take whole passes, because steps that do not fill a pass are slower.
    let depth = u64::from(session.plan().depth.max(1));
    let whole = |steps: u64| (steps / depth).max(1) * depth;
    let (mut done, mut seconds, mut epoch) = (0u64, 0.0f64, 1);
    // The steps done at the last mark, and the steps between it and the mark before.
    let (mut marked, mut between) = (0u64, None::<u64>);
    while done < steps {
        let mut now = whole(epoch).min(steps - done);
        if let Some(every) = pace.every.filter(|&every| every > 0) {
            now = now.min(every - pace.begun.saturating_add(done) % every);
        }
        // A device may have work queued for all steps that it is asked for; ask for little beyond the next mark,
        // and for more where it is farther than the last.
        if let Some(between) = between {
            let since = done - marked;
            now = now.min((between + between / 8 + 1).saturating_sub(since).max(since));
        }
        let wall = Instant::now();
        seconds += session.advance(now)?;
        let (wall, remaining) = (session.most(wall.elapsed().as_secs_f64())?, session.remaining());
        done += now - remaining;
        advances.add(now - remaining, 1);
        let is_at_mark = session.is_at_mark();
        if is_at_mark {
            between = Some(done - marked);
            marked = done;
        }
        // Grow at most eightfold, because the first epochs also pay for warming up.
        let fitting = ((now - remaining) as f64 * pace.epoch.as_secs_f64() / wall.max(1e-6)) as u64;
        epoch = fitting.clamp(1, epoch.max(now).saturating_mul(8));
        let rate = if seconds > 0.0 { cells * done as f64 / seconds / 1e9 } else { 0.0 };
        let progress = Progress { steps: done, total: steps, seconds, gcells_per_s: rate, is_at_mark };
        let stop = observe(session, &progress)?.is_break();
        let is_late = match pace.deadline {
            Some(deadline) => session.most(f64::from(begun.elapsed() >= deadline))? > 0.0,
            None => false,
        };
        if stop || is_late || (remaining > 0 && !is_at_mark) {
            break;
        }
    }
    let advances = session.take_advances().unwrap_or(advances);
    let mut report = RunReport::of(backend, session.plan(), &advances, steps, seconds);
    report.ranks = session.take_ranks()?;
    if done < steps {
        report.notes.push(format!("stopped after {done} of {steps} steps"));
    }
    Ok(report)
}

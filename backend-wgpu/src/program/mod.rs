//! A session of a program that is not plain: a dispatch or two per stage, and many steps per submission.
//!
//! The buffers of fields change from step to step as [`Storage`] says. The changes repeat, so that every
//! dispatch is bound once, when the session is opened.

mod bound;
mod memory;
mod phases;
mod recorder;

use std::sync::Arc;

use abide_core::backend::{LaunchTime, check_fields};
use abide_core::program::{Boxes, Rows, Storage, Watch};
use abide_core::{Array, Error, Plan, Problem, Result};
use abide_shaders::wgsl::{ProgramKernels, ScalarLayout, program_kernels};

use self::bound::Dispatches;
use self::memory::Memory;
use self::phases::Phases;
use self::recorder::Recorder;
use crate::gpu::Gpu;
use crate::pace::Pace;
use crate::rounds::{self, Rounds};
use crate::timing::Clock;
use crate::transfers::{Staging, Stored};

/// The most steps after which the host looks whether a condition has ended the run: dispatches that follow do
/// nothing, but take time.
const STEPS_AT_ONCE: u64 = 4096;

/// The launches of a problem and their kernels.
pub(crate) struct Made {
    /// The problem whose stages the plan runs: some may be in parts.
    pub problem: Problem,
    pub storage: Storage,
    pub kernels: ProgramKernels,
    pub layout: ScalarLayout,
}

impl Made {
    /// Makes the launches and kernels of a problem for its plan, from its first step on, for a device that computes in
    /// f64 or does not.
    pub fn of(problem: &Problem, plan: &Plan, has_f64: bool) -> Result<Made> {
        Made::from_phase(problem, plan, has_f64, problem.program.first_phase(problem.first_step))
    }

    /// Does the same from a step of the cycle, or a phase of one, on.
    fn from_phase(problem: &Problem, plan: &Plan, has_f64: bool, phase: usize) -> Result<Made> {
        plan.check(problem)?;
        let Some(tiles) = plan.stepwise() else {
            return Err(Error::invalid("plan", "it has no tiles", "make it with plan_stepwise"));
        };
        let problem = tiles.partition.split_problem(problem)?;
        let groups = tiles.partition.groups();
        let storage = Storage::from_phase(&problem, &Boxes::of(&problem)?, &groups, phase)?;
        let layout = ScalarLayout::of(&problem, has_f64);
        let kernels = program_kernels(&problem, tiles, &storage, layout)?;
        Ok(Made { problem, storage, kernels, layout })
    }
}

/// A program that is not plain in progress on a wgpu device.
pub(crate) struct ProgramSession {
    gpu: Arc<Gpu>,
    /// Its first step is the one from which the storage counts.
    pub problem: Problem,
    pub plan: Plan,
    made: Made,
    memory: Memory,
    recorder: Option<Recorder>,
    dispatches: Dispatches,
    staging: Staging,
    clock: Option<Clock>,
    pace: Pace,
    /// The steps done since the storage's first.
    steps: u64,
    /// How far a step with loops has come.
    phases: Phases,
    /// Steps of the last advance that were not done.
    pub remaining: u64,
    /// Whether the condition is known to have ended the run.
    has_ended: bool,
}

impl ProgramSession {
    /// Compiles, allocates and loads.
    pub async fn open(
        gpu: Arc<Gpu>,
        problem: &Problem,
        plan: &Plan,
        made: Made,
        fields: Vec<Array>,
    ) -> Result<ProgramSession> {
        check_fields(problem, &fields)?;
        let phases = Phases::new(problem, Watch::new(problem, &fields)?);
        let memory = Memory::new(&gpu, &made).await?;
        let dispatches = Dispatches::new(&gpu, &made, &memory).await?;
        for (&buffer, field) in made.storage.first.iter().zip(&fields) {
            memory.stored(buffer).write(&gpu, field).await?;
        }
        Ok(ProgramSession {
            clock: Clock::new(&gpu).await?,
            pace: Pace::new(plan, dispatches.of_a_step()),
            problem: problem.clone(),
            plan: plan.clone(),
            recorder: match problem.program.has_loops() {
                true => None,
                false => Recorder::new(&gpu, problem, made.layout, &fields).await?,
            },
            made,
            memory,
            dispatches,
            staging: Staging::default(),
            gpu,
            steps: 0,
            phases,
            remaining: 0,
            has_ended: false,
        })
    }

    /// Makes the matrices of transforms anew that a parameter has changed.
    async fn renew_matrices(&mut self) -> Result<()> {
        self.memory.renew_matrices(&self.gpu, &self.made).await
    }

    /// Returns whether steps have loops.
    fn has_loops(&self) -> bool {
        self.problem.program.has_loops()
    }

    /// Returns the place in the storage of what comes next.
    fn place(&self) -> usize {
        match self.has_loops() {
            true => self.phases.place,
            false => self.made.storage.place(self.steps),
        }
    }

    /// Returns the buffers in which the fields lie.
    fn now(&self) -> &[usize] {
        &self.made.storage.steps[self.place()].before
    }

    /// Returns the number of the buffer that holds a field, whose number has been checked.
    fn buffer(&self, field: usize) -> usize {
        self.now()[field]
    }

    /// Returns the buffer that holds a field's current values; the field's number has been checked.
    pub fn stored(&self, field: usize) -> Stored<'_> {
        self.memory.stored(self.buffer(field))
    }

    /// Advances exactly `steps` steps, or as many as the condition lets it, and returns the seconds that the
    /// device took.
    pub async fn advance(&mut self, steps: u64) -> Result<f64> {
        if self.has_loops() {
            return self.advance_with_loops(steps).await;
        }
        self.renew_matrices().await?;
        let (end, is_watched, mut seconds) = (self.steps + steps, self.problem.until.is_some(), 0.0);
        while self.steps < end && !self.has_ended {
            let most = if is_watched { STEPS_AT_ONCE } else { u64::MAX };
            let (first, step) = (self.steps, self.problem.first_step + self.steps);
            let most = self.recorder.as_ref().map_or(most, |recorder| most.min(recorder.most_steps(step)));
            let now = most.min(end - first);
            let mut pace = self.pace.clone();
            let steps = Steps { session: self, first, step };
            seconds += rounds::run(&self.gpu, self.clock.as_ref(), &mut pace, now, &steps).await?;
            self.pace = pace;
            let done = if is_watched { self.take_progress().await?.min(now) } else { now };
            self.steps += done;
            if let Some(recorder) = &mut self.recorder {
                recorder.read(&self.gpu, &mut self.staging, step, step + done).await?;
            }
        }
        self.remaining = end - self.steps;
        Ok(seconds)
    }

    /// Advances one step, a submission for each launch, and returns the time of each.
    pub async fn time_step(&mut self) -> Result<Vec<LaunchTime>> {
        if self.has_loops() {
            return Ok(Vec::new());
        }
        self.renew_matrices().await?;
        let place = self.made.storage.place(self.steps);
        let launches = &self.made.storage.steps[place].launches;
        let mut times = Vec::with_capacity(launches.len());
        for launch in 0..=launches.len() {
            let one = |pass: &mut wgpu::ComputePass<'_>, _: u64| {
                self.dispatches.record_launch(pass, place, launch);
            };
            let mut pace = self.pace.clone();
            let seconds = rounds::run(&self.gpu, self.clock.as_ref(), &mut pace, 1, &one).await?;
            if let Some(launch) = launches.get(launch) {
                times.push(LaunchTime { stages: launch.stages.clone(), seconds });
            }
        }
        self.steps += 1;
        Ok(times)
    }

    /// Returns the rows recorded since the last call.
    pub fn take_rows(&mut self) -> Rows {
        match &mut self.recorder {
            Some(recorder) => recorder.take(),
            // It has none where steps have loops.
            None => self.phases.watch.take_rows(),
        }
    }

    /// Returns whether the last step reached a mark.
    pub fn is_at_mark(&self) -> bool {
        self.has_loops() && self.phases.watch.is_at_mark()
    }

    /// Reads the steps done since this was last asked, which the device then counts anew, and whether the run
    /// has ended.
    async fn take_progress(&mut self) -> Result<u64> {
        let [ended, steps] = self.memory.progress(&self.gpu, &mut self.staging).await?;
        self.has_ended = ended != 0;
        self.memory.set_progress(&self.gpu, [ended, 0]).await?;
        Ok(u64::from(steps))
    }

    /// Reads a field, whose number has been checked.
    pub async fn read(&mut self, field: usize) -> Result<Array> {
        let stored = self.memory.stored(self.buffer(field));
        self.staging.read(&self.gpu, stored).await
    }

    /// Reads a window of a field, whose number has been checked.
    pub async fn read_window(&mut self, field: usize, low: [usize; 3], high: [usize; 3]) -> Result<Array> {
        let stored = self.memory.stored(self.buffer(field));
        self.staging.read_window(&self.gpu, stored, low, high).await
    }

    /// Writes a field, whose number and values have been checked.
    pub async fn write(&mut self, field: usize, values: &Array) -> Result<()> {
        self.prepare_write(field).await?;
        self.stored(field).write(&self.gpu, values).await
    }

    /// Writes a window of a field as [`ProgramSession::write`] does; both have been checked.
    pub async fn write_window(
        &mut self,
        field: usize,
        window: [[usize; 3]; 2],
        values: &Array,
    ) -> Result<()> {
        self.prepare_write(field).await?;
        self.stored(field).write_window(&self.gpu, window, values).await
    }

    /// Counts a field's values that are NaN or infinite; its number has been checked.
    pub async fn non_finite(&self, field: usize) -> Result<u64> {
        self.stored(field).non_finite(&self.gpu).await
    }

    /// Gives a field that is to be written a buffer of its own.
    async fn prepare_write(&mut self, field: usize) -> Result<()> {
        let names = self.now();
        if names.iter().filter(|&&name| name == names[field]).count() > 1 {
            self.unalias().await?;
        }
        self.go_on().await
    }

    /// Forgets that a condition has ended the run, because a field or a parameter is set.
    async fn go_on(&mut self) -> Result<()> {
        self.phases.watch.go_on();
        self.phases.once.forget();
        if std::mem::take(&mut self.has_ended) {
            self.memory.set_progress(&self.gpu, [0, 0]).await?;
        }
        Ok(())
    }

    /// Gives each field a buffer of its own, by a storage that begins at the step now reached.
    async fn unalias(&mut self) -> Result<()> {
        let mut problem = self.problem.clone();
        problem.first_step += self.steps;
        let phase = self.made.storage.number(self.place());
        let made = Made::from_phase(&problem, &self.plan, self.gpu.adapter.f64, phase)?;
        let names = self.now().to_vec();
        self.memory.unalias(&self.gpu, &names, &made.storage).await?;
        self.dispatches = Dispatches::new(&self.gpu, &made, &self.memory).await?;
        (self.problem, self.made, self.steps, self.phases.place) = (problem, made, 0, 0);
        Ok(())
    }

    /// Returns the computed scalars, in the program's order.
    pub async fn scalars(&mut self) -> Result<Vec<f64>> {
        let all = self.memory.scalars(&self.gpu, &mut self.staging).await?;
        let computed = all.into_iter().skip(self.problem.parameters.len());
        Ok(computed.take(self.problem.program.scalars().len()).collect())
    }

    /// Sets a parameter, whose number has been checked.
    pub async fn set_parameter(&mut self, parameter: usize, value: f64) -> Result<()> {
        self.problem.parameters[parameter] = value;
        self.made.problem.parameters[parameter] = value;
        self.memory.are_matrices_stale = true;
        self.go_on().await?;
        self.memory.set_scalar(&self.gpu, parameter, value).await
    }
}

/// The steps of a session from one on.
struct Steps<'a> {
    session: &'a ProgramSession,
    /// The first, counted from the storage's first.
    first: u64,
    /// The first, counted from the start.
    step: u64,
}

impl Rounds for Steps<'_> {
    fn record(&self, pass: &mut wgpu::ComputePass<'_>, round: u64) {
        self.session.dispatches.record(pass, self.session.made.storage.place(self.first + round));
    }

    fn until_copied(&self, rounds: u64) -> u64 {
        let recorder = self.session.recorder.as_ref();
        recorder.map_or(u64::MAX, |recorder| recorder.until_due(self.step + rounds))
    }

    fn copy(&self, encoder: &mut wgpu::CommandEncoder, rounds: u64) {
        let ProgramSession { recorder: Some(recorder), memory, made, .. } = self.session else { return };
        let row = recorder.due_between(self.step, self.step + rounds) - 1;
        recorder.copy(encoder, row, memory, &made.storage, self.first + rounds);
    }
}

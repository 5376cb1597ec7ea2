//! A session of a solver, and its loop of submissions.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

use abide_core::backend::{LinearSession, Observe};
use abide_core::solver::{Matrix, Outcome, Parameters, Report, SolveOptions, SolvePlan, SolverError, Status};
use abide_core::{Array, DType, Error, Real, Result, reduction};
use abide_shaders::state::State;
use abide_shaders::wgsl::krylov::{RING, Script, Task, module, script};
use abide_solvers::{Begin, Run, vectors_of};
use futures_channel::oneshot;
use web_time::Instant;

use super::modules::Modules;
use super::outcome::{entries, norm_limit, square_limit, state_bytes};
use super::packed::PackedSystem;
use super::system::{Step, System};
use crate::NAME;
use crate::blocking::block_on;
use crate::gpu::{Gpu, Submission};

/// The seconds that a submission should take: the observer, a limit on time and a desktop wait as long.
const TARGET: f64 = 0.06;

/// Iterations of the first submission. Each later one has at most twice as many as the one before, so that
/// never more are recorded in vain than were done.
const FIRST: usize = 16;

/// The most dispatches of a submission, because the host records each.
const DISPATCHES: usize = 1 << 14;

/// The operation that an error in the loop names.
const RUNNING: &str = "running a solver";

/// A matrix on an adapter, and the phases that solve with it.
pub(super) struct KrylovSession {
    gpu: Arc<Gpu>,
    plan: SolvePlan,
    dtype: DType,
    system: System,
    /// Iterations between two rounds of `mend` and `refresh`.
    period: Option<usize>,
    /// The parts of the task that depend on the system alone: `size`, `factors` and `weight`.
    size: u32,
    factors: u32,
    weight: f64,
    /// The most iterations of GMRES's cycle; 0 for other methods. GMRES's history holds norms, the others'
    /// squares.
    cycle: usize,
    /// The buffers through which state and history come to the host, two submissions by turns.
    readable: [wgpu::Buffer; 2],
}

/// Iterations under way on the device.
struct Sent {
    submission: Submission,
    turns: usize,
    begun: Instant,
    place: usize,
    mapped: oneshot::Receiver<Result<(), wgpu::BufferAsyncError>>,
}

impl KrylovSession {
    /// Packs the system, compiles, allocates and loads.
    pub async fn open(
        gpu: Arc<Gpu>,
        modules: &Modules,
        matrix: &Matrix,
        plan: &SolvePlan,
        options: &SolveOptions,
    ) -> Result<Self, SolverError> {
        let Some(layout) = plan.dispatches() else {
            let change = "plan it with this backend";
            return Err(Error::invalid("the plan of a solver", "it is not a wgpu adapter's", change).into());
        };
        let script = script(matrix, options)?;
        check_buffers(&gpu, &script)?;
        let dtype = matrix.dtype();
        let packed = match dtype {
            DType::F32 => PackedSystem::new::<f32>(matrix, options, layout)?,
            DType::F64 => PackedSystem::new::<f64>(matrix, options, layout)?,
        };
        let entries = modules.of(&gpu, &module(matrix, options, layout, &script)?, &script).await?;
        let system = System::new(&gpu, matrix, layout, &packed, (&script, &entries)).await?;
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let label = "reading a solver's state";
        let bytes = system.told_bytes();
        let readable = [gpu.buffer(label, bytes, usage).await?, gpu.buffer(label, bytes, usage).await?];
        let (size, factors, weight) = (packed.size as u32, packed.pairs() as u32, packed.weight);
        let (plan, period, cycle) = (plan.clone(), script.period, script.basis.saturating_sub(1));
        Ok(KrylovSession { gpu, plan, dtype, system, period, size, factors, weight, cycle, readable })
    }

    /// Returns whether each submission may end with `mend`. Where recurrences are computed afresh after so many
    /// turns, it may not: a run would go on at a turn that depends on how long submissions take, and its bits
    /// would, too.
    fn mends_at_any_turn(&self) -> bool {
        self.system.steps.refresh.is_empty()
    }

    /// Records and submits the `turns` turns after the first `done`, and asks for the state and history that
    /// they leave.
    async fn submit(&self, done: usize, turns: usize, place: usize) -> Result<Sent> {
        let (gpu, steps, readable) = (&self.gpu, &self.system.steps, &self.readable[place]);
        let begun = Instant::now();
        let (sender, mapped) = oneshot::channel();
        let record = || {
            let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            if done == 0 {
                self.system.clear(&mut encoder);
            }
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            let mut record = |steps: &[Step]| steps.iter().for_each(|step| step.record(&mut pass));
            if done == 0 {
                record(&steps.begin);
            }
            for turn in done + 1..=done + turns {
                record(&steps.turn);
                if self.period.is_some_and(|period| turn.is_multiple_of(period)) {
                    record(&steps.mend);
                    record(&steps.refresh);
                }
            }
            if self.mends_at_any_turn() {
                record(&steps.mend);
            }
            record(&steps.check);
            drop(pass);
            self.system.tell(&mut encoder, readable);
            let index = gpu.queue.submit([encoder.finish()]);
            readable.slice(..self.system.told_bytes()).map_async(wgpu::MapMode::Read, move |result| {
                // The receiver may be gone already.
                drop(sender.send(result));
            });
            index
        };
        let submission = gpu.submit(RUNNING, record).await?;
        Ok(Sent { submission, turns, begun, place, mapped })
    }

    /// Waits for a submission; returns the state that it left, and the history from entry `known` on.
    async fn read(&self, sent: Sent, known: u32) -> Result<(State, Outcome, Vec<f64>)> {
        self.gpu.finished(RUNNING, sent.submission).await?;
        let mapped = self.gpu.told(RUNNING, sent.mapped).await?;
        mapped.map_err(|error| Error::device(NAME, RUNNING, error))?;
        let buffer = &self.readable[sent.place];
        let read = match buffer.slice(..self.system.told_bytes()).get_mapped_range() {
            Ok(view) => {
                let (state, history) = view.split_at(state_bytes(self.dtype));
                State::left(NAME, self.dtype, state).map(|(state, outcome)| {
                    let entries = entries(self.dtype, history, [known, state.length]);
                    let norm = |entry: f64| if self.cycle > 0 { entry } else { entry.sqrt() };
                    (state, outcome, entries.into_iter().map(norm).collect())
                })
            }
            Err(error) => Err(Error::device(NAME, RUNNING, error)),
        };
        buffer.unmap();
        read
    }

    /// Submits iterations until the end of the run, from loaded vectors on. Submissions that are still under
    /// way then are left in `running`.
    async fn run<T: Real>(
        &self,
        mut run: Run<'_>,
        running: &mut VecDeque<Sent>,
    ) -> Result<Report, SolverError> {
        let most = DISPATCHES / self.system.steps.turn.len().max(1);
        // One entry for each iteration and one for the first residual.
        let most = most.clamp(1, RING - 1);
        let (mut turns, mut ahead) = (FIRST.min(most), 1);
        let (mut recorded, mut known, mut place) = (0, 0_u32, 0);
        // Whether the run waits for the next round of `mend`, which is due at a turn that is still to come.
        let mut is_waiting = false;
        let started = Instant::now();
        let mut done = started;
        loop {
            // Once submissions are long, two are under way at a time, so that the device need not wait for
            // the host.
            while running.len() < ahead {
                running.push_back(self.submit(recorded, turns, place).await?);
                recorded += turns;
                place = 1 - place;
            }
            let Some(sent) = running.pop_front() else { continue };
            let (count, begun) = (sent.turns, sent.begun);
            let (state, outcome, residuals) = self.read(sent, known).await?;
            let taken = done.max(begun).elapsed().as_secs_f64();
            done = Instant::now();
            let was_waiting = is_waiting;
            is_waiting = !self.mends_at_any_turn() && outcome.status.awaits_mending();
            if residuals.is_empty() && outcome.status == Status::Running && !was_waiting {
                let message = "a submission ended without an iteration";
                return Err(Error::device(NAME, RUNNING, message).into());
            }
            known = state.length;
            run.timed(started.elapsed().as_secs_f64());
            let outcome = if is_waiting { Outcome { status: Status::Running, ..outcome } } else { outcome };
            let flow = run.absorb::<T>(NAME, &outcome, &residuals)?;
            if flow == ControlFlow::Break(()) {
                return run.conclude(state.true_square.sqrt());
            }
            let fitting = (TARGET * count as f64 / taken.max(1e-9)) as usize;
            turns = fitting.min(2 * turns).clamp(1, most);
            if let (true, Some(period)) = (is_waiting, self.period) {
                turns = (period - recorded % period).min(most);
            }
            ahead = if taken > TARGET / 4.0 { 2 } else { 1 };
        }
    }

    async fn solve_of<T: Real>(
        &self,
        b: &[T],
        x: &mut [T],
        parameters: &Parameters,
        observe: &mut Observe<'_>,
    ) -> Result<Report, SolverError> {
        let (method, rows) = (self.plan.method.profile(), self.plan.rows);
        let run = match Run::open(method, rows, b, x, |b| reduction::dot(b, b), parameters, observe)? {
            Begin::Zero(report) => return Ok(report),
            Begin::Iterate(run) => run,
        };
        let narrow = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        let limit = |threshold: f64| {
            if self.cycle > 0 {
                norm_limit(self.dtype, threshold)
            } else {
                square_limit(self.dtype, threshold)
            }
        };
        let task = Task {
            rows: narrow(rows),
            size: self.size,
            most: narrow(parameters.iterations),
            stagnation: parameters.stagnation(),
            factors: self.factors,
            // A cycle of more vectors than iterations is never filled.
            restart: narrow(self.cycle.min(parameters.iterations.max(1))),
            limit: limit(run.threshold()),
            near: limit(run.threshold() * parameters.drift.max(1.0)),
            weight: self.weight,
            // The system fills in how the phases are cut.
            ..Task::default()
        };
        self.system.load(&self.gpu, b, x, &task).await?;
        let mut running = VecDeque::new();
        let outcome = self.run::<T>(run, &mut running).await;
        // Submissions made in advance have nothing to do, or continue the iteration that the observer stopped.
        for sent in running {
            self.read(sent, 0).await?;
        }
        if !matches!(outcome, Err(SolverError::Invalid(_))) {
            self.system.read(&self.gpu, x).await?;
        }
        outcome
    }
}

impl LinearSession for KrylovSession {
    fn plan(&self) -> &SolvePlan {
        &self.plan
    }

    fn solve(
        &mut self,
        b: &Array,
        x: &mut Array,
        parameters: &Parameters,
        observe: &mut Observe<'_>,
    ) -> Result<Report, SolverError> {
        block_on(async {
            Ok(match self.dtype {
                DType::F32 => {
                    let (b, x) = vectors_of::<f32>(b, x)?;
                    self.solve_of(b, x, parameters, observe).await
                }
                DType::F64 => {
                    let (b, x) = vectors_of::<f64>(b, x)?;
                    self.solve_of(b, x, parameters, observe).await
                }
            })
        })?
    }
}

/// Returns an error where a phase binds more buffers than the adapter allows a kernel.
fn check_buffers(gpu: &Gpu, script: &Script) -> Result<()> {
    let most = script
        .phases()
        .map(|phase| phase.fixed.iter().filter(|fixed| !fixed.is_uniform()).count() + phase.uses.len())
        .max()
        .unwrap_or(0);
    if most <= gpu.adapter.buffers {
        return Ok(());
    }
    let what = format!("buffers of a solver's kernel on {}", gpu.adapter.name);
    let change = "choose another preconditioner or method, or --backend cpu";
    Err(Error::limit(what, most, gpu.adapter.buffers, change))
}

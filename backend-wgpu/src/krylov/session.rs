//! The loop of submissions.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use abide_core::plan::Dispatches;
use abide_core::solver::{
    Begin, LinearSession, Matrix, Observe, Parameters, Report, Run, SolveOptions, SolvePlan, SolverError, reduce,
};
use abide_core::{Array, DType, Error, Real, Result};
use abide_shaders::wgsl::krylov::{Fixed, RING, Script, module, script};

use super::image::Image;
use super::modules::Modules;
use super::outcome::{State, fresh, limit, state_bytes};
use super::system::{Step, System, Task};
use crate::NAME;
use crate::gpu::Gpu;

/// What a submission should take, in seconds: the observer and a limit on time wait as long, and so does a desktop.
const TARGET: f64 = 0.06;

/// Iterations of the first submission; each later one has twice as many at most, so that no more are recorded in vain than
/// were done.
const FIRST: usize = 16;

/// Dispatches of a submission at most: the host records each.
const DISPATCHES: usize = 1 << 14;

/// The longest that a finished copy may take to be handed over.
const HANDED_OVER: Duration = Duration::from_secs(10);

/// A matrix on an adapter, and the phases that solve with it.
pub(super) struct KrylovSession {
    gpu: Arc<Gpu>,
    plan: SolvePlan,
    dtype: DType,
    system: System,
    /// Iterations between two rounds of `mend` and `refresh`.
    period: Option<usize>,
    /// What the task says of the system.
    size: u32,
    factors: u32,
    weight: f64,
    /// Where state and history land on their way to the host, of two submissions by turns.
    readable: [wgpu::Buffer; 2],
}

/// A submission under way.
struct Submission {
    index: wgpu::SubmissionIndex,
    turns: usize,
    begun: Instant,
    place: usize,
    mapped: Receiver<Result<(), wgpu::BufferAsyncError>>,
}

impl KrylovSession {
    pub fn open(
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
        let image = match dtype {
            DType::F32 => Image::new::<f32>(matrix, options, layout)?,
            DType::F64 => Image::new::<f64>(matrix, options, layout)?,
        };
        let entries = modules.of(&gpu, &module(matrix, options, layout, &script)?, &script)?;
        let system = System::new(&gpu, matrix, layout, &image, (&script, &entries))?;
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let bytes = (state_bytes(dtype) + RING * dtype.bytes()) as u64;
        let readable = || gpu.buffer("reading a solver's state", bytes, usage);
        let readable = [readable()?, readable()?];
        let (size, factors, weight) = (image.size as u32, image.pairs() as u32, image.weight);
        let (plan, period) = (plan.clone(), script.period);
        Ok(KrylovSession { gpu, plan, dtype, system, period, size, factors, weight, readable })
    }

    fn layout(&self) -> Option<&Dispatches> {
        self.plan.dispatches()
    }

    /// Records and submits the turns after the first `done`, and asks for state and history as they leave them.
    fn submit(&self, done: usize, turns: usize, place: usize) -> Result<Submission> {
        let (gpu, steps, readable) = (&self.gpu, &self.system.steps, &self.readable[place]);
        let begun = Instant::now();
        let (sender, mapped) = std::sync::mpsc::channel();
        let index = gpu.checked("running a solver", || {
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
            record(&steps.mend);
            record(&steps.check);
            drop(pass);
            let (state, history) = (state_bytes(self.dtype) as u64, (RING * self.dtype.bytes()) as u64);
            encoder.copy_buffer_to_buffer(self.system.fixed(Fixed::Course), 0, readable, 0, state);
            encoder.copy_buffer_to_buffer(self.system.fixed(Fixed::History), 0, readable, state, history);
            let index = gpu.queue.submit([encoder.finish()]);
            readable.slice(..state + history).map_async(wgpu::MapMode::Read, move |result| {
                // The receiver is gone only where the wait failed already.
                let _ = sender.send(result);
            });
            index
        })?;
        Ok(Submission { index, turns, begun, place, mapped })
    }

    /// Waits for a submission: the state that it left, and the history from entry `known` on.
    fn read(&self, submission: Submission, known: u32) -> Result<(State, Vec<f64>)> {
        let operation = "running a solver";
        self.gpu.wait(operation, Some(submission.index))?;
        // Where sessions share the device, another thread's wait may be the one that hands the result over, a moment later.
        let mapped =
            submission.mapped.recv_timeout(HANDED_OVER).map_err(|error| Error::device(NAME, operation, error))?;
        mapped.map_err(|error| Error::device(NAME, operation, error))?;
        let buffer = &self.readable[submission.place];
        let bytes = (state_bytes(self.dtype) + RING * self.dtype.bytes()) as u64;
        let read = match buffer.slice(..bytes).get_mapped_range() {
            Ok(view) => {
                let (state, history) = view.split_at(state_bytes(self.dtype));
                State::read(self.dtype, state).map(|state| (state, state.residuals(self.dtype, history, known)))
            }
            Err(error) => Err(Error::device(NAME, operation, error)),
        };
        buffer.unmap();
        read
    }

    /// The loop of submissions, from loaded vectors to the end of the run. What is still under way is left in `running`.
    fn run<T: Real>(&self, mut run: Run<'_>, running: &mut VecDeque<Submission>) -> Result<Report, SolverError> {
        let most = DISPATCHES / self.layout().map_or(1, |layout| layout.an_iteration).max(1);
        // Beside an entry for each iteration, the first residual's.
        let most = most.clamp(1, RING - 1);
        let (mut turns, mut ahead) = (FIRST.min(most), 1);
        let (mut sent, mut known, mut place) = (0, 0_u32, 0);
        let started = Instant::now();
        let mut done = started;
        loop {
            // Once submissions are long, two are under way at a time, so that the device need not wait for the host.
            while running.len() < ahead {
                running.push_back(self.submit(sent, turns, place)?);
                sent += turns;
                place = 1 - place;
            }
            let Some(submission) = running.pop_front() else { continue };
            let (count, begun) = (submission.turns, submission.begun);
            let (state, residuals) = self.read(submission, known)?;
            let taken = done.max(begun).elapsed().as_secs_f64();
            done = Instant::now();
            if residuals.is_empty() {
                let message = "a submission ended without an iteration";
                return Err(Error::device(NAME, "running a solver", message).into());
            }
            known = state.length;
            let told = state.told::<T>(&mut run, &residuals)?;
            run.timed(started.elapsed().as_secs_f64());
            if told == ControlFlow::Break(()) {
                return run.conclude(state.true_square.sqrt());
            }
            let fitting = (TARGET * count as f64 / taken.max(1e-9)) as usize;
            turns = fitting.min(2 * turns).clamp(1, most);
            ahead = if taken > TARGET / 4.0 { 2 } else { 1 };
        }
    }

    fn solve_of<T: Real>(
        &mut self,
        b: &[T],
        x: &mut [T],
        parameters: &Parameters,
        observe: &mut Observe<'_>,
    ) -> Result<Report, SolverError> {
        let (method, rows) = (self.plan.method.name(), self.plan.rows);
        let run = match Run::open(method, rows, b, x, |b| reduce::dot(b, b), parameters, observe)? {
            Begin::Zero(report) => return Ok(report),
            Begin::Iterate(run) => run,
        };
        let narrow = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        let task = Task {
            rows: narrow(rows),
            size: self.size,
            most: narrow(parameters.iterations),
            patience: narrow(parameters.stagnation.max(1)),
            factors: self.factors,
            limit: limit(self.dtype, run.threshold()),
            near: limit(self.dtype, run.threshold() * parameters.drift.max(1.0)),
            weight: self.weight,
        };
        self.system.load(&self.gpu, b, x, &task, &fresh(self.dtype))?;
        let mut running = VecDeque::new();
        let outcome = self.run::<T>(run, &mut running);
        // What was submitted ahead has nothing to do, or iterates on where the observer stopped.
        for submission in running {
            self.read(submission, 0)?;
        }
        if !matches!(outcome, Err(SolverError::Invalid(_))) {
            self.system.read(&self.gpu, x)?;
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
        match (b, x) {
            (Array::F32(b), Array::F32(x)) if self.dtype == DType::F32 => self.solve_of(b, x, parameters, observe),
            (Array::F64(b), Array::F64(x)) if self.dtype == DType::F64 => self.solve_of(b, x, parameters, observe),
            (b, x) => {
                let reason = format!("b is {} and x is {}, the matrix {}", b.dtype(), x.dtype(), self.dtype);
                Err(Error::invalid("the vectors b and x", reason, "cast them with Array::cast").into())
            }
        }
    }
}

/// An error where a phase binds more buffers than the adapter lets a kernel have.
fn check_buffers(gpu: &Gpu, script: &Script) -> Result<()> {
    let storage = |fixed: &Fixed| !fixed.is_uniform();
    let most = script
        .phases()
        .map(|phase| phase.fixed.iter().filter(|fixed| storage(fixed)).count() + phase.uses.len())
        .max()
        .unwrap_or(0);
    if most <= gpu.adapter.buffers {
        return Ok(());
    }
    let what = format!("buffers of a solver's kernel on {}", gpu.adapter.name);
    let change = "choose another preconditioner or method, or --backend cpu";
    Err(Error::limit(what, most, gpu.adapter.buffers, change))
}

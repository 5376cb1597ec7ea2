//! A session of a program that is not plain: a launch per stage or group of stages, replayed from a graph, or one
//! persistent kernel.
//!
//! The buffers of fields change from step to step as [`Storage`] says, and all that the kernels read besides
//! them lies in device memory. So a recording of the steps that repeat, or the schedule of a persistent kernel through them,
//! is good for the whole run, whatever the scalars become.

mod carried;
mod device_clock;
mod memory;
mod pass;
mod peer;
mod phases;
mod recorder;
mod reducer;
mod reductions;
mod steps;

use std::any::Any;
use std::collections::{BTreeSet, HashMap};
use std::ffi::c_void;
use std::sync::Arc;

use abide_core::backend::{LaunchTime, Peer, Turns, check_field, check_values, check_window};
use abide_core::communicator::Endpoint;
use abide_core::program::{Boxes, Groups, Launch, Rows, Storage};
use abide_core::slabs::Share;
use abide_core::{Array, Error, Plan, Problem, Result, Session};
use abide_shaders::cuda::{KernelLaunch, Launched, ProgramKernels};
use cudarc::driver::{CudaContext, CudaFunction, CudaGraph, CudaStream, result};

use self::carried::Carried;
use self::memory::{Memory, Progress};
use self::pass::Pass;
use self::phases::Phase;
use self::recorder::Recorder;
pub(crate) use self::reducer::Reductions;
use self::reductions::SlabReductions;
use self::steps::Steps;
use crate::count::Counter;
use crate::driver::during;
use crate::graph::recorded;
use crate::kernels::{Kernels, PassCode, check_cluster};
use crate::parameters::set_parameter;
use crate::peer::Neighbours;
use crate::puts::PutKernel;
use crate::timing::{Marks, Timer};

/// Launches of a graph; a graph has as many whole rounds of the steps that repeat as fit.
const GRAPH_LAUNCHES: usize = 1024;

/// A program that is not plain in progress on a CUDA device.
pub(crate) struct ProgramSession {
    plan: Plan,
    /// Its first step is the one from which the storage counts.
    problem: Problem,
    boxes: Boxes,
    groups: Groups,
    storage: Storage,
    kernels: ProgramKernels,
    /// Of each group of stages, in the order of its launches; none where the kernel is persistent.
    functions: HashMap<Vec<usize>, Vec<CudaFunction>>,
    memory: Memory,
    /// Of the chains.
    chains: Vec<CudaFunction>,
    /// Of each group of stages that is a pass of a streaming kernel.
    passes: HashMap<Vec<usize>, Pass>,
    /// The kernel that ends each step where the run may end or halt there, or has a record.
    end: Option<CudaFunction>,
    /// The persistent kernel that does all the work, if one does.
    persistent: Option<Steps>,
    recorder: Option<Recorder>,
    /// The steps done since the storage's first.
    steps: u64,
    /// How far a step with loops has come.
    phase: Phase,
    /// Steps of the last advance that were not done.
    remaining: u64,
    /// Whether the last advance ended at a mark.
    is_at_mark: bool,
    /// The mark that a scalar reaches next.
    mark: f64,
    counter: Arc<Counter>,
    recording: Option<CudaGraph>,
    timer: Timer,
    neighbours: Neighbours,
    /// What joins reductions with those of other slabs.
    together: Option<SlabReductions>,
    /// The reductions that each step makes for the next one, if it makes any.
    carried: Option<Carried>,
}

// SAFETY: the graph is used through `&mut self` alone, and the session binds the context to the calling
// thread first.
unsafe impl Send for ProgramSession {}

impl ProgramSession {
    /// Allocates and loads a problem, whose fields have been checked. Its stages become those that the plan runs.
    pub fn new(
        problem: &Problem,
        plan: Plan,
        context: &Arc<CudaContext>,
        (loaded, kernels, passes): (&Kernels, ProgramKernels, Vec<PassCode>),
        fields: &[Array],
        counter: Arc<Counter>,
        put_kernel: Arc<PutKernel>,
    ) -> Result<ProgramSession> {
        let Some(tiles) = plan.stages() else {
            return Err(Error::invalid("plan", "it has no tiles", "make it with plan_stepwise"));
        };
        let problem = &tiles.partition.split_problem(problem)?;
        let is_launched = plan.persistent_program().is_none();
        let functions = kernels.groups.iter().filter(|_| is_launched).map(|(stages, group)| {
            let load = |launch: &KernelLaunch| loaded.function(&launch.entry, launch.shared_bytes);
            Ok((stages.clone(), group.launches.iter().map(load).collect::<Result<_>>()?))
        });
        let functions = functions.collect::<Result<_>>()?;
        let chains = kernels.chains.iter().map(|chain| chain_function(loaded, &chain.kernel));
        let chains = chains.collect::<Result<_>>()?;
        let passes = passes.into_iter().map(|code| Ok((code.stages.clone(), Pass::load(context, code)?)));
        let passes = passes.collect::<Result<_>>()?;
        let end = kernels
            .end
            .as_ref()
            .filter(|_| is_launched)
            .map(|end| loaded.function(&end.kernel.entry, 0))
            .transpose()?;
        let boxes = Boxes::of(problem)?;
        let groups = tiles.partition.groups();
        let storage = Storage::of_groups(problem, &boxes, &groups)?;
        let recorder = Recorder::new(problem, fields, rounds(&storage).1)?;
        let rows = recorder.as_ref().map_or(0, Recorder::values);
        let mut memory = Memory::new(problem, &storage, &kernels, rows, context)?;
        for (field, (&buffer, values)) in storage.first.iter().zip(fields).enumerate() {
            memory.write(buffer, [[0; 3], problem.extents_of(field)], values)?;
        }
        let persistent = match is_launched {
            true => None,
            false => Some(Steps::new(problem, &plan, loaded, (&kernels, &storage), &memory)?),
        };
        let phase = Phase::load(problem, loaded, &kernels)?;
        let timer = Timer::new(&memory.stream)?;
        let mark = problem.marks.map_or(f64::NAN, |marks| marks.next(problem.scalars[marks.scalar]));
        let mut session = ProgramSession {
            plan,
            problem: problem.clone(),
            boxes,
            groups,
            storage,
            kernels,
            functions,
            chains,
            passes,
            end,
            persistent,
            recorder,
            memory,
            steps: 0,
            phase,
            remaining: 0,
            is_at_mark: false,
            mark,
            counter,
            recording: None,
            timer,
            neighbours: Neighbours::new(put_kernel),
            together: None,
            carried: None,
        };
        session.set_progress(false)?;
        Ok(session)
    }

    /// Returns the steps done, counted from the start.
    fn step(&self) -> u64 {
        self.problem.first_step + self.steps
    }

    /// Writes the steps done, the mark and when a row is due to the device; all rows have been taken.
    fn set_progress(&mut self, has_ended: bool) -> Result<()> {
        if self.kernels.end.is_none() {
            return Ok(());
        }
        let until_due = self.recorder.as_ref().map_or(0, |recorder| recorder.until_due(self.step()));
        let (steps, mark) = (self.steps, self.mark);
        self.memory.set_progress(Progress { has_ended, steps, until_due, mark, ..Progress::default() })
    }

    /// Forgets that a condition has ended the run, and what the next step would take over, because a field or a parameter is set.
    fn go_on(&mut self) -> Result<()> {
        self.phase.has_ended = false;
        self.phase.once.forget();
        self.carried.iter_mut().for_each(|carried| carried.is_there = false);
        if self.kernels.end.is_some() && self.drain()?.has_ended {
            self.set_progress(false)?;
        }
        Ok(())
    }

    /// Takes the rows that the device has recorded, and returns how far the run has come.
    fn drain(&mut self) -> Result<Progress> {
        let progress = self.memory.progress()?;
        let Some(recorder) = &mut self.recorder else { return Ok(progress) };
        if progress.rows == 0 {
            recorder.add(&[])?;
            return Ok(progress);
        }
        let values = self.memory.rows(recorder.values_of(progress.rows))?;
        recorder.add(&values)?;
        self.memory.set_progress(Progress { rows: 0, ..progress })?;
        Ok(progress)
    }

    /// Launches a step, counted from the storage's first, on the stream or into the graph that it records.
    fn launch(&self, step: u64) -> Result<()> {
        self.launch_all(&self.storage.launches(step).launches)?;
        self.launch_end(step)
    }

    /// Launches the stages, groups and chains of a step or phase.
    fn launch_all(&self, launches: &[Launch]) -> Result<()> {
        self.kernels.launched(launches).into_iter().try_for_each(|launched| self.launch_one(launched))
    }

    fn launch_one(&self, launched: Launched<'_>) -> Result<()> {
        let (number, launches) = match launched {
            Launched::Group(launch) => return self.launch_group(launch, true),
            Launched::Chain(number, launches) => (number, launches),
        };
        let kernel = &self.kernels.chains[number].kernel;
        let slots = kernel.slots_of_chain().unwrap_or(self.kernels.slots);
        let arguments = self.memory.arguments(&self.kernels.buffers_of(launches), slots);
        launch_kernel(&self.chains[number], kernel, &arguments, &self.memory.stream)
    }

    /// Launches a stage or a group of them; the leaves of a reduction are joined to its scalar only where they are `all`.
    fn launch_group(&self, launch: &Launch, all: bool) -> Result<()> {
        if let Some(pass) = self.passes.get(&launch.stages) {
            return pass.launch(launch, &self.memory);
        }
        let (Some(group), Some(functions)) = (self.kernels.of(launch), self.functions.get(&launch.stages))
        else {
            return Err(Error::device("cuda", "launching a group of stages", "it has no kernels"));
        };
        let arguments = self.memory.arguments(&group.buffers(launch), self.kernels.slots);
        let mut made = launch.made.iter().zip(&launch.writes);
        let moves = made.any(|(&name, target)| launch.reads[name] != *target);
        for (kernel, function) in group.launches.iter().zip(functions) {
            if (!kernel.carries || moves) && (all || !kernel.joins_leaves()) {
                launch_kernel(function, kernel, &arguments, &self.memory.stream)?;
            }
        }
        Ok(())
    }

    /// Launches what ends a step, if anything does.
    fn launch_end(&self, step: u64) -> Result<()> {
        match (&self.end, &self.kernels.end) {
            (Some(function), Some(end)) => {
                let buffers = end.buffers(self.storage.launches(step));
                let arguments = self.memory.arguments(&buffers, self.kernels.slots);
                launch_kernel(function, &end.kernel, &arguments, &self.memory.stream)
            }
            _ => Ok(()),
        }
    }

    /// Returns the first step from `step` on at which a graph may begin.
    fn next_round(&self, step: u64) -> u64 {
        let first = self.storage.repeated as u64;
        let (round, _) = rounds(&self.storage);
        if step <= first { first } else { first + (step - first).next_multiple_of(round) }
    }

    /// Records the steps that repeat.
    fn record(&self) -> Result<CudaGraph> {
        let first = self.storage.repeated as u64;
        let mut steps = first..first + rounds(&self.storage).1;
        recorded(&self.memory.stream, || steps.try_for_each(|step| self.launch(step)))
    }

    /// Returns the place in the storage of what comes next.
    fn place(&self) -> usize {
        match self.problem.program.has_loops() {
            true => self.phase.place,
            false => self.storage.place(self.steps),
        }
    }

    /// Returns the buffers in which the fields lie.
    fn now(&self) -> &[usize] {
        &self.storage.steps[self.place()].before
    }

    /// Returns the buffer in which a field lies.
    fn buffer(&self, field: usize) -> Result<usize> {
        let buffers = self.now();
        buffers.get(field).copied().ok_or_else(|| {
            Error::limit(
                "number of a field",
                field,
                buffers.len().saturating_sub(1),
                "use one of the program's fields",
            )
        })
    }

    /// Returns the buffer in which a field lies alone. All fields keep their buffers until the next step, so that
    /// several can be exported at once.
    fn own_buffer(&mut self, field: usize) -> Result<usize> {
        let names = self.now();
        if names.iter().collect::<BTreeSet<_>>().len() < names.len() {
            self.unalias()?;
        }
        self.buffer(field)
    }

    /// Gives each field a buffer of its own, by a storage that begins at the step now reached.
    fn unalias(&mut self) -> Result<()> {
        let has_ended = self.kernels.end.is_some() && self.drain()?.has_ended;
        let mut problem = self.problem.clone();
        problem.first_step += self.steps;
        let phase = self.storage.number(self.place());
        let storage = Storage::from_phase(&problem, &self.boxes, &self.groups, phase)?;
        let names = self.now().to_vec();
        self.memory.unalias(&names, &storage)?;
        (self.problem, self.storage, self.steps, self.recording) = (problem, storage, 0, None);
        self.phase.place = 0;
        self.phase.graphs.clear();
        if let Some(persistent) = &mut self.persistent {
            persistent.unalias(&self.problem, (&self.kernels, &self.storage), &self.memory)?;
        }
        self.set_progress(has_ended)
    }
}

/// Returns the kernel of a chain. Where its blocks are a cluster, the device can hold it.
fn chain_function(loaded: &Kernels, kernel: &KernelLaunch) -> Result<CudaFunction> {
    let function = loaded.function(&kernel.entry, kernel.shared_bytes)?;
    if kernel.slots_of_chain().is_some() && kernel.blocks > 1 {
        check_cluster(&function, [kernel.blocks, kernel.threads, kernel.shared_bytes], "use --fuse off")?;
    }
    Ok(function)
}

/// Launches a kernel of a stage: `arguments` are those of [`Memory::arguments`].
pub(crate) fn launch_kernel(
    function: &CudaFunction,
    kernel: &KernelLaunch,
    arguments: &[u64],
    stream: &CudaStream,
) -> Result<()> {
    let mut arguments: [*mut c_void; 1] = [arguments.as_ptr().cast_mut().cast()];
    // SAFETY: the kernel takes the struct Arguments by value; the array has its layout and is copied by the
    // call. The grid covers what the stage computes, and the kernel checks its bounds.
    unsafe {
        result::launch_kernel(
            function.cu_function(),
            (kernel.blocks as u32, 1, 1),
            (kernel.threads as u32, 1, 1),
            kernel.shared_bytes as u32,
            stream.cu_stream(),
            &mut arguments,
        )
    }
    .map_err(during("launching a stage"))
}

/// Returns the number of steps that repeat, and how many of them a graph has.
fn rounds(storage: &Storage) -> (u64, u64) {
    let repeated = &storage.steps[storage.repeated..];
    let launches: usize = repeated.iter().map(|step| step.launches.len()).sum();
    let rounds = GRAPH_LAUNCHES / launches.max(1);
    (repeated.len() as u64, repeated.len() as u64 * rounds.clamp(1, 16) as u64)
}

impl Session for ProgramSession {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn advance(&mut self, steps: u64) -> Result<f64> {
        self.memory.make_ready(&self.problem, &self.kernels)?;
        if self.problem.program.has_loops() {
            return self.advance_with_loops(steps);
        }
        if let Some(mut together) = self.together.take() {
            let seconds = self.advance_together(&mut together, steps);
            self.together = Some(together);
            return seconds;
        }
        self.make_carried()?;
        let (end, whole) = (self.steps + steps, rounds(&self.storage).1);
        let records = self.persistent.is_none() && self.recording.is_none();
        if records && self.next_round(self.steps) + whole <= end {
            self.recording = Some(self.record()?);
        }
        self.timer.start(&self.memory.stream)?;
        while self.steps < end {
            let whole_fits = self.steps + whole <= end && self.next_round(self.steps) == self.steps;
            let graph = self.recording.as_ref().filter(|_| whole_fits);
            // The rows of a record have room for as many steps as a graph has.
            let most = if self.recorder.is_some() { whole.min(end - self.steps) } else { end - self.steps };
            let now = match &self.persistent {
                Some(persistent) => persistent.fit(self.steps, most),
                None if graph.is_some() => whole,
                None => 1,
            };
            let step = self.step();
            if self.recorder.as_ref().is_some_and(|recorder| !recorder.has_room(step, step + now)) {
                let progress = self.drain()?;
                if progress.has_ended || progress.is_at_mark {
                    break;
                }
                continue;
            }
            match (&self.persistent, graph) {
                (Some(persistent), _) => {
                    persistent.launch(&self.storage, self.steps, now, &self.memory.stream)?;
                }
                (None, Some(graph)) => graph.launch().map_err(during("replaying a graph"))?,
                (None, None) => self.launch(self.steps)?,
            }
            if let Some(recorder) = &mut self.recorder {
                recorder.launched(step, step + now);
            }
            self.steps += now;
        }
        let seconds = self.timer.stop(&self.memory.stream)?;
        self.neighbours.done();
        self.is_at_mark = false;
        if self.problem.until.is_some() || self.problem.marks.is_some() {
            let progress = self.drain()?;
            self.steps = progress.steps;
            if let (true, Some(marks)) = (progress.is_at_mark, self.problem.marks) {
                self.is_at_mark = true;
                self.mark = marks.next(self.scalars()?.get(marks.scalar).copied().unwrap_or(f64::NAN));
                self.set_progress(progress.has_ended)?;
            }
        }
        self.remaining = end - self.steps;
        Ok(seconds)
    }

    fn time_step(&mut self) -> Result<Vec<LaunchTime>> {
        if self.persistent.is_some() || self.problem.program.has_loops() {
            return Ok(Vec::new());
        }
        self.memory.make_ready(&self.problem, &self.kernels)?;
        self.make_carried()?;
        let stream = &self.memory.stream;
        let launches = self.kernels.launched(&self.storage.launches(self.steps).launches);
        let marks = Marks::new(stream, launches.len() + 1)?;
        // In a graph kernels follow each other as in a run, whatever time the host takes to launch them.
        let graph = recorded(&self.memory.stream, || {
            marks.pass(0, stream)?;
            for (number, launched) in launches.iter().enumerate() {
                self.launch_one(*launched)?;
                marks.pass(number + 1, stream)?;
            }
            self.launch_end(self.steps)
        })?;
        graph.launch().map_err(during("replaying a graph"))?;
        let stages = launches.iter().map(Launched::stages);
        let times = stages.zip(marks.seconds(stream)?);
        let times = times.map(|(stages, seconds)| LaunchTime { stages, seconds }).collect();
        self.steps += 1;
        Ok(times)
    }

    fn advance_phase(&mut self, turns: u64) -> Result<Turns> {
        self.memory.make_ready(&self.problem, &self.kernels)?;
        self.timer.start(&self.memory.stream)?;
        let (turns, is_over) = self.turns(turns)?;
        let seconds = self.timer.stop(&self.memory.stream)?;
        self.neighbours.done();
        Ok(Turns { turns, is_over, seconds })
    }

    fn remaining(&self) -> u64 {
        self.remaining
    }

    fn is_at_mark(&self) -> bool {
        self.is_at_mark
    }

    fn take_rows(&mut self) -> Result<Rows> {
        if self.recorder.as_ref().is_some_and(Recorder::has_pending) {
            self.drain()?;
        }
        Ok(self.recorder.as_mut().map_or_else(Rows::default, Recorder::take))
    }

    fn read(&mut self, field: usize) -> Result<Array> {
        self.memory.read(self.buffer(field)?, [[0; 3], self.problem.extents_of(field)])
    }

    fn read_window(&mut self, field: usize, low: [usize; 3], high: [usize; 3]) -> Result<Array> {
        let buffer = self.buffer(field)?;
        check_window(self.problem.extents_of(field), low, high)?;
        self.memory.read(buffer, [low, high])
    }

    fn write(&mut self, field: usize, values: &Array) -> Result<()> {
        check_field(&self.problem, field, values)?;
        self.write_window(field, [0; 3], self.problem.extents_of(field), values)
    }

    fn write_window(
        &mut self,
        field: usize,
        low: [usize; 3],
        high: [usize; 3],
        values: &Array,
    ) -> Result<()> {
        check_values(&self.problem, field, low, high, values)?;
        let buffer = self.own_buffer(field)?;
        self.memory.write(buffer, [low, high], values)?;
        self.go_on()
    }

    fn non_finite(&mut self, field: usize) -> Result<u64> {
        self.memory.non_finite(self.buffer(field)?, &self.counter)
    }

    fn device_buffer(&self, field: usize) -> Option<Box<dyn Any>> {
        Some(Box::new(self.memory.lend(self.buffer(field).ok()?)?))
    }

    fn device_buffer_mut(&mut self, field: usize) -> Result<Option<Box<dyn Any>>> {
        let buffer = self.own_buffer(field)?;
        self.go_on()?;
        Ok(self.memory.lend(buffer).map(|buffer| Box::new(buffer) as Box<dyn Any>))
    }

    fn peer(&mut self) -> Option<&mut dyn Peer> {
        Some(self)
    }

    fn reduce_together(&mut self, shares: Vec<Option<Share>>, endpoint: Endpoint) -> Result<()> {
        self.together = Some(SlabReductions::new(self, shares, endpoint)?);
        Ok(())
    }

    fn set_parameter(&mut self, parameter: usize, value: f64) -> Result<()> {
        set_parameter(&mut self.problem.parameters, parameter, value)?;
        self.memory.set_scalar(parameter, value)?;
        self.memory.are_matrices_stale = true;
        if !self.passes.is_empty() {
            // A recording has the parameters of passes as they were.
            self.recording = None;
            self.phase.graphs.clear();
            self.passes.values_mut().for_each(|pass| pass.set_parameters(&self.problem.parameters));
        }
        self.go_on()
    }

    fn scalars(&mut self) -> Result<Vec<f64>> {
        let computed = self.memory.scalars()?.into_iter().skip(self.problem.parameters.len());
        let carried = self.carried.as_ref().map_or(0, Carried::count);
        Ok(computed.take(self.problem.program.scalars().len() - carried).collect())
    }
}

impl Drop for ProgramSession {
    fn drop(&mut self) {
        self.neighbours.end(&self.memory.stream);
    }
}

//! A session of a program that is not plain: a launch per stage, replayed from a graph.
//!
//! The buffers of fields change from step to step as [`Storage`] says, and all that the kernels read besides
//! them lies in device memory. So a recording of the steps that repeat is good for the whole run, whatever
//! the scalars become.

mod memory;

use std::ffi::c_void;
use std::sync::Arc;

use abide_core::backend::{check_field, window_of};
use abide_core::program::{Boxes, Storage};
use abide_core::{Array, DType, Error, Plan, Problem, Result, Session};
use abide_shaders::cuda::{ProgramKernels, program_kernels};
use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode_enum as CaptureMode};
use cudarc::driver::{CudaContext, CudaFunction, CudaGraph, result};

use self::memory::Memory;
use crate::driver::during;
use crate::kernels::Kernels;
use crate::memory::set_parameter;
use crate::timing::Timer;

/// Launches of a graph; a graph has as many whole rounds of the steps that repeat as fit.
const GRAPH_LAUNCHES: usize = 1024;

/// A program that is not plain in progress on a CUDA device.
pub(crate) struct ProgramSession {
    plan: Plan,
    /// Its first step is the one from which the storage counts.
    problem: Problem,
    boxes: Boxes,
    storage: Storage,
    kernels: ProgramKernels,
    /// Of each stage, in the order of its launches.
    functions: Vec<Vec<CudaFunction>>,
    memory: Memory,
    /// The kernel that ends each step where a condition may end the run.
    until: Option<CudaFunction>,
    /// The steps done since the storage's first.
    steps: u64,
    /// Steps of the last advance that were not done.
    undone: u64,
    recording: Option<CudaGraph>,
    timer: Timer,
}

// SAFETY: the graph is used through `&mut self` alone, and the session binds the context to the calling
// thread first.
unsafe impl Send for ProgramSession {}

impl ProgramSession {
    /// Allocates and loads a problem, whose fields have been checked.
    pub fn new(
        problem: &Problem,
        plan: Plan,
        context: &Arc<CudaContext>,
        loaded: &Kernels,
        fields: &[Array],
    ) -> Result<ProgramSession> {
        let Some(tiles) = plan.stepwise() else {
            return Err(Error::invalid("plan", "it has no tiles", "make it with plan_stepwise"));
        };
        let kernels = program_kernels(problem, tiles)?;
        let functions = kernels.stages.iter().map(|stage| {
            stage.launches.iter().map(|launch| loaded.function(&launch.entry, 0)).collect::<Result<_>>()
        });
        let functions = functions.collect::<Result<_>>()?;
        let until = kernels.until.as_ref().map(|until| loaded.function(&until.entry, 0)).transpose()?;
        let boxes = Boxes::of(problem)?;
        let storage = Storage::of(problem, &boxes)?;
        let mut memory = Memory::new(problem, &storage, &kernels, context)?;
        for (&buffer, field) in storage.first.iter().zip(fields) {
            memory.write(buffer, field)?;
        }
        let timer = Timer::new(&memory.stream)?;
        Ok(ProgramSession {
            plan,
            problem: problem.clone(),
            boxes,
            storage,
            kernels,
            functions,
            until,
            memory,
            steps: 0,
            undone: 0,
            recording: None,
            timer,
        })
    }

    /// Launches a step, counted from the storage's first, on the stream or into the graph that it records.
    fn launch(&self, step: u64) -> Result<()> {
        for launch in &self.storage.launches(step).launches {
            let stage = &self.kernels.stages[launch.stage];
            let arguments = self.memory.arguments(&stage.buffers(launch), self.kernels.slots);
            let writes = &self.problem.program.stages()[launch.stage].writes;
            let moves =
                writes.iter().zip(&launch.writes).any(|(&name, target)| launch.reads[name] != *target);
            for (kernel, function) in stage.launches.iter().zip(&self.functions[launch.stage]) {
                if kernel.carries && !moves {
                    continue;
                }
                self.launch_kernel(function, [kernel.blocks, kernel.threads], &arguments)?;
            }
        }
        match &self.until {
            Some(until) => self.launch_kernel(until, [1, 1], &self.memory.arguments(&[], self.kernels.slots)),
            None => Ok(()),
        }
    }

    /// Launches a kernel with some blocks of some threads.
    fn launch_kernel(
        &self,
        function: &CudaFunction,
        [blocks, threads]: [usize; 2],
        arguments: &[u64],
    ) -> Result<()> {
        let mut arguments: [*mut c_void; 1] = [arguments.as_ptr().cast_mut().cast()];
        // SAFETY: the kernel takes the struct Arguments by value; the array has its layout and is copied by the
        // call. The grid covers what the stage computes, and the kernel checks its bounds.
        unsafe {
            result::launch_kernel(
                function.cu_function(),
                (blocks as u32, 1, 1),
                (threads as u32, 1, 1),
                0,
                self.memory.stream.cu_stream(),
                &mut arguments,
            )
        }
        .map_err(during("launching a stage"))
    }

    /// Returns the number of steps that repeat, and how many of them a graph has.
    fn rounds(&self) -> (u64, u64) {
        let repeated = &self.storage.steps[self.storage.repeated..];
        let launches: usize = repeated.iter().map(|step| step.launches.len()).sum();
        let rounds = GRAPH_LAUNCHES / launches.max(1);
        (repeated.len() as u64, repeated.len() as u64 * rounds.clamp(1, 16) as u64)
    }

    /// Returns the first step from `step` on at which a graph may begin.
    fn next_round(&self, step: u64) -> u64 {
        let first = self.storage.repeated as u64;
        let (round, _) = self.rounds();
        if step <= first { first } else { first + (step - first).next_multiple_of(round) }
    }

    fn record(&self) -> Result<CudaGraph> {
        let stream = &self.memory.stream;
        let first = self.storage.repeated as u64;
        stream
            .begin_capture(CaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
            .map_err(during("recording a graph"))?;
        let launched = (first..first + self.rounds().1).try_for_each(|step| self.launch(step));
        let graph =
            stream.end_capture(CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
        launched?;
        let graph = graph.map_err(during("recording a graph"))?;
        graph.ok_or_else(|| Error::device("cuda", "recording a graph", "the recording is empty"))
    }

    /// Returns the buffer in which a field lies.
    fn buffer(&self, field: usize) -> Result<usize> {
        let buffers = self.storage.fields_after(self.steps);
        buffers.get(field).copied().ok_or_else(|| {
            Error::limit(
                "number of a field",
                field,
                buffers.len().saturating_sub(1),
                "use one of the program's fields",
            )
        })
    }

    /// Gives each field a buffer of its own, by a storage that begins at the step now reached.
    fn settle(&mut self) -> Result<()> {
        let mut problem = self.problem.clone();
        problem.first_step += self.steps;
        let storage = Storage::of(&problem, &self.boxes)?;
        self.memory.settle(self.storage.fields_after(self.steps), &storage)?;
        (self.problem, self.storage, self.steps, self.recording) = (problem, storage, 0, None);
        self.memory.forget_progress()
    }
}

impl Session for ProgramSession {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn advance(&mut self, steps: u64) -> Result<f64> {
        self.memory.context.bind_to_thread().map_err(during("binding the context"))?;
        let (end, (_, whole)) = (self.steps + steps, self.rounds());
        if self.recording.is_none() && self.next_round(self.steps) + whole <= end {
            self.recording = Some(self.record()?);
        }
        self.timer.start(&self.memory.stream)?;
        while self.steps < end {
            match &self.recording {
                Some(graph) if self.steps + whole <= end && self.next_round(self.steps) == self.steps => {
                    graph.launch().map_err(during("replaying a graph"))?;
                    self.steps += whole;
                }
                _ => {
                    self.launch(self.steps)?;
                    self.steps += 1;
                }
            }
        }
        let seconds = self.timer.stop(&self.memory.stream)?;
        if self.until.is_some() {
            self.steps = self.memory.steps()?;
        }
        self.undone = end - self.steps;
        Ok(seconds)
    }

    fn undone(&self) -> u64 {
        self.undone
    }

    fn read(&mut self, field: usize) -> Result<Array> {
        self.memory.read(self.buffer(field)?)
    }

    fn read_window(&mut self, field: usize, low: [usize; 3], high: [usize; 3]) -> Result<Array> {
        let values = self.read(field)?;
        window_of(self.problem.extents_of(field), &values, low, high)
    }

    fn write(&mut self, field: usize, values: &Array) -> Result<()> {
        let buffer = self.buffer(field)?;
        check_field(&self.problem, field, values)?;
        let names = self.storage.fields_after(self.steps);
        if names.iter().filter(|&&name| name == buffer).count() > 1 {
            self.settle()?;
        }
        self.memory.write(self.buffer(field)?, values)
    }

    fn set_parameter(&mut self, parameter: usize, value: f64) -> Result<()> {
        set_parameter(&mut self.problem, parameter, value)?;
        self.memory.set_scalar(parameter, value)
    }

    fn scalars(&mut self) -> Result<Vec<f64>> {
        let bytes = self.memory.scalars()?;
        let all: Vec<f64> = match self.problem.dtype {
            DType::F32 => bytes
                .chunks_exact(4)
                .filter_map(|value| value.try_into().ok())
                .map(|value| f64::from(f32::from_ne_bytes(value)))
                .collect(),
            DType::F64 => bytes
                .chunks_exact(8)
                .filter_map(|value| value.try_into().ok())
                .map(f64::from_ne_bytes)
                .collect(),
        };
        let computed = all.into_iter().skip(self.problem.parameters.len());
        Ok(computed.take(self.problem.program.scalars().len()).collect())
    }
}

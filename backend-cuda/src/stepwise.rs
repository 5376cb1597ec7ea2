//! Stepwise sessions: a launch a stage, replayed from a graph.

use std::ffi::c_void;

use abide_core::{Array, Error, Plan, Result, Session};
use abide_shaders::cuda;
use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode_enum as CaptureMode};
use cudarc::driver::{CudaFunction, CudaGraph, result};

use crate::driver::during;
use crate::kernels::Kernels;
use crate::memory::{Fields, parameter_bytes, set_parameter};
use crate::timing::Timer;

/// Steps of a graph; even, so that every field is back in the buffer it started from.
const GRAPH_STEPS: u64 = 32;

pub(crate) struct StepwiseSession {
    plan: Plan,
    fields: Fields,
    stages: Vec<(CudaFunction, usize)>,
    blocks: u32,
    threads: u32,
    parameters: Vec<u8>,
    /// The recorded steps, for the buffers' turn that it was recorded in.
    graph: Option<(Vec<u64>, CudaGraph)>,
    timer: Timer,
}

// SAFETY: the graph is used through `&mut self` alone, and every call binds the context to the calling thread.
unsafe impl Send for StepwiseSession {}

impl StepwiseSession {
    pub fn new(plan: Plan, fields: Fields, kernels: &Kernels) -> Result<Self> {
        let Some(tiles) = plan.tiles() else {
            return Err(Error::invalid("plan", "it has no tiles", "make it with plan_tiles"));
        };
        let blocks: usize = tiles.blocks(plan.shape.padded()).iter().product();
        let blocks = u32::try_from(blocks)
            .ok()
            .filter(|&b| b <= i32::MAX as u32)
            .ok_or_else(|| Error::limit("blocks of a launch", blocks, i32::MAX, "choose a smaller size"))?;
        let functions = tiles.shared_bytes.iter().enumerate();
        let stages = functions
            .map(|(stage, &bytes)| Ok((kernels.function(&cuda::stage_entry(stage), bytes)?, bytes)))
            .collect::<Result<_>>()?;
        let threads = tiles.threads_per_block() as u32;
        let timer = Timer::new(&fields)?;
        let parameters = parameter_bytes(&fields.problem);
        Ok(StepwiseSession { plan, fields, stages, blocks, threads, parameters, graph: None, timer })
    }

    /// Launches `steps` steps on the stream, or into the graph that it is recording.
    fn launch(&mut self, steps: u64) -> Result<()> {
        for step in 0..steps {
            for stage in 0..self.stages.len() {
                let mut buffers = self.fields.pointers(&self.fields.flips(step, stage));
                let (function, shared) = &self.stages[stage];
                let mut arguments: [*mut c_void; 2] =
                    [buffers.as_mut_ptr().cast(), self.parameters.as_mut_ptr().cast()];
                // SAFETY: the kernel takes the structs Buffers and Parameters by value; both arrays have their layout and
                // are copied by the call. The grid covers the domain and the kernel checks its bounds.
                unsafe {
                    result::launch_kernel(
                        function.cu_function(),
                        (self.blocks, 1, 1),
                        (self.threads, 1, 1),
                        *shared as u32,
                        self.fields.stream.cu_stream(),
                        &mut arguments,
                    )
                }
                .map_err(during("launching a stage"))?;
            }
        }
        Ok(())
    }

    fn record(&mut self) -> Result<CudaGraph> {
        let stream = self.fields.stream.clone();
        stream.begin_capture(CaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).map_err(during("recording a graph"))?;
        let launched = self.launch(GRAPH_STEPS);
        let graph = stream.end_capture(CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
        launched?;
        let graph = graph.map_err(during("recording a graph"))?;
        graph.ok_or_else(|| Error::device("cuda", "recording a graph", "the recording is empty"))
    }

    fn replay(&mut self, times: u64) -> Result<()> {
        let state = self.fields.pointers(&self.fields.flips(0, 0));
        if self.graph.as_ref().is_none_or(|(recorded, _)| *recorded != state) {
            let graph = self.record()?;
            self.graph = Some((state, graph));
        }
        if let Some((_, graph)) = &self.graph {
            for _ in 0..times {
                graph.launch().map_err(during("replaying a graph"))?;
            }
        }
        Ok(())
    }
}

impl Session for StepwiseSession {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn advance(&mut self, steps: u64) -> Result<f64> {
        self.fields.context.bind_to_thread().map_err(during("binding the context"))?;
        // Recording is no part of the run: it is done before the clock starts.
        if steps >= GRAPH_STEPS {
            self.replay(0)?;
        }
        self.timer.start(&self.fields)?;
        if steps >= GRAPH_STEPS {
            self.replay(steps / GRAPH_STEPS)?;
        }
        self.launch(steps % GRAPH_STEPS)?;
        let seconds = self.timer.stop(&self.fields)?;
        self.fields.advanced(steps);
        Ok(seconds)
    }

    fn read(&mut self, field: usize) -> Result<Array> {
        self.fields.read(field)
    }

    fn read_window(&mut self, field: usize, low: [usize; 3], high: [usize; 3]) -> Result<Array> {
        self.fields.read_window(field, low, high)
    }

    fn write(&mut self, field: usize, values: &Array) -> Result<()> {
        self.fields.write(field, values)
    }

    fn set_parameter(&mut self, parameter: usize, value: f64) -> Result<()> {
        set_parameter(&mut self.fields.problem, parameter, value)?;
        self.parameters = parameter_bytes(&self.fields.problem);
        // The graph holds the old values.
        self.graph = None;
        Ok(())
    }
}

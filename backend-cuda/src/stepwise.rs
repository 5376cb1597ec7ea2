//! Stepwise execution: a launch per stage, replayed from a graph.

use std::ffi::c_void;

use abide_core::{Error, Plan, Result};
use abide_shaders::cuda;
use cudarc::driver::{CudaFunction, CudaGraph, result};

use crate::driver::during;
use crate::graph::recorded;
use crate::kernels::Kernels;
use crate::launcher::Launcher;
use crate::memory::Fields;
use crate::parameters::Parameters;

/// Steps of a graph; even, so that every field is back in the buffer it started from.
pub(crate) const GRAPH_STEPS: u64 = 32;

/// A recording of [`GRAPH_STEPS`] steps, and the addresses and parameters with which it was recorded, because
/// it holds them by value.
struct Recording {
    addresses: Vec<u64>,
    parameters: Vec<u8>,
    graph: CudaGraph,
}

/// A launch per stage.
pub(crate) struct Stepwise {
    stages: Vec<(CudaFunction, usize)>,
    blocks: u32,
    threads: u32,
    recording: Option<Recording>,
}

// SAFETY: the graph is used through `&mut self` alone, and the session binds the context to the calling
// thread first.
unsafe impl Send for Stepwise {}

impl Stepwise {
    pub fn new(plan: &Plan, kernels: &Kernels) -> Result<Self> {
        let Some(tiles) = plan.stepwise() else {
            return Err(Error::invalid("plan", "it has no tiles", "make it with plan_stepwise"));
        };
        let blocks = tiles.launched(plan.shape.padded());
        let blocks = u32::try_from(blocks)
            .ok()
            .filter(|&b| b <= i32::MAX as u32)
            .ok_or_else(|| Error::limit("blocks of a launch", blocks, i32::MAX, "choose a smaller size"))?;
        let functions = tiles.shared_bytes.iter().enumerate();
        let stages = functions
            .map(|(stage, &tile)| {
                let bytes = tile + tiles.table_bytes(stage);
                Ok((kernels.function(&cuda::stage_entry(stage), bytes)?, bytes))
            })
            .collect::<Result<_>>()?;
        Ok(Stepwise { stages, blocks, threads: tiles.threads_per_block() as u32, recording: None })
    }

    /// Launches `steps` steps on the stream, or into the graph that it is recording.
    fn launch_each(&self, fields: &Fields, parameters: &mut Parameters, steps: u64) -> Result<()> {
        for step in 0..steps {
            for (stage, (function, shared)) in self.stages.iter().enumerate() {
                let mut buffers = fields.pointers(&fields.flips(step, stage));
                let mut arguments: [*mut c_void; 2] =
                    [buffers.as_mut_ptr().cast(), parameters.argument(&fields.stream)];
                // SAFETY: the kernel takes the structs Buffers and Parameters by value; both arrays have
                // their layout and are copied by the call. The grid covers the domain and the kernel checks
                // its bounds.
                unsafe {
                    result::launch_kernel(
                        function.cu_function(),
                        (self.blocks, 1, 1),
                        (self.threads, 1, 1),
                        *shared as u32,
                        fields.stream.cu_stream(),
                        &mut arguments,
                    )
                }
                .map_err(during("launching a stage"))?;
                parameters.pass_stages(1);
            }
        }
        Ok(())
    }

    fn record(&self, fields: &Fields, parameters: &mut Parameters) -> Result<CudaGraph> {
        recorded(&fields.stream, || self.launch_each(fields, parameters, GRAPH_STEPS))
    }
}

impl Launcher for Stepwise {
    fn most_steps(&self) -> u64 {
        u64::MAX
    }

    fn prepare(&mut self, fields: &Fields, parameters: &mut Parameters, steps: u64) -> Result<()> {
        let addresses = fields.pointers(&fields.flips(0, 0));
        let fits = |r: &Recording| r.addresses == addresses && r.parameters == parameters.bytes();
        // What varies has another address in each launch.
        if !parameters.vary() && steps >= GRAPH_STEPS && !self.recording.as_ref().is_some_and(fits) {
            let graph = self.record(fields, parameters)?;
            self.recording = Some(Recording { addresses, parameters: parameters.bytes().to_vec(), graph });
        }
        Ok(())
    }

    fn launch(&mut self, fields: &mut Fields, parameters: &mut Parameters, steps: u64) -> Result<()> {
        let mut left = steps;
        if let Some(recording) = &self.recording {
            for _ in 0..steps / GRAPH_STEPS {
                recording.graph.launch().map_err(during("replaying a graph"))?;
            }
            left %= GRAPH_STEPS;
        }
        self.launch_each(fields, parameters, left)?;
        fields.advanced(steps);
        Ok(())
    }
}

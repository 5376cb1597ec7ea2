//! Streaming execution: a launch per pass of several steps.

use std::ffi::c_void;
use std::sync::Arc;

use abide_core::plan::WarpStreaming;
use abide_core::plan::streaming::warp::{Configuration, plan_configuration};
use abide_core::{Error, Plan, Problem, Result};
use abide_shaders::cuda;
use cudarc::driver::{CudaFunction, result};

use crate::driver::during;
use crate::kernels::{self, Kernels};
use crate::launcher::Launcher;
use crate::memory::Fields;
use crate::nvrtc::Nvrtc;

/// A kernel that advances `stream.depth` steps.
struct Pass {
    function: CudaFunction,
    stream: WarpStreaming,
}

/// A launch per pass. Steps that do not fill a whole pass are done by passes of half the depth, of a quarter,
/// … of one step, whose kernels are compiled when first needed.
pub(crate) struct Streaming {
    plan: Plan,
    nvrtc: Arc<Nvrtc>,
    /// The passes, the deepest first, each half as deep as the one before.
    passes: Vec<Option<Pass>>,
}

impl Pass {
    fn new(stream: &WarpStreaming, kernels: &Kernels) -> Result<Pass> {
        let function = kernels.function(cuda::STREAM_ENTRY, stream.shared_bytes)?;
        Ok(Pass { function, stream: stream.clone() })
    }
}

/// Returns the plan of a pass of fewer steps than the plan's own.
fn shallower(problem: &Problem, plan: &Plan, depth: usize) -> Result<Plan> {
    let configuration = plan.warp_streaming().map(|stream| Configuration { depth, ..stream.configuration() });
    configuration.and_then(|own| plan_configuration(problem, &plan.device, &own)).ok_or_else(|| {
        Error::invalid(
            format!("a pass of {depth} steps"),
            "it does not fit the device",
            "use another --depth",
        )
    })
}

/// Returns the plans of the passes that do the steps which are no whole pass, the deepest first; none unless the plan is a
/// streaming one.
pub(crate) fn shallower_passes(problem: &Problem, plan: &Plan) -> Vec<Result<Plan>> {
    let depth = plan.warp_streaming().map_or(0, |stream| stream.depth);
    let depths = std::iter::successors(Some(depth / 2), |depth| Some(depth / 2));
    depths.take_while(|&depth| depth > 0).map(|depth| shallower(problem, plan, depth)).collect()
}

impl Streaming {
    pub fn new(plan: &Plan, kernels: &Kernels, nvrtc: &Arc<Nvrtc>) -> Result<Self> {
        let Some(stream) = plan.warp_streaming() else {
            return Err(Error::invalid("plan", "it does not stream", "make it with plan_streaming"));
        };
        let mut passes = vec![Some(Pass::new(stream, kernels)?)];
        let mut depth = stream.depth / 2;
        while depth > 0 {
            passes.push(None);
            depth /= 2;
        }
        Ok(Streaming { plan: plan.clone(), nvrtc: nvrtc.clone(), passes })
    }

    fn depth(&self, number: usize) -> u64 {
        self.plan.depth as u64 >> number
    }

    fn compile(&mut self, fields: &Fields, number: usize) -> Result<()> {
        if self.passes[number].is_some() {
            return Ok(());
        }
        let shallower = shallower(&fields.problem, &self.plan, self.depth(number) as usize)?;
        let (plan, cubin) =
            kernels::fit(&self.nvrtc, &fields.problem, &shallower, &kernels::target(&self.plan.device))?;
        let loaded = Kernels::load(&fields.context, cubin)?;
        let Some(stream) = plan.warp_streaming() else { return Ok(()) };
        self.passes[number] = Some(Pass::new(stream, &loaded)?);
        Ok(())
    }
}

impl Launcher for Streaming {
    fn most_steps(&self) -> u64 {
        u64::MAX
    }

    fn prepare(&mut self, fields: &Fields, _: &mut [u8], steps: u64) -> Result<()> {
        let mut left = steps;
        for number in 0..self.passes.len() {
            let depth = self.depth(number);
            if left >= depth {
                self.compile(fields, number)?;
                left %= depth;
            }
        }
        Ok(())
    }

    fn launch(&mut self, fields: &mut Fields, parameters: &mut [u8], steps: u64) -> Result<()> {
        let mut left = steps;
        for pass in self.passes.iter().flatten() {
            let depth = pass.stream.depth as u64;
            while left >= depth {
                let mut buffers = fields.pointers(&fields.flips(0, 0));
                let mut arguments: [*mut c_void; 2] =
                    [buffers.as_mut_ptr().cast(), parameters.as_mut_ptr().cast()];
                // SAFETY: the kernel takes the structs Buffers and Parameters by value; both arrays have
                // their layout and are copied by the call. There is a block for every share, as the kernel's
                // constants say.
                unsafe {
                    result::launch_kernel(
                        pass.function.cu_function(),
                        (pass.stream.shares as u32, 1, 1),
                        (pass.stream.threads_per_block() as u32, 1, 1),
                        pass.stream.shared_bytes as u32,
                        fields.stream.cu_stream(),
                        &mut arguments,
                    )
                }
                .map_err(during("launching a pass"))?;
                fields.passed();
                left -= depth;
            }
        }
        Ok(())
    }
}

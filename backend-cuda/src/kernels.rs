//! From a plan to loaded kernels: text, compiler, the compiler's report, module.

use std::sync::Arc;

use abide_core::plan::{CachePolicy, Compiled};
use abide_core::{DeviceSpec, Error, Plan, Problem, Result};
use abide_shaders::cuda;
use cudarc::driver::sys::CUfunction_attribute_enum as FunctionAttribute;
use cudarc::driver::{CudaContext, CudaFunction, CudaModule};
use cudarc::nvrtc::Ptx;

use crate::cache;
use crate::driver::during;
use crate::nvrtc::{Cubin, Nvrtc};

/// The compiler's name of a device's architecture.
pub fn target(device: &DeviceSpec) -> String {
    let (major, minor) = device.compute_capability.unwrap_or((7, 0));
    format!("sm_{major}{minor}")
}

/// Compiles the kernels of a plan, and of plans with fewer planes in registers while the report shows spills.
///
/// Returns the plan that was kept, with the compiler's report in it.
pub fn fit(nvrtc: &Nvrtc, problem: &Problem, plan: &Plan, target: &str) -> Result<(Plan, Cubin)> {
    let mut plan = plan.clone();
    let mut given_up = 0;
    loop {
        let cubin = cache::compile(nvrtc, &cuda::kernel(problem, &plan)?, target, &cuda::COMPILE_OPTIONS)?;
        plan.compiled = cubin.report.clone();
        let spilled = plan.compiled.iter().map(|c| c.spill_bytes).max().unwrap_or(0);
        let fewer = if spilled > 0 { give_up_registers(problem, &plan, spilled) } else { None };
        match fewer {
            Some(fewer) => {
                given_up +=
                    plan.sweep().map_or(0, |s| s.planes_registers) - fewer.sweep().map_or(0, |s| s.planes_registers);
                plan = fewer;
            }
            None => {
                if given_up > 0 {
                    plan.notes.push(format!(
                        "{given_up} planes fewer in registers than modelled, for the compiler's report showed spills"
                    ));
                }
                if spilled > 0 {
                    plan.notes.push(format!("the kernel spills {spilled} bytes a thread to local memory: the formula needs more registers than a thread has"));
                }
                return Ok((plan, cubin));
            }
        }
    }
}

/// The plan with about as many planes fewer in registers as the spilled bytes make up.
fn give_up_registers(problem: &Problem, plan: &Plan, spilled: usize) -> Option<Plan> {
    let sweep = plan.sweep()?;
    if plan.cache == CachePolicy::None || plan.cache == CachePolicy::Shared {
        return None;
    }
    let cells = sweep.cells_per_thread[0] * sweep.cells_per_thread[1];
    let plane = problem.program.fields().len() * cells * problem.dtype.bytes();
    let chunks = (spilled / 2).div_ceil(plane * sweep.chunk).clamp(1, 2);
    (0..chunks)
        .try_fold(plan.clone(), |plan, _| plan.with_fewer_registers(problem))
        .or_else(|| plan.with_fewer_registers(problem))
}

/// Kernels on the device.
pub(crate) struct Kernels {
    module: Arc<CudaModule>,
}

impl Kernels {
    pub fn load(context: &Arc<CudaContext>, cubin: Cubin) -> Result<Kernels> {
        let module = context.load_module(Ptx::from_binary(cubin.image)).map_err(during("loading a kernel"))?;
        Ok(Kernels { module })
    }

    /// A kernel that may use `shared_bytes` of dynamic shared memory.
    pub fn function(&self, name: &str, shared_bytes: usize) -> Result<CudaFunction> {
        let function = self.module.load_function(name).map_err(during("finding a kernel"))?;
        let attribute = FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        function.set_attribute(attribute, shared_bytes as i32).map_err(|e| {
            Error::limit(
                "bytes of shared memory of a block",
                shared_bytes,
                format!("what the device grants ({e})"),
                "choose another cache policy",
            )
        })?;
        Ok(function)
    }
}

/// The compiler's report of a plan's kernels without a device, for any target the compiler knows.
pub fn report(problem: &Problem, plan: &Plan, target: &str) -> Result<Vec<Compiled>> {
    Ok(fit(&Nvrtc::open()?, problem, plan, target)?.0.compiled)
}

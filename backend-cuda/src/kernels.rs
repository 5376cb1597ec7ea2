//! From a plan to loaded kernels: text, compiler, the compiler's report, module.

use std::sync::Arc;

use abide_core::plan::Compiled;
use abide_core::program::{Boxes, Repeated};
use abide_core::{DeviceSpec, Error, Plan, Problem, Result};
use abide_planner::fused::plan_pass;
use abide_planner::{Fitted, refit, refit_alone};
use abide_shaders::cuda::{self, ProgramKernels, Source};
use cudarc::driver::sys::CUfunction_attribute_enum as FunctionAttribute;
use cudarc::driver::{CudaContext, CudaFunction, CudaModule, sys};
use cudarc::nvrtc::Ptx;

use crate::cache;
use crate::driver::during;
use crate::nvrtc::{Cubin, Nvrtc};

/// Returns the compiler's name of a device's architecture.
pub fn target(device: &DeviceSpec) -> String {
    let (major, minor) = device.compute_capability.unwrap_or((7, 0));
    format!("sm_{major}{minor}")
}

/// What a plan's kernels are compiled to, and of a program that is not plain how they are launched.
#[derive(Debug, Clone)]
pub struct Code {
    /// The compiled kernels.
    pub cubin: Cubin,
    /// The kernels of a program that is not plain.
    pub program: Option<ProgramKernels>,
    /// The passes among the groups of its stages.
    pub passes: Vec<PassCode>,
}

/// A group of stages that is a pass of a streaming kernel, compiled.
#[derive(Debug, Clone)]
pub struct PassCode {
    /// The numbers of the stages.
    pub stages: Vec<usize>,
    /// The plain problem that the stages are steps of.
    pub repeated: Repeated,
    /// The plan of the pass that was kept.
    pub plan: Plan,
    /// The compiled kernel.
    pub cubin: Cubin,
}

/// Compiles the kernels of a plan, or of another in its place while the compiler's report shows spills
/// ([`abide_planner::refit()`]). Returns the plan that was kept, with the report in it.
///
/// # Errors
///
/// The compiler's, and those of the kernels' text.
pub fn fit(nvrtc: &Nvrtc, problem: &Problem, plan: &Plan, target: &str) -> Result<Fitted<Code>> {
    refit(problem, plan, &|plan| compile(nvrtc, problem, plan, target))
}

/// Compiles one plan, and no other in its place: what tuning times.
pub fn fit_alone(nvrtc: &Nvrtc, problem: &Problem, plan: &Plan, target: &str) -> Result<Fitted<Code>> {
    refit_alone(plan, &|plan| compile(nvrtc, problem, plan, target))
}

fn compile(nvrtc: &Nvrtc, problem: &Problem, plan: &Plan, target: &str) -> Result<(Vec<Compiled>, Code)> {
    let Source { text, program } = cuda::source(problem, plan)?;
    let cubin = cache::compile(nvrtc, &text, target, &cuda::COMPILE_OPTIONS)?;
    let passes = passes(nvrtc, problem, plan, target)?;
    let report = cubin.report.iter().chain(passes.iter().flat_map(|pass| &pass.cubin.report));
    Ok((report.cloned().collect(), Code { cubin, program, passes }))
}

/// Compiles the passes among the groups of a plan's stages.
fn passes(nvrtc: &Nvrtc, problem: &Problem, plan: &Plan, target: &str) -> Result<Vec<PassCode>> {
    let groups = plan.stepwise().into_iter().flat_map(|tiles| tiles.partition.all());
    let groups: Vec<_> = groups.filter_map(|group| Some((&group.stages, group.pass.as_ref()?))).collect();
    if groups.is_empty() {
        return Ok(Vec::new());
    }
    let problem = plan.split_problem(problem)?;
    let boxes = Boxes::of(&problem)?;
    let compiled = groups.into_iter().map(|(stages, pass)| {
        let planned = plan_pass(&problem, &boxes, &plan.device, stages, pass);
        let (repeated, plan) = planned.ok_or_else(|| {
            Error::invalid(
                "a pass of stages",
                "they do not repeat one formula",
                "make a plan for this problem",
            )
        })?;
        let Fitted { plan, code } = fit(nvrtc, &repeated.problem, &plan, target)?;
        Ok(PassCode { stages: stages.clone(), repeated, plan, cubin: code.cubin })
    });
    compiled.collect()
}

/// Kernels loaded on the device.
pub(crate) struct Kernels {
    module: Arc<CudaModule>,
}

impl Kernels {
    pub fn load(context: &Arc<CudaContext>, cubin: Cubin) -> Result<Kernels> {
        let module =
            context.load_module(Ptx::from_binary(cubin.image)).map_err(during("loading a kernel"))?;
        Ok(Kernels { module })
    }

    /// Returns a kernel that may use `shared_bytes` of dynamic shared memory.
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

/// Blocks of a cluster that every device with clusters can hold.
const PORTABLE_CLUSTER: usize = 8;

/// Checks that the device has a place for a cluster of so many blocks, of so many threads and bytes of shared memory each: a
/// cluster is started whole or not at all.
pub(crate) fn check_cluster(
    function: &CudaFunction,
    [blocks, threads, shared_bytes]: [usize; 3],
    change: &str,
) -> Result<()> {
    let limit = |clusters: i32| {
        Error::limit("blocks of a cluster", blocks, format!("{clusters} clusters of that size fit"), change)
    };
    if blocks > PORTABLE_CLUSTER {
        let attribute = FunctionAttribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
        function.set_attribute(attribute, 1).map_err(|_| limit(0))?;
    }
    let mut attribute = sys::CUlaunchAttribute {
        id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
        pad: [0; 4],
        value: sys::CUlaunchAttributeValue {
            clusterDim: sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x: blocks as u32, y: 1, z: 1 },
        },
    };
    let config = sys::CUlaunchConfig {
        gridDimX: blocks as u32,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: threads as u32,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: shared_bytes as u32,
        hStream: std::ptr::null_mut(),
        attrs: &raw mut attribute,
        numAttrs: 1,
    };
    let mut clusters = 0;
    // SAFETY: configuration and attribute outlive the call, which writes one integer. Clusters are planned
    // only for devices whose drivers have this function.
    let status = unsafe {
        sys::cuOccupancyMaxActiveClusters(&raw mut clusters, function.cu_function(), &raw const config)
    };
    status.result().map_err(during("asking for the occupancy of clusters"))?;
    if clusters < 1 { Err(limit(clusters)) } else { Ok(()) }
}

/// Returns the compiler's report of a plan's kernels as they stand, spills and all; needs no device.
pub fn report_as_planned(problem: &Problem, plan: &Plan, target: &str) -> Result<Vec<Compiled>> {
    Ok(compile(&Nvrtc::open()?, problem, plan, target)?.0)
}

/// Returns the compiler's report of the kernels that run for a plan, for any target that the compiler knows;
/// needs no device.
pub fn report(problem: &Problem, plan: &Plan, target: &str) -> Result<Vec<Compiled>> {
    Ok(fit(&Nvrtc::open()?, problem, plan, target)?.plan.compiled)
}

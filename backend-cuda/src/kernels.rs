//! From a plan to loaded kernels: text, compiler, the compiler's report, module.

use abide_planner::persistent::with_planes_in_registers;
use abide_planner::resident::with_resident_registers;
use abide_planner::with_fewer_blocks;
use std::sync::Arc;

use abide_core::plan::streaming::warp::Configuration;
use abide_core::plan::{Compiled, Depth, Options};
use abide_core::{DeviceSpec, Error, Plan, Problem, Result};
use abide_planner::streaming_plans;
use abide_shaders::cuda;
use cudarc::driver::sys::CUfunction_attribute_enum as FunctionAttribute;
use cudarc::driver::{CudaContext, CudaFunction, CudaModule};
use cudarc::nvrtc::Ptx;

use crate::cache;
use crate::driver::during;
use crate::nvrtc::{Cubin, Nvrtc};

/// Returns the compiler's name of a device's architecture.
pub fn target(device: &DeviceSpec) -> String {
    let (major, minor) = device.compute_capability.unwrap_or((7, 0));
    format!("sm_{major}{minor}")
}

/// Compiles the kernels of a plan. While the report shows spills, it compiles others instead. For a
/// persistent plan these have fewer planes in registers: the interval between what fits and what does not is
/// halved, down to an eighth of what was planned, or by eighths where the whole domain stays on the chip. For a
/// streaming plan they are of other configurations; for a program's persistent kernel fewer blocks share a multiprocessor.
///
/// Returns the plan that was kept, with the compiler's report in it.
pub fn fit(nvrtc: &Nvrtc, problem: &Problem, plan: &Plan, target: &str) -> Result<(Plan, Cubin)> {
    let compile = |plan: &Plan| compiled(nvrtc, problem, plan, target);
    if plan.warp_streaming().is_some() {
        let mut best = fit_stream(plan, &compile)?;
        for other in other_streams(problem, plan) {
            if best.spilled() <= slight_spills(&best.plan) {
                break;
            }
            best = best.or_less(fit_stream(&other, &compile)?);
        }
        return Ok(noted(best, 0));
    }
    let mut best = compile(plan)?;
    if plan.persistent_program().is_some() {
        while let Some(fewer) = with_fewer_blocks(&best.plan, problem).filter(|_| best.spilled() > 0) {
            let tried = compile(&fewer)?;
            if tried.spilled() >= best.spilled() {
                break;
            }
            best = tried;
        }
        return Ok(noted(best, 0));
    }
    if let Some(resident) = plan.resident() {
        return fit_resident(problem, plan, resident.planes_registers, best, &compile);
    }
    let Some(persistent) =
        plan.persistent().filter(|persistent| best.spilled() > 0 && persistent.planes_registers > 0)
    else {
        return Ok(noted(best, 0));
    };
    let (planned, finest) =
        (persistent.planes_registers, persistent.chunk.max(persistent.planes_registers / 8));
    let (mut fits, mut spills) = (None, planned);
    while spills - fits.unwrap_or(0) > finest || fits.is_none() {
        let planes = (fits.unwrap_or(0) + spills) / 2 / persistent.chunk * persistent.chunk;
        let tried = compile(&with_planes_in_registers(plan, problem, planes))?;
        if tried.spilled() == 0 || planes == 0 {
            (fits, best) = (Some(planes), tried);
        } else {
            spills = planes;
        }
    }
    Ok(noted(best, planned - fits.unwrap_or(0)))
}

/// A plan with the compiler's report in it, and its code.
struct Fitted {
    plan: Plan,
    cubin: Cubin,
}

impl Fitted {
    /// Returns the bytes per thread that the kernel with the most spills.
    fn spilled(&self) -> usize {
        Compiled::most_spilled(&self.plan.compiled).unwrap_or(0)
    }

    /// Returns the other if it spills less.
    fn or_less(self, other: Fitted) -> Fitted {
        if other.spilled() < self.spilled() { other } else { self }
    }
}

fn compiled(nvrtc: &Nvrtc, problem: &Problem, plan: &Plan, target: &str) -> Result<Fitted> {
    let cubin = compile(nvrtc, problem, plan, target)?;
    let mut plan = plan.clone();
    plan.compiled = cubin.report.clone();
    Ok(Fitted { plan, cubin })
}

type Compile<'a> = dyn Fn(&Plan) -> Result<Fitted> + 'a;

/// The bytes that a streaming kernel may spill per thread, of planes of one row and of several. Of the latter the inner
/// loop has few of the loads; of one row, 16 to 32 bytes made kernels of a step more 3 to 4 % slower than those of a step
/// less without any (`2ds9pt` and `2d13pt` f32 8352²).
const SLIGHT_SPILLS: [usize; 2] = [0, 16];

/// Returns the bytes per thread that a kernel of a plan may spill before another takes its place.
pub fn slight_spills(plan: &Plan) -> usize {
    plan.warp_streaming().map_or(0, |streaming| SLIGHT_SPILLS[usize::from(streaming.window()[0] > 1)])
}

/// The bytes per thread up to which another text of the same configuration may do without spills: texts differ by a few
/// tens of bytes.
const NEARLY_FITS: usize = 64;

/// Compiles a streaming plan and, where the report shows few spills, what stays the same plan: copies' places
/// summed the other way, and each pass a launch of its own where passes are chained.
fn fit_stream(plan: &Plan, compile: &Compile<'_>) -> Result<Fitted> {
    let unchained = plan.unchained();
    let others =
        [plan.with_other_sums(), unchained.clone(), unchained.as_ref().and_then(Plan::with_other_sums)];
    let mut best = compile(plan)?;
    for other in others.into_iter().flatten() {
        if !(1..=NEARLY_FITS).contains(&best.spilled()) {
            break;
        }
        best = best.or_less(compile(&other)?);
    }
    Ok(best)
}

/// Compiles one streaming plan, and no other in its place: what tuning times.
pub fn fit_stream_alone(
    nvrtc: &Nvrtc,
    problem: &Problem,
    plan: &Plan,
    target: &str,
) -> Result<(Plan, Cubin)> {
    let compile = |plan: &Plan| compiled(nvrtc, problem, plan, target);
    let Fitted { plan, cubin } = fit_stream(plan, &compile)?;
    Ok((plan, cubin))
}

/// Moves planes of a resident plan from registers to shared memory, one of eight at a time, while the report shows spills
/// and there is room. `first` is the plan as it was compiled.
fn fit_resident(
    problem: &Problem,
    plan: &Plan,
    planned: usize,
    first: Fitted,
    compile: &Compile<'_>,
) -> Result<(Plan, Cubin)> {
    let mut best = first;
    let (mut planes, mut given_up) = (planned, 0);
    while best.spilled() > 0 && planes > 0 {
        planes -= (planned / 8).clamp(1, planes);
        let Some(fewer) = with_resident_registers(plan, problem, planes) else { break };
        let tried = compile(&fewer)?;
        if tried.spilled() < best.spilled() {
            (best, given_up) = (tried, planned - planes);
        }
    }
    Ok(noted(best, given_up))
}

fn compile(nvrtc: &Nvrtc, problem: &Problem, plan: &Plan, target: &str) -> Result<Cubin> {
    cache::compile(nvrtc, &cuda::kernel(problem, plan)?, target, &cuda::COMPILE_OPTIONS)
}

/// The most streaming plans that are compiled in search of one that does not spill.
const STREAMS_TRIED: usize = 8;

/// Returns streaming plans of other configurations, in order of their estimates, the least first; as deep as
/// `plan` where its depth was asked for.
fn other_streams(problem: &Problem, plan: &Plan) -> Vec<Plan> {
    // Devices whose passes give planes to each other go through as many steps.
    let asked = plan.warp_streaming().is_some_and(|stream| stream.edges.is_some() || stream.depth_asked);
    let depth = if asked { Depth::Steps(plan.depth) } else { Depth::Auto };
    let options = Options { depth, ..Options::default() };
    let shape = |plan: &Plan| {
        plan.warp_streaming().map(|stream| Configuration { waves: 0, ..stream.configuration() })
    };
    let mut shapes = vec![shape(plan)];
    // Plans can be made, because one was made before.
    let all = streaming_plans(problem, &plan.device, &options).unwrap_or_default();
    let fresh = all.into_iter().filter_map(|other| other.giving_as(plan)).filter(|other| {
        let shape = shape(other);
        let is_fresh = !shapes.contains(&shape);
        shapes.push(shape);
        is_fresh
    });
    fresh.take(STREAMS_TRIED).collect()
}

/// Returns a compiled plan with notes on the changes that the compiler's report made necessary.
fn noted(fitted: Fitted, given_up: usize) -> (Plan, Cubin) {
    let spilled = fitted.spilled();
    let Fitted { mut plan, cubin } = fitted;
    let fewer = (given_up > 0).then(|| {
        format!("{given_up} planes fewer in registers than modelled, for the compiler's report showed spills")
    });
    let spills = (spilled > 0).then(|| {
        format!(
            "the kernel spills {spilled} bytes per thread to local memory: the formula needs more registers than a thread has"
        )
    });
    // A plan that was compiled before has its notes.
    for note in fewer.into_iter().chain(spills) {
        if !plan.notes.contains(&note) {
            plan.notes.push(note);
        }
    }
    (plan, cubin)
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

/// Returns the compiler's report of a plan's kernels as they stand, spills and all; needs no device.
pub fn report_as_planned(problem: &Problem, plan: &Plan, target: &str) -> Result<Vec<Compiled>> {
    Ok(compile(&Nvrtc::open()?, problem, plan, target)?.report)
}

/// Returns the compiler's report of the kernels that run for a plan, for any target that the compiler knows;
/// needs no device.
pub fn report(problem: &Problem, plan: &Plan, target: &str) -> Result<Vec<Compiled>> {
    Ok(fit(&Nvrtc::open()?, problem, plan, target)?.0.compiled)
}

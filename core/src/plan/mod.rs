//! Plans: how a device will run a problem, decided before anything is allocated, printable and testable
//! anywhere.
//!
//! A GPU has four schedules: [`Stepwise`], a launch per stage; [`Overlapped`], overlapped tiling, where each
//! launch advances several steps and recomputes the halo; 2.5-D streaming with temporal blocking, in a form
//! for warps ([`WarpStreaming`]) and a portable one ([`PortableStreaming`]); [`Persistent`], tiles that stay
//! on the chip for the whole run. A CPU ([`Cpu`]) runs stepwise, streaming or persistent. The papers' models
//! of streaming and persistent kernels are in [`papers`].

mod batch;
mod candidates;
mod cpu;
pub(crate) mod description;
#[cfg(test)]
mod figures;
pub mod fused;
mod general;
mod launch;
mod lowering;
mod measured;
mod options;
pub mod overlapped;
pub mod papers;
mod passes;
pub mod persistent;
mod persistent_program;
mod portable;
mod ranks;
mod recipe;
pub mod resident;
mod stepwise;
pub mod streaming;
mod tables;

use serde::Serialize;

use crate::backend::Advances;
use crate::device::DeviceSpec;
use crate::domain::{Boundaries, Shape};
use crate::error::{Error, Result};
use crate::program::{Boxes, Problem};
use crate::real::DType;
use papers::perks;

pub use batch::{Batched, Order, plan_batch, plan_members};
pub use candidates::candidates;
pub use cpu::{
    Cpu, Level, Levels, MAX_CPU_DEPTH, Output, Ring, Tiling, across, is_too_small_to_choose, plan_cpu,
};
pub use general::{plan_grouped, plan_searched};
pub(crate) use launch::{ARITHMETIC, MEMORY_SHARE};
pub use measured::Measured;
pub(crate) use options::named;
pub use options::{
    CachePolicy, Depth, Exchanging, Execution, Fuse, Jam, LoopRows, Lowering, Options, Placement, Team, Tune,
};
pub use overlapped::{Overlapped, overlapped_plans, plan_overlapped};
pub use persistent::{MAX_PERSISTENT_RADIUS, Persistent, Synchronisation, persistent_plans, plan_persistent};
pub use persistent_program::{PersistentProgram, plan_persistent_program};
pub use portable::{plan_portable, portable_candidates};
pub use ranks::{Alike, Devices, Ranks, plan_ranks};
pub use recipe::Recipe;
pub use resident::{Resident, plan_resident, resident_plans};
pub use stepwise::{Stepwise, plan_stepwise, staged_fields};
pub use streaming::portable::{PortableStreaming, plan_portable_streaming, portable_streaming_plans};
pub use streaming::warp::{WarpStreaming, plan_streaming, streaming_plans};
pub use tables::PlacedTable;

/// How the cells are divided among threads and places.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// A CPU's threads.
    Cpu(Cpu),
    /// A launch per stage.
    Stepwise(Stepwise),
    /// Overlapped tiling: several steps per launch, the halo recomputed.
    Overlapped(Overlapped),
    /// 2.5-D streaming with temporal blocking, by warps on CUDA.
    WarpStreaming(WarpStreaming),
    /// 2.5-D streaming with temporal blocking, on any GPU.
    PortableStreaming(PortableStreaming),
    /// Tiles that stay on the chip for the whole run (PERKS), which may hold a part of the domain.
    Persistent(Persistent),
    /// Tiles that hold the whole domain for the whole run, several steps between exchanges.
    Resident(Resident),
    /// All steps of a program that is not plain in one kernel.
    PersistentProgram(PersistentProgram),
}

/// The compiler's report on one kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Compiled {
    /// The kernel's name.
    pub kernel: String,
    /// The target, as in `sm_90`.
    pub target: String,
    /// Registers per thread.
    pub registers: usize,
    /// Bytes per thread that are stored to and loaded from local memory for want of registers.
    pub spill_bytes: usize,
}

impl Compiled {
    /// Returns the most bytes per thread that any kernel of a report spills; `None` if it has no kernel.
    pub fn most_spilled(report: &[Compiled]) -> Option<usize> {
        report.iter().map(|kernel| kernel.spill_bytes).max()
    }
}

/// How a device will run a problem.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// The program's name.
    pub program: String,
    /// The domain.
    pub shape: Shape,
    /// The type of all fields.
    pub dtype: DType,
    /// The boundaries.
    pub boundaries: Boundaries,
    /// The device planned for.
    pub device: DeviceSpec,
    /// The execution that was chosen; never `auto`.
    pub execution: Execution,
    /// Where a persistent run keeps its cells from step to step; `none` for any other execution.
    pub cache: CachePolicy,
    /// Steps per pass over the domain.
    pub depth: u32,
    /// The division among threads.
    pub schedule: Schedule,
    /// The bytes and operations of a step, for [`Plan::project`].
    pub traffic: perks::Traffic,
    /// The planner's own estimate in seconds per step, by which plans are chosen. It is coarser than a
    /// measurement, and no bound. 0 where there is nothing to choose.
    pub estimated_seconds: f64,
    /// How the members of a batch share the device, where the problem is one; all else is said of each member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<Batched>,
    /// The slabs, where several devices advance the domain. All other members, except the domain, then describe the
    /// slab of one device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranks: Option<Ranks>,
    /// The compiler's reports, one per kernel; empty until the plan is compiled.
    pub compiled: Vec<Compiled>,
    /// The differences from the request, with their reasons.
    pub notes: Vec<String>,
}

impl Plan {
    /// Returns the share of the domain's cells that stay on the chip between steps, 0 to 1.
    pub fn cached_share(&self) -> f64 {
        self.traffic.cached_share()
    }

    /// Projects the peak of a run of `steps` steps that never halts.
    pub fn project(&self, steps: u64) -> perks::Projection {
        self.project_advances(&Advances::one(steps))
    }

    /// Projects the peak of a run that halts between these advances.
    pub fn project_advances(&self, advances: &Advances) -> perks::Projection {
        self.of_all(perks::project_advances(&self.traffic, &self.device, &self.cut(advances)))
    }

    /// Returns the advances of a device: several devices halt where they exchange, too.
    pub(crate) fn cut(&self, advances: &Advances) -> Advances {
        match &self.ranks {
            Some(ranks) => advances.cut(u64::from(ranks.depth)),
            None => advances.clone(),
        }
    }

    /// Checks that the plan is for this problem, before any backend uses the plan with it.
    ///
    /// # Errors
    ///
    /// Those of [`Problem::check`]; [`Error::Invalid`] where the plan is for another program, domain, type or
    /// boundary.
    pub fn check(&self, problem: &Problem) -> Result<()> {
        problem.check()?;
        self.check_members(problem)?;
        let own = (&*self.program, self.shape, self.dtype, self.boundaries);
        let other = (problem.program.name(), problem.shape, problem.dtype, problem.boundaries);
        // Two programs of the same name may still differ in their stages.
        let stages = self.stages().is_none_or(|s| s.shared_bytes.len() == problem.program.stages().len());
        if own == other && stages {
            // A kernel of a group reads what the groups before it have made; some stages may be in parts.
            return match self.stages().filter(|stepwise| !stepwise.partition.steps.is_empty()) {
                Some(stepwise) => {
                    let split = stepwise.partition.split_problem(problem)?;
                    stepwise.partition.groups().check(&split, &Boxes::of(&split)?)
                }
                None => Ok(()),
            };
        }
        let [own, other] = [own, other].map(|(program, shape, dtype, boundaries)| {
            format!("{program} on {shape} {dtype}, boundary {}", boundaries.describe(3))
        });
        let reason = format!("it is for {own}, the problem is {other}");
        Err(Error::invalid("plan", reason, "make a plan for this problem"))
    }

    /// Returns the problem whose stages the plan's tiles and groups are of: the user's, with those stages in parts that the
    /// plan runs so.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] where the plan is of another program.
    pub fn split_problem(&self, problem: &Problem) -> Result<Problem> {
        match self.stages() {
            Some(tiles) => tiles.partition.split_problem(problem),
            None => Ok(problem.clone()),
        }
    }

    /// Returns the tiles of a persistent plan.
    pub fn persistent(&self) -> Option<&Persistent> {
        match &self.schedule {
            Schedule::Persistent(persistent) => Some(persistent),
            _ => None,
        }
    }

    /// Returns the tiles of a plan that keeps the whole domain on the chip.
    pub fn resident(&self) -> Option<&Resident> {
        match &self.schedule {
            Schedule::Resident(resident) => Some(resident),
            _ => None,
        }
    }

    /// Returns the windows of a streaming plan by warps.
    pub fn warp_streaming(&self) -> Option<&WarpStreaming> {
        match &self.schedule {
            Schedule::WarpStreaming(streaming) => Some(streaming),
            _ => None,
        }
    }

    /// Returns the windows of a streaming plan on any GPU.
    pub fn portable_streaming(&self) -> Option<&PortableStreaming> {
        match &self.schedule {
            Schedule::PortableStreaming(streaming) => Some(streaming),
            _ => None,
        }
    }

    /// Returns the windows of a plan by overlapped tiling.
    pub fn overlapped(&self) -> Option<&Overlapped> {
        match &self.schedule {
            Schedule::Overlapped(overlapped) => Some(overlapped),
            _ => None,
        }
    }

    /// Returns the tiles of a stepwise plan on a GPU.
    pub fn stepwise(&self) -> Option<&Stepwise> {
        match &self.schedule {
            Schedule::Stepwise(stepwise) => Some(stepwise),
            _ => None,
        }
    }
}

/// Plans for a device whose kernels run stepwise, streaming or persistent: what `options` ask for, or the
/// faster by the planner's estimate where they leave it open. A problem that is not plain runs a launch per
/// stage or group of stages, or as one persistent kernel where that is asked for.
pub fn plan(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Plan> {
    if let Some(plan) = lowering::plan_loops(problem, device, options) {
        return plan;
    }
    if problem.is_batch() {
        return plan_batch(problem, device, options, |member| plan(member, device, options));
    }
    if !problem.is_plain() {
        if options.execution == Execution::Persistent {
            return plan_persistent_program(problem, device, options);
        }
        let mut plan = plan_stepwise(problem, device, options)?;
        if options.execution == Execution::Auto {
            persistent_program::compare(problem, &mut plan);
        }
        return Ok(plan);
    }
    match options.execution {
        Execution::Stepwise => plan_stepwise(problem, device, options),
        Execution::Persistent => plan_on_chip(problem, device, options),
        Execution::Streaming => plan_streaming(problem, device, options),
        Execution::Overlapped => Err(Error::unsupported(
            device.name.clone(),
            "overlapped tiling is for devices whose warps and registers cannot be planned",
            "use --execution streaming",
        )),
        Execution::Auto => fastest(problem, device, options),
    }
}

/// Returns the persistent plans that the options leave open, the least estimate first: of a cache policy that is
/// asked for, or else also those that hold the whole domain, which are the only ones with a depth.
///
/// # Errors
///
/// Those of [`persistent_plans`] or, where a depth is asked for, of [`plan_resident`].
pub fn on_chip_plans(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Vec<Plan>> {
    if options.cache != CachePolicy::Auto {
        return persistent_plans(problem, device, options);
    }
    if let Depth::Steps(2..) = options.depth {
        let plans = resident_plans(problem, device, options)?;
        return if plans.is_empty() { Err(resident::too_large(problem, device, options)) } else { Ok(plans) };
    }
    // Some stencils are for one of the two forms alone.
    let resident = resident_plans(problem, device, options).unwrap_or_default();
    let mut plans = match persistent_plans(problem, device, options) {
        Err(_) if !resident.is_empty() => Vec::new(),
        plans => plans?,
    };
    // Small cubes are faster with all their planes in registers, or with none kept at all.
    for cache in [CachePolicy::Registers, CachePolicy::None] {
        plans.extend(persistent_plans(problem, device, &Options { cache, ..*options }).unwrap_or_default());
    }
    plans.extend(resident);
    plans.sort_by(|a, b| a.estimated_seconds.total_cmp(&b.estimated_seconds));
    Ok(plans)
}

/// Plans a persistent kernel: the first of [`on_chip_plans`].
pub fn plan_on_chip(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Plan> {
    match on_chip_plans(problem, device, options)?.into_iter().next() {
        Some(plan) => Ok(plan),
        None => plan_persistent(problem, device, options),
    }
}

/// Returns the plan with the least estimate of those that the options leave open. A cache policy asks for a
/// persistent kernel, a depth for one of several steps per launch or exchange.
fn fastest(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Plan> {
    let mut best = if matches!(options.depth, Depth::Auto | Depth::Steps(1)) {
        plan_stepwise(problem, device, options)
    } else {
        plan_streaming(problem, device, options)
    };
    let wants_cache = options.cache != CachePolicy::Auto;
    let keeps_loops = |plan: &Plan| plan.stepwise().is_some_and(|stepwise| stepwise.lowering.keeps_loops());
    if !wants_cache && best.as_ref().is_ok_and(keeps_loops) {
        // All other kernels would write out each turn of formulas that are too long for it.
        return best;
    }
    let mut notes = Vec::new();
    let mut consider = |kernel: &str, other: Result<Plan>, wanted: bool| match (&best, other) {
        (Ok(plan), Ok(other)) if wanted || other.estimated_seconds < plan.estimated_seconds => {
            best = Ok(other)
        }
        (Err(_), Ok(other)) => best = Ok(other),
        (_, Err(why)) => notes.push(format!("not {kernel} because that cannot be: {why}")),
        _ => {}
    };
    if !wants_cache {
        consider("streaming", plan_streaming(problem, device, options), false);
    }
    consider("persistent", plan_on_chip(problem, device, options), wants_cache);
    let mut plan = best?;
    plan.notes.extend(notes);
    Ok(plan)
}

/// Makes a plan of the parts that all schedules share.
fn base(
    problem: &Problem,
    device: &DeviceSpec,
    execution: Execution,
    schedule: Schedule,
    traffic: perks::Traffic,
) -> Plan {
    Plan {
        program: problem.program.name().to_owned(),
        shape: problem.shape,
        dtype: problem.dtype,
        boundaries: problem.boundaries,
        device: device.clone(),
        execution,
        cache: CachePolicy::None,
        depth: 1,
        schedule,
        traffic,
        estimated_seconds: 0.0,
        batch: None,
        ranks: None,
        compiled: Vec::new(),
        notes: problem.note_of_coefficients().into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::catalogue;
    use crate::domain::Boundary;

    fn problem(name: &str, extents: &[usize], dtype: DType) -> Problem {
        let program = catalogue::find(name).unwrap().program(extents.len()).unwrap();
        Problem::new(Arc::new(program), Shape::new(extents).unwrap(), dtype).unwrap()
    }

    #[test]
    fn a_plan_for_another_problem_is_refused() {
        let device = DeviceSpec::preset("h200").unwrap();
        let own = problem("2d5pt", &[99, 101], DType::F64);
        let mut walled = own.clone();
        walled.boundaries = Boundaries::all(Boundary::Mirror);
        let others = [
            problem("2d9pt", &[99, 101], DType::F64),
            problem("2d5pt", &[101, 99], DType::F64),
            problem("2d5pt", &[99, 101], DType::F32),
            problem("gray-scott", &[99, 101], DType::F64),
            walled,
        ];
        for plan in [plan_stepwise, plan_streaming, plan_persistent, plan_overlapped, plan_cpu] {
            let plan = plan(&own, &device, &Options::default()).unwrap();
            assert_eq!(plan.check(&own), Ok(()));
            for other in &others {
                let error = plan.check(other).unwrap_err().to_string();
                assert!(error.contains("it is for 2d5pt on 99x101 f64, boundary fixed"), "{error}");
            }
        }
    }
}

//! Plans: how a device will run a problem, decided before anything is allocated, printable and testable anywhere.
//!
//! Six schedules: [`Rows`] for CPUs, a stage at a time or several steps in tiles ([`Wavefront`]), [`Tiles`] for a launch a
//! stage on any GPU, [`Blocks`] and [`Planes`] for several steps a launch on any GPU, [`Sweep`] for persistent kernels that
//! keep planes of their tile on the chip, [`Stream`] for kernels that advance several steps a pass over the domain. [`perks`] projects what
//! the hardware would allow at best, [`ebisu`] what it allows the last.

pub mod blocks;
mod dispatches;
pub mod ebisu;
mod explain;
pub mod krylov;
mod measured;
mod neighbours;
mod options;
pub mod perks;
pub mod planes;
mod portable;
mod recipe;
mod rows;
pub mod stream;
pub mod sweep;
mod tiles;

use serde::Serialize;

use crate::device::DeviceSpec;
use crate::error::Result;
use crate::grid::{Boundaries, Shape};
use crate::program::Problem;
use crate::real::DType;

pub use blocks::{Blocks, blocks_plans, plan_blocks};
pub use dispatches::{Dispatches, Effort, plan_dispatches};
pub use measured::Measured;
pub use neighbours::neighbours;
pub(crate) use options::named;
pub use options::{CachePolicy, Depth, Execution, Options, Tune};
pub use planes::{Planes, plan_planes, planes_plans};
pub use portable::{plan_portable, portable_neighbours};
pub use recipe::Recipe;
pub use rows::{
    Level, Levels, MAX_CPU_DEPTH, Output, Ring, Rows, Wavefront, across, is_too_small_to_choose, plan_rows,
};
pub use stream::{Stream, plan_stream, stream_plans};
pub use sweep::{Axes, MAX_SWEEP_RADIUS, Sweep, Synchronisation, plan_sweep, sweep_plans};
pub use tiles::{Tiles, plan_tiles, staged_fields};

/// How the cells are divided among threads and places.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Schedule {
    /// Rows of cells, on a CPU.
    Rows(Rows),
    /// Tiles, a launch a stage.
    Tiles(Tiles),
    /// Windows of a tile and its halo, several steps a launch.
    Blocks(Blocks),
    /// Planes that stream through windows, several steps a launch on any GPU.
    Planes(Planes),
    /// Tiles that blocks own for the whole run and sweep plane by plane.
    Sweep(Sweep),
    /// Windows through which planes stream, several steps a launch, by warps on CUDA.
    Stream(Stream),
}

/// What the compiler said of one kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Compiled {
    /// The kernel.
    pub kernel: String,
    /// The target, as in `sm_90`.
    pub target: String,
    /// Registers a thread.
    pub registers: usize,
    /// Bytes a thread stores to and loads from local memory for want of registers.
    pub spill_bytes: usize,
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
    /// Stepwise or persistent.
    pub execution: Execution,
    /// Where a persistent run keeps its cells from step to step; `none` for a stepwise one.
    pub cache: CachePolicy,
    /// Steps of a pass over the domain.
    pub depth: u32,
    /// The division among threads.
    pub schedule: Schedule,
    /// What a step moves and computes, for [`Plan::project`].
    pub traffic: perks::Traffic,
    /// The planner's own estimate of a step in seconds, coarser than a measurement and no bound: by it plans are chosen.
    /// 0 where there is nothing to choose.
    pub estimated_seconds: f64,
    /// The compiler's report, once there is one.
    pub compiled: Vec<Compiled>,
    /// What differs from the request, and why.
    pub notes: Vec<String>,
}

impl Plan {
    /// The share of the domain's cells that stay on the chip between steps, 0 to 1.
    pub fn cached_share(&self) -> f64 {
        self.traffic.cached_share()
    }

    /// The projected peak for a number of steps.
    pub fn project(&self, steps: u64) -> perks::Projection {
        perks::project(&self.traffic, &self.device, steps)
    }

    /// The sweep of a persistent plan.
    pub fn sweep(&self) -> Option<&Sweep> {
        match &self.schedule {
            Schedule::Sweep(sweep) => Some(sweep),
            _ => None,
        }
    }

    /// The windows of a streaming plan.
    pub fn stream(&self) -> Option<&Stream> {
        match &self.schedule {
            Schedule::Stream(stream) => Some(stream),
            _ => None,
        }
    }

    /// The windows of a plan of several steps a launch on any GPU.
    pub fn blocks(&self) -> Option<&Blocks> {
        match &self.schedule {
            Schedule::Blocks(blocks) => Some(blocks),
            _ => None,
        }
    }

    /// The streaming planes of a plan of several steps a launch on any GPU.
    pub fn planes(&self) -> Option<&Planes> {
        match &self.schedule {
            Schedule::Planes(planes) => Some(planes),
            _ => None,
        }
    }

    /// The tiles of a stepwise plan on a GPU.
    pub fn tiles(&self) -> Option<&Tiles> {
        match &self.schedule {
            Schedule::Tiles(tiles) => Some(tiles),
            _ => None,
        }
    }
}

/// Plans for a device that can run both schedules: what `options` ask for, or the faster by the planner's estimate where
/// they leave it open.
pub fn plan(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Plan> {
    match options.execution {
        Execution::Stepwise => plan_tiles(problem, device, options),
        Execution::Persistent => plan_sweep(problem, device, options),
        Execution::Streaming => plan_stream(problem, device, options),
        Execution::Auto => fastest(problem, device, options),
    }
}

/// The plan with the least estimate of those that the options leave open: a cache policy is a persistent kernel's, a depth
/// a streaming one's.
fn fastest(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Plan> {
    if !matches!(options.depth, Depth::Auto | Depth::Steps(1)) {
        return plan_stream(problem, device, options);
    }
    let mut best = plan_tiles(problem, device, options);
    let mut notes = Vec::new();
    let mut consider = |kernel: &str, other: Result<Plan>, wanted: bool| match (&best, other) {
        (Ok(plan), Ok(other)) if wanted || other.estimated_seconds < plan.estimated_seconds => best = Ok(other),
        (Err(_), Ok(other)) => best = Ok(other),
        (_, Err(why)) => notes.push(format!("not {kernel}, for that cannot: {why}")),
        _ => {}
    };
    let wants_cache = options.cache != CachePolicy::Auto;
    if !wants_cache {
        consider("streaming", plan_stream(problem, device, options), false);
    }
    consider("persistent", plan_sweep(problem, device, options), wants_cache);
    let mut plan = best?;
    plan.notes.extend(notes);
    Ok(plan)
}

/// The parts of a plan that all schedules share.
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
        compiled: Vec::new(),
        notes: Vec::new(),
    }
}

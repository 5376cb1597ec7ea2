//! 2.5-D streaming with temporal blocking, the warp form for CUDA: each launch advances several steps while
//! every plane of the domain passes through the chip once.
//!
//! A block owns a window across the swept axis and streams along it. The stages of `depth` steps stand behind
//! one another. Each stage turns the plane that arrives into a plane of its result and keeps partial sums
//! ([`carry`](super::carry)). Windows overlap because cells near their sides go wrong by a radius per stage
//! (the SM tiling of EBISU, Zhang et al., ICS'23). Along the fastest axis a window is as wide as a warp.

mod candidates;
mod description;
mod estimate;
#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::device::{Capability, DeviceSpec};
use crate::domain::Axes;
use crate::error::{Error, Result};
use crate::plan::papers::ebisu::{Costs, sufficient_depth};
use crate::plan::{CachePolicy, Depth, Execution, Options, Plan, Schedule, base};
use crate::program::Problem;

pub use self::candidates::Configuration;
use self::candidates::{Demand, candidates, streaming};
use self::estimate::{pass_seconds, traffic};
use super::carry::Carry;

/// Windows that stream. Pairs are (slower, faster) axis of a plane, triples (swept, slower, faster).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WarpStreaming {
    /// Steps per launch.
    pub depth: usize,
    /// Whether the depth was asked for, rather than chosen by the planner.
    pub depth_asked: bool,
    /// Warps per block, one above another along the slower axis of a plane.
    pub warps: usize,
    /// Cells of a plane that a thread owns.
    pub cells_per_thread: [usize; 2],
    /// Cells along each axis that go wrong at a side of a window where the domain goes on.
    pub margin: [usize; 3],
    /// Windows of the domain along the two axes of a plane.
    pub tiles: [usize; 2],
    /// Blocks per launch: the planes of all windows are cut into so many shares of equal cost.
    pub shares: usize,
    /// The cost of all planes of a window that meets no boundary across, and of a window that does: in
    /// shares, or relative to each other.
    pub window_costs: [usize; 2],
    /// The additional cost of beginning with a window, in planes, if a share may have planes of several
    /// windows.
    pub fill: usize,
    /// Whether a stage takes what the stage before it made a plane ago, instead of just now. Then one barrier
    /// per plane serves all stages, and they do not wait for each other.
    pub lag: bool,
    /// Planes of the input in shared memory: one in use, the others on their way.
    pub ahead: usize,
    /// Values per cell and stage that are carried from plane to plane in registers.
    pub carried_registers: usize,
    /// Values per cell and stage that are carried in shared memory.
    pub carried_shared: usize,
    /// Blocks resident on one multiprocessor.
    pub blocks_per_multiprocessor: usize,
    /// Blocks launched per resident block.
    pub waves: usize,
    /// Bytes of dynamic shared memory of a block.
    pub shared_bytes: usize,
    /// Registers that a thread may use.
    pub registers: usize,
    /// The share of the computed cells that are kept; less than 1 because windows overlap. It is the valid
    /// portion V of EBISU (eq. 9).
    pub valid: f64,
    /// The depth, in steps, beyond which device memory would no longer be the bottleneck if all else were at
    /// its peak (EBISU, eq. 17).
    pub sufficient_depth: f64,
}

impl WarpStreaming {
    /// Returns the cells of a window's plane along its two axes.
    pub fn window(&self) -> [usize; 2] {
        [self.warps * self.cells_per_thread[0], 32 * self.cells_per_thread[1]]
    }

    /// Returns the threads of a block.
    pub fn threads_per_block(&self) -> usize {
        32 * self.warps
    }

    /// Returns the free choices of the windows.
    pub fn configuration(&self) -> Configuration {
        Configuration {
            depth: self.depth,
            warps: self.warps,
            cells_per_thread: self.cells_per_thread,
            lag: self.lag,
            ahead: self.ahead,
            carried_shared: self.carried_shared,
            blocks_per_multiprocessor: self.blocks_per_multiprocessor,
            waves: self.waves,
        }
    }
}

/// The largest radius for boundaries whose ghost cells show cells of this side: a single ghost cell shows the
/// cell beside it.
const SHOWN_RADIUS: usize = 1;

/// Plans streaming for a device: the first of [`streaming_plans`].
pub fn plan_streaming(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Plan> {
    let plans = streaming_plans(problem, device, options)?;
    plans.into_iter().next().ok_or_else(|| {
        let depth = match options.depth {
            Depth::Auto => "1 step deep".to_owned(),
            Depth::Steps(steps) => format!("{steps} steps deep"),
        };
        Error::limit(
            "windows, registers and shared memory of a streaming kernel",
            format!(
                "{} fields of radius {:?} on {}, {depth}",
                problem.program.fields().len(),
                problem.program.radius(),
                problem.shape,
            ),
            format!(
                "windows of {} registers and {} bytes per multiprocessor, whose margins no periodic axis is shorter than",
                device.registers.unwrap_or(0),
                device.shared_bytes
            ),
            "use a smaller --depth, or --execution stepwise",
        )
    })
}

/// Returns all plans of streaming kernels that fit a device, the one that the model finds fastest first.
pub fn streaming_plans(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Vec<Plan>> {
    problem.check()?;
    device.require(Capability::Warps, "a streaming kernel")?;
    if !matches!(options.cache, CachePolicy::Auto) {
        return Err(Error::invalid(
            format!("--cache {} with --execution streaming", options.cache),
            "a streaming kernel keeps no cell from launch to launch",
            "leave --cache at auto, or use --execution persistent",
        ));
    }
    let radius = problem.program.radius();
    if let Some((axis, side)) = problem.boundaries.first_that_shows(|axis| radius[axis] > SHOWN_RADIUS) {
        return Err(Error::limit(
            format!("radius along an axis with a {side} boundary in a streaming kernel"),
            radius[axis],
            SHOWN_RADIUS,
            "use --execution persistent or stepwise",
        ));
    }
    let demand = Demand::of(problem);
    let mut streams: Vec<(f64, WarpStreaming)> = candidates(&demand, device, options.depth)
        .into_iter()
        .map(|streaming| {
            (pass_seconds(problem, device, &demand, &streaming) / streaming.depth as f64, streaming)
        })
        .collect();
    // Of two with the same estimate, prefer the one whose levels do not wait for each other.
    streams.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.lag.cmp(&a.1.lag)));
    let depth_asked = options.depth != Depth::Auto;
    let plan = |(estimate, streaming)| {
        plan_of(problem, device, WarpStreaming { depth_asked, ..streaming }, estimate)
    };
    Ok(streams.into_iter().map(plan).collect())
}

/// Returns the plan of a configuration; `None` if it does not fit.
pub fn plan_configuration(
    problem: &Problem,
    device: &DeviceSpec,
    configuration: &Configuration,
) -> Option<Plan> {
    let demand = Demand::of(problem);
    let streaming = streaming(&demand, device, configuration)?;
    let estimate = pass_seconds(problem, device, &demand, &streaming) / streaming.depth as f64;
    Some(plan_of(problem, device, streaming, estimate))
}

fn plan_of(problem: &Problem, device: &DeviceSpec, mut streaming: WarpStreaming, estimate: f64) -> Plan {
    let costs = Costs::of(&problem.program, problem.dtype, streaming.cells_per_thread[0]);
    // A device that tells no rate of shared memory or arithmetic has no such depth.
    streaming.sufficient_depth = sufficient_depth(&costs, device).unwrap_or(f64::INFINITY);
    let traffic = traffic(problem, device, &streaming);
    let depth = streaming.depth;
    let mut plan = base(problem, device, Execution::Streaming, Schedule::WarpStreaming(streaming), traffic);
    plan.depth = depth as u32;
    plan.estimated_seconds = estimate;
    plan
}

/// Returns the stages of a problem's program, cut for streaming. The program is simplified first, as it is
/// for kernels.
pub fn carries(problem: &Problem) -> Vec<Carry> {
    let program = problem.program.simplified(problem.dtype);
    let axes = Axes::of(problem.shape.dimensions());
    program.stages().iter().map(|stage| Carry::of(stage, program.fields().len(), axes)).collect()
}

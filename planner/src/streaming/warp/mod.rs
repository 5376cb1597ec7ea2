//! Plans of 2.5-D streaming with temporal blocking in the warp form for CUDA.

mod candidates;
mod estimate;
#[cfg(test)]
mod tests;

use abide_core::device::Capability;
use abide_core::plan::streaming::warp::Configuration;
use abide_core::plan::{Schedule, WarpStreaming};
use abide_core::{CachePolicy, Depth, DeviceSpec, Error, Execution, Options, Plan, Problem, Result};

use self::candidates::{candidates, streaming};
use self::estimate::step_seconds;
use super::requirement::{Demand, Limits};
use crate::limits::refuse_others;
use crate::papers::ebisu::{Costs, sufficient_depth};
use crate::passes::{self, fastest_first};

/// The limits of kernels.
const LIMITS: Limits = Limits {
    form: "a streaming kernel",
    lines: true,
    shows: true,
    change: "use --execution persistent or stepwise",
};

/// Plans streaming for a device: the first of [`streaming_plans`].
pub fn plan_streaming(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Plan> {
    let plans = streaming_plans(problem, device, options)?;
    plans.into_iter().next().ok_or_else(|| {
        let what = "windows, registers and shared memory of a streaming kernel".to_owned();
        let room = format!(
            "windows of {} registers and {} bytes per multiprocessor, whose margins no periodic axis is shorter than",
            device.registers.unwrap_or(0),
            device.shared_bytes
        );
        passes::no_room(what, problem, problem.shape.to_string(), options.depth, room)
    })
}

/// Returns all plans of streaming kernels that fit a device, the one that the model finds fastest first.
pub fn streaming_plans(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Vec<Plan>> {
    problem.check()?;
    refuse_others(problem, device, &Options { execution: Execution::Streaming, ..*options })?;
    device.require(Capability::Warps, "a streaming kernel")?;
    if !matches!(options.cache, CachePolicy::Auto) {
        return Err(Error::invalid(
            format!("--cache {} with --execution streaming", options.cache),
            "a streaming kernel keeps no cell from launch to launch",
            "leave --cache at auto, or use --execution persistent",
        ));
    }
    LIMITS.check(problem)?;
    let demand = Demand::of(problem);
    if let Some([shown, most]) = demand.mirrored_late() {
        let what = "planes that ghost planes before the first show to a stage";
        return Err(Error::limit(what, shown, most, LIMITS.change));
    }
    let depth_asked = options.depth != Depth::Auto;
    let mut found: Vec<(f64, WarpStreaming)> = candidates(&demand, device, options.depth)
        .into_iter()
        .map(|streaming| (step_seconds(&demand, device, &streaming), streaming))
        .collect();
    // Of two with the same estimate, prefer the one whose levels do not wait for each other.
    found.sort_by_key(|(_, streaming)| !streaming.lag);
    Ok(fastest_first(found, |(estimate, streaming)| {
        plan_of(problem, device, WarpStreaming { depth_asked, ..streaming }, estimate)
    }))
}

/// Returns the plan of a configuration; `None` if it does not fit.
pub fn plan_configuration(
    problem: &Problem,
    device: &DeviceSpec,
    configuration: &Configuration,
) -> Option<Plan> {
    let demand = Demand::of(problem);
    let streaming = streaming(&demand, device, configuration)?;
    let estimate = step_seconds(&demand, device, &streaming);
    Some(plan_of(problem, device, streaming, estimate))
}

/// The longest pass, in seconds, whose successor is worth a wait in the kernel. On an H200 a pass of 30 to 60 µs gains 3 to
/// 10 % by it; a longer one gains nothing, and registers are lost.
const LONGEST_CHAINED: f64 = 1e-4;

fn plan_of(problem: &Problem, device: &DeviceSpec, mut streaming: WarpStreaming, estimate: f64) -> Plan {
    streaming.chained &= estimate * (streaming.depth as f64) < LONGEST_CHAINED;
    let costs = Costs::of(&problem.program, problem.dtype, streaming.cells_per_thread[0]);
    // A device that reports no rate of shared memory or arithmetic has no such depth.
    streaming.sufficient_depth = sufficient_depth(&costs, device).unwrap_or(f64::INFINITY);
    let depth = streaming.depth;
    let schedule = (Execution::Streaming, Schedule::WarpStreaming(streaming));
    passes::plan_of(problem, device, schedule, depth, estimate)
}

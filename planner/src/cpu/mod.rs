//! Plans of a CPU, whose threads share rows of cells.

#[cfg(test)]
mod tests;
mod tiling;

use abide_core::plan::traffic::Traffic;
use abide_core::plan::{Cpu, Schedule};
use abide_core::{CachePolicy, Depth, DeviceSpec, Error, Execution, Fuse, Options, Plan, Problem, Result};

use crate::base::base;
use crate::limits::{check_depth, refuse_others};
use crate::stepwise::refuse_loops;

pub use tiling::MAX_CPU_DEPTH;

/// Cells of a chunk: four slots of so many values and the rows beside them stay in a first-level cache. It is
/// somewhat more than a power of two, because the rows of tiles are so too.
const CHUNK: usize = 544;

/// Cells of a domain too small to be worth waking a second thread.
const FEW: usize = 16384;

/// Checks whether a plan for a CPU follows from the problem alone: a domain of so few cells is swept a step
/// at a time and stays in the CPU's caches, however fast its memory is.
pub fn is_too_small_to_choose(problem: &Problem, options: &Options) -> bool {
    let one = matches!(options.depth, Depth::Auto | Depth::Steps(1));
    let stepwise = matches!(options.execution, Execution::Auto | Execution::Stepwise);
    stepwise && one && problem.shape.cells() < FEW
}

/// Plans for a CPU: what `options` ask for, or where they leave it open the fastest by the planner's
/// estimate.
pub fn plan_cpu(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Plan> {
    let mut plan = free_rows(problem, device, options)?;
    if let Schedule::Cpu(cpu) = &mut plan.schedule {
        cpu.pinned = options.pin;
    }
    Ok(plan)
}

/// Plans for threads that run wherever the system puts them.
fn free_rows(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Plan> {
    problem.check()?;
    refuse_loops(device, options)?;
    if !problem.is_plain() {
        refuse_others(problem, device, options)?;
        return together(problem, device, options.fuse);
    }
    let persistent = || -> Result<Plan> {
        if !matches!(options.cache, CachePolicy::Auto | CachePolicy::None) {
            return Err(Error::unsupported(
                device.name.clone(),
                format!(
                    "cache {} was asked for, and what a core's cache keeps is its own choice",
                    options.cache
                ),
                "leave --cache at auto, or choose a GPU",
            ));
        }
        tiling::plan(problem, device, options.depth, Execution::Persistent)
    };
    let streaming = || tiling::plan(problem, device, options.depth, Execution::Streaming);
    match (options.execution, options.depth) {
        (Execution::Stepwise, depth) => {
            check_depth(depth)?;
            Ok(stepwise(problem, device))
        }
        (Execution::Overlapped, _) => Err(Error::unsupported(
            device.name.clone(),
            "overlapped tiling is for GPUs whose warps and registers cannot be planned",
            "use --execution streaming",
        )),
        (Execution::Streaming, _) => streaming(),
        (Execution::Persistent, _) => persistent(),
        (Execution::Auto, _) if is_too_small_to_choose(problem, options) => Ok(stepwise(problem, device)),
        (Execution::Auto, Depth::Auto | Depth::Steps(1)) => {
            let mut best = stepwise(problem, device);
            for other in [streaming()?, tiling::plan(problem, device, options.depth, Execution::Persistent)?]
            {
                if other.estimated_seconds < best.estimated_seconds {
                    best = other;
                }
            }
            Ok(best)
        }
        (Execution::Auto, Depth::Steps(_)) => {
            let (one, other) =
                (streaming()?, tiling::plan(problem, device, options.depth, Execution::Persistent)?);
            Ok(if other.estimated_seconds < one.estimated_seconds { other } else { one })
        }
    }
}

/// Plans a run of a program, whose launches share one sweep over the rows unless fusion is off.
fn together(problem: &Problem, device: &DeviceSpec, fuse: Fuse) -> Result<Plan> {
    let mut plan = stepwise(problem, device);
    if let Schedule::Cpu(cpu) = &mut plan.schedule {
        cpu.fuse = match fuse {
            Fuse::Off => false,
            Fuse::Auto | Fuse::Greedy => true,
            Fuse::Search => {
                return Err(Error::unsupported(
                    device.name.clone(),
                    "fusion by search is for GPUs: a CPU's launches go over the rows together in their order",
                    "use --fuse greedy",
                ));
            }
        };
    }
    Ok(plan)
}

/// Plans a stepwise run: all of a stage, then the next stage.
fn stepwise(problem: &Problem, device: &DeviceSpec) -> Plan {
    let cpu =
        Cpu { threads: device.multiprocessors.max(1), pinned: false, chunk: CHUNK, fuse: true, tiling: None };
    let traffic = Traffic::uncached(problem, device);
    let mut plan = base(problem, device, Execution::Stepwise, Schedule::Cpu(cpu), traffic);
    plan.estimated_seconds = tiling::stepwise_seconds(problem, device);
    plan
}

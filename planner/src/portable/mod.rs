//! The choice of a plan for devices that have no barrier of all workgroups and report almost nothing about themselves.
//!
//! There are three families: a launch per stage ([`Stepwise`](abide_core::plan::Stepwise)), windows that stay in
//! registers for several steps ([`Overlapped`](abide_core::plan::Overlapped)), and planes that stream through several
//! steps ([`PortableStreaming`](abide_core::plan::PortableStreaming)).

mod absent;
mod candidates;
#[cfg(test)]
pub(crate) mod tests;

use abide_core::{Depth, DeviceSpec, Execution, Options, Plan, Problem, Result};

use crate::overlapped::plan_overlapped;
use crate::stepwise::{plan_loops, plan_stepwise, refuse_points_and_teams};
use crate::streaming::portable::plan_portable_streaming;

pub use self::absent::plan_absent;
pub use self::candidates::candidates as portable_candidates;

/// Plans for a device that has no barrier of all workgroups and does not report its registers: what `options` request,
/// or else the plan that the planner estimates to be fastest. A problem that is not plain runs a launch per stage.
pub fn plan_portable(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Plan> {
    refuse_points_and_teams(device, options)?;
    if let Some(plan) = plan_loops(problem, device, options) {
        return plan;
    }
    let stepwise = || plan_stepwise(problem, device, options);
    if !problem.is_plain() {
        return stepwise();
    }
    match (options.execution, options.depth) {
        (Execution::Overlapped, _) => plan_overlapped(problem, device, options),
        (Execution::Streaming, _) => plan_portable_streaming(problem, device, options),
        (Execution::Auto, Depth::Auto) => {
            let mut stepwise = stepwise()?;
            match plan_several_steps(problem, device, options) {
                Ok(several) if several.estimated_seconds < stepwise.estimated_seconds => Ok(several),
                Ok(_) => Ok(stepwise),
                Err(why) => {
                    stepwise.notes.push(format!("one step per launch because several cannot be: {why}"));
                    Ok(stepwise)
                }
            }
        }
        (Execution::Auto, Depth::Steps(2..)) => plan_several_steps(problem, device, options),
        (Execution::Auto | Execution::Stepwise | Execution::Persistent, _) => stepwise(),
    }
}

/// Plans several steps per launch: overlapped or streaming, whichever is estimated to be faster.
fn plan_several_steps(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Plan> {
    match (plan_overlapped(problem, device, options), plan_portable_streaming(problem, device, options)) {
        (Ok(overlapped), Ok(streaming)) if streaming.estimated_seconds < overlapped.estimated_seconds => {
            Ok(streaming)
        }
        (Ok(overlapped), _) => Ok(overlapped),
        (Err(why), Ok(mut streaming)) => {
            streaming.notes.push(format!("streaming because no overlapped tile fits: {why}"));
            Ok(streaming)
        }
        // If neither is possible, the reason given is that of overlapped tiling, which can do more.
        (Err(why), Err(_)) => Err(why),
    }
}

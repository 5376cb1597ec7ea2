//! Devices that have no barrier of all workgroups and report almost nothing about themselves: the common parts of the
//! kernels for them, and the choice among those kernels.
//!
//! There are three families: a launch per stage ([`Stepwise`](super::Stepwise)), windows that stay in
//! registers for several steps ([`Overlapped`](super::Overlapped)), and planes that stream through several
//! steps ([`PortableStreaming`](super::PortableStreaming)).

mod candidates;
pub(super) mod rates;
#[cfg(test)]
pub(super) mod tests;

use super::general::refuse_others;
use super::lowering::{plan_loops, refuse_points_and_teams};
use super::stepwise::check_buffer;
use super::{
    CachePolicy, Depth, Execution, Options, Plan, passes, plan_overlapped, plan_portable_streaming,
    plan_stepwise,
};
use crate::device::DeviceSpec;
use crate::error::{Error, Result};
use crate::program::Problem;

pub use self::candidates::candidates as portable_candidates;

/// The most operations of a kernel's unrolled formulas: compilers take time for each.
pub(super) const MOST_OPERATIONS: usize = 3000;

/// The most arguments of a stage's function, mostly its taps: WGSL allows 255.
pub(super) const MOST_ARGUMENTS: usize = 240;

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

/// Makes the error for a device that has no room for a kind of kernels of several steps; `room` says how much
/// room there is.
pub(super) fn no_room(
    what: &str,
    problem: &Problem,
    device: &DeviceSpec,
    options: &Options,
    room: String,
) -> Error {
    let domain = format!("{} {}", problem.shape, problem.dtype);
    passes::no_room(format!("{what} on {}", device.name), problem, domain, options.depth, room)
}

/// Refuses what no kernel of several steps can do on a device: programs that run a launch per stage, fields that the
/// device cannot bind, and cells that stay on the chip from dispatch to dispatch.
pub(super) fn check_several_steps(
    problem: &Problem,
    device: &DeviceSpec,
    execution: Execution,
    options: &Options,
) -> Result<()> {
    problem.check()?;
    refuse_others(problem, device, &Options { execution, ..*options })?;
    check_buffer(problem, device)?;
    if options.cache == CachePolicy::Auto {
        return Ok(());
    }
    Err(Error::invalid(
        format!("--cache {} with several steps per launch", options.cache),
        "such a kernel keeps no cell from launch to launch",
        "leave --cache at auto, or choose a device that runs persistent kernels",
    ))
}

/// Returns the most 32-bit registers that a thread may use for cells: `most`, but no more than half of all its
/// registers if the device reports their number.
pub(super) fn most_words(device: &DeviceSpec, most: usize) -> usize {
    device.registers_per_thread.map_or(most, |registers| most.min(registers / 2))
}

/// Returns all pairs of two lists.
pub(super) fn product<const N: usize, const M: usize>(
    a: [usize; N],
    b: [usize; M],
) -> impl Iterator<Item = [usize; 2]> {
    a.into_iter().flat_map(move |a| b.map(|b| [a, b]))
}

//! Plans of overlapped tiling: each launch advances several steps, and tiles recompute the halo that they share (Meng
//! and Skadron, ICS'09).

mod candidates;
mod estimate;
#[cfg(test)]
mod tests;

use abide_core::plan::overlapped::Configuration;
use abide_core::plan::{Overlapped, Schedule};
use abide_core::{DeviceSpec, Execution, Options, Plan, Problem, Result};

use crate::limits::check_buffer;
use crate::passes::{self, Demand, fastest_first};
use crate::workgroups::{MOST_ARGUMENTS, MOST_OPERATIONS, check_several_steps, most_words, no_room};

/// Steps per dispatch where windows need no halo: enough that starting the dispatch costs nothing beside
/// them, and few enough that it ends long before a system would take the device for hung.
const MOST_STEPS: usize = 512;

/// The most 32-bit registers for the cells of a thread.
const MOST_WORDS: usize = 64;

/// Plans windows of several steps: the first of [`overlapped_plans`].
pub fn plan_overlapped(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Plan> {
    let plans = overlapped_plans(problem, device, options)?;
    plans.into_iter().next().ok_or_else(|| {
        let room = format!(
            "windows with a tile inside their halo, of {} threads, {} registers of cells a thread, {MOST_OPERATIONS} operations \
             of its cells together, {MOST_ARGUMENTS} taps a stage and {} bytes of workgroup memory",
            device.threads_per_block,
            most_words(device, MOST_WORDS),
            device.shared_bytes_per_block
        );
        no_room("windows of several steps", problem, device, options, room)
    })
}

/// Returns all plans of windows that fit a device, the one that the model finds fastest first.
pub fn overlapped_plans(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Vec<Plan>> {
    check_several_steps(problem, device, Execution::Overlapped, options)?;
    let demand = Demand::of(problem);
    let found = candidates::candidates(&demand, device, options.depth);
    Ok(fastest_first(found, |(estimate, overlapped)| plan_of(problem, device, overlapped, estimate)))
}

/// Returns the plan of a configuration; `None` if it does not fit.
pub fn plan_configuration(
    problem: &Problem,
    device: &DeviceSpec,
    configuration: &Configuration,
) -> Option<Plan> {
    check_buffer(problem, device).ok()?;
    let demand = Demand::of(problem);
    let (layout, cost) = candidates::layout(&demand, device, configuration)?;
    let overlapped = candidates::overlapped(&demand, &layout, configuration)?;
    let estimate = estimate::step_seconds(&demand, device, &overlapped, &cost);
    Some(plan_of(problem, device, overlapped, estimate))
}

fn plan_of(problem: &Problem, device: &DeviceSpec, overlapped: Overlapped, estimate: f64) -> Plan {
    let depth = overlapped.configuration.depth;
    passes::plan_of(
        problem,
        device,
        (Execution::Overlapped, Schedule::Overlapped(overlapped)),
        depth,
        estimate,
    )
}

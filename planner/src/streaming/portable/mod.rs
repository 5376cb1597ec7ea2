//! Plans of 2.5-D streaming with temporal blocking in the portable form (Nguyen et al., SC'10).

mod candidates;
mod estimate;
#[cfg(test)]
mod tests;

use abide_core::plan::streaming::portable::{Arrival, Configuration};
use abide_core::plan::{PortableStreaming, Schedule};
use abide_core::{DeviceSpec, Execution, Options, Plan, Problem, Result};

use super::requirement::{Demand, Limits};
use crate::limits::check_buffer;
use crate::passes::{self, fastest_first};
use crate::workgroups::{MOST_ARGUMENTS, MOST_OPERATIONS, check_several_steps, most_words, no_room};

/// The most 32-bit registers for the values that a thread's cells carry from plane to plane, summed over all levels.
const MOST_WORDS: usize = 216;

/// The limits of kernels. The cell that a ghost cell shows belongs to another thread, or to a plane that has
/// already passed.
const LIMITS: Limits = Limits {
    form: "a portable streaming kernel",
    lines: false,
    shows: false,
    change: "leave --execution at auto, or use --execution overlapped",
};

/// Plans streaming planes: the first of [`portable_streaming_plans`].
pub fn plan_portable_streaming(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Plan> {
    let plans = portable_streaming_plans(problem, device, options)?;
    plans.into_iter().next().ok_or_else(|| {
        let room = format!(
            "windows wider than their overlap, of {} threads, {} registers of carried values per thread, \
             {MOST_OPERATIONS} operations of its cells at all levels, {MOST_ARGUMENTS} taps and carried values a stage and {} \
             bytes of workgroup memory",
            device.threads_per_block,
            most_words(device, MOST_WORDS),
            device.shared_bytes_per_block
        );
        no_room("streaming planes", problem, device, options, room)
    })
}

/// Returns all plans of planes that fit a device, the one that the model finds fastest first.
pub fn portable_streaming_plans(
    problem: &Problem,
    device: &DeviceSpec,
    options: &Options,
) -> Result<Vec<Plan>> {
    check_several_steps(problem, device, Execution::Streaming, options)?;
    LIMITS.check(problem)?;
    let found = candidates::candidates(&Demand::of(problem), device, options.depth);
    Ok(fastest_first(found, |(estimate, streaming)| plan_of(problem, device, streaming, estimate)))
}

/// Returns the plan of a configuration; `None` if it does not fit.
pub fn plan_configuration(
    problem: &Problem,
    device: &DeviceSpec,
    configuration: &Configuration,
) -> Option<Plan> {
    check_buffer(problem, device).ok()?;
    LIMITS.check(problem).ok()?;
    let demand = Demand::of(problem);
    let Configuration { threads, cells, .. } = *configuration;
    let arrivals = Arrival::all(&demand.carries, demand.axes, threads, cells);
    let (uncut, cost) = candidates::uncut(&demand, device, configuration, &arrivals)?;
    let streaming = candidates::cut(&demand, &uncut, configuration.shares)?;
    let estimate = estimate::step_seconds(&demand, device, &streaming, &cost);
    Some(plan_of(problem, device, streaming, estimate))
}

fn plan_of(problem: &Problem, device: &DeviceSpec, streaming: PortableStreaming, estimate: f64) -> Plan {
    let depth = streaming.configuration.depth;
    let schedule = (Execution::Streaming, Schedule::PortableStreaming(streaming));
    passes::plan_of(problem, device, schedule, depth, estimate)
}

//! Plans of domains that lie on the chip as a whole for the whole run.

mod batch;
mod candidates;
mod estimate;
#[cfg(test)]
mod tests;

use abide_core::device::Capability;
use abide_core::plan::resident::Configuration;
use abide_core::plan::traffic::Traffic;
use abide_core::plan::{Resident, Schedule};
use abide_core::{CachePolicy, Depth, DeviceSpec, Error, Execution, Options, Plan, Problem, Result};

use self::candidates::{candidates, resident};
use self::estimate::step_seconds;
use crate::base::base;
use crate::limits::refuse_others;
use crate::passes::fastest_first;
use crate::streaming::requirement::Demand;

pub use self::batch::{batch_plans, plan_batch};

/// Returns all plans that keep the whole domain on the chip, the one that the model finds fastest first; none
/// where it does not fit.
pub fn resident_plans(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Vec<Plan>> {
    problem.check()?;
    refuse_others(problem, device, &Options { execution: Execution::Persistent, ..*options })?;
    device.require(Capability::Barrier, "a persistent kernel")?;
    device.require(Capability::Warps, "a persistent kernel")?;
    let demand = Demand::of(problem);
    let found: Vec<(f64, Resident)> = candidates(&demand, device, options.depth)
        .into_iter()
        .map(|resident| (step_seconds(&demand, device, &resident), resident))
        .collect();
    Ok(fastest_first(found, |(estimate, resident)| plan_of(problem, device, resident, estimate)))
}

/// Plans tiles that keep the whole domain on the chip: the first of [`resident_plans`].
pub fn plan_resident(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Plan> {
    let plans = resident_plans(problem, device, options)?;
    plans.into_iter().next().ok_or_else(|| too_large(problem, device, options))
}

/// Makes the error for a domain that the chip does not hold as a whole.
pub(super) fn too_large(problem: &Problem, device: &DeviceSpec, options: &Options) -> Error {
    let depth = match options.depth {
        Depth::Auto => "at any depth".to_owned(),
        Depth::Steps(steps) => format!("with {steps} steps between exchanges"),
    };
    Error::limit(
        format!("registers and shared memory of all blocks on {}", device.name),
        format!("{} {} of {}, {depth}", problem.program.fields().len(), problem.dtype, problem.shape),
        format!("{:.1} MB", device.on_chip_bytes() as f64 / 1e6),
        "use --execution streaming",
    )
}

/// Returns the plan of a configuration, of a batch with a block for each member; `None` if it does not fit.
pub fn plan_configuration(
    problem: &Problem,
    device: &DeviceSpec,
    configuration: &Configuration,
) -> Option<Plan> {
    let demand = Demand::of(problem);
    let resident = resident(&demand, device, configuration)?;
    if problem.is_batch() {
        return batch::of(&demand, device, resident);
    }
    let estimate = step_seconds(&demand, device, &resident);
    Some(plan_of(problem, device, resident, estimate))
}

fn plan_of(problem: &Problem, device: &DeviceSpec, resident: Resident, estimate: f64) -> Plan {
    let mut traffic = Traffic::uncached(problem, device);
    let share = resident.planes_registers as f64 / resident.planes as f64;
    traffic.cached_registers = traffic.cells * share;
    traffic.cached_shared = traffic.cells - traffic.cached_registers;
    let exchanged = (1.0 - resident.valid(problem.shape.cells())).max(0.0) / resident.depth as f64;
    traffic.halo_bytes = 2.0 * traffic.cells * traffic.changing_bytes * exchanged;
    traffic.overhead_seconds = device.barrier_seconds / resident.depth as f64;
    let depth = resident.depth as u32;
    let mut plan = base(problem, device, Execution::Persistent, Schedule::Resident(resident), traffic);
    plan.cache = CachePolicy::Mixed;
    plan.depth = depth;
    plan.estimated_seconds = estimate;
    plan
}

/// Returns a resident plan with `planes` planes of a warp in registers, as the compiler's report of spills
/// may ask; `None` where shared memory has no room for the others.
pub fn with_resident_registers(plan: &Plan, problem: &Problem, planes: usize) -> Option<Plan> {
    let resident = plan.resident()?;
    let configuration = Configuration { planes_registers: planes, ..resident.configuration() };
    let mut other = plan_configuration(problem, &plan.device, &configuration)?;
    other.notes = plan.notes.clone();
    Some(other)
}

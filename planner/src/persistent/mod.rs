//! Plans of persistent kernels, whose blocks keep their tiles on the chip for the whole run (PERKS, Zhang et al., ICS'23).

mod candidates;
mod estimate;
mod room;
#[cfg(test)]
mod tests;

use abide_core::device::Capability;
use abide_core::plan::persistent::Configuration;
use abide_core::plan::{Persistent, Schedule};
use abide_core::{CachePolicy, DeviceSpec, Error, Execution, Options, Plan, Problem, Result};

use self::candidates::candidates;
use self::estimate::{step_seconds, traffic};
use self::room::{planes_shared, shared_bytes};
use crate::base::base;
use crate::limits::{check_depth, refuse_others};

/// The largest radius that a persistent kernel's register window takes.
pub const MAX_PERSISTENT_RADIUS: usize = 12;

/// Returns a sweep with `planes` of its planes in registers. Those given up go to shared memory as
/// far as there is room, unless `policy` is `registers`.
fn with_registers(
    persistent: &Persistent,
    problem: &Problem,
    device: &DeviceSpec,
    policy: CachePolicy,
    planes: usize,
) -> Persistent {
    let mut persistent = persistent.clone();
    persistent.planes_registers = planes;
    if policy != CachePolicy::Registers {
        persistent.planes_shared = planes_shared(problem, device, &persistent);
    }
    persistent.shared_bytes = shared_bytes(problem, &persistent);
    persistent
}

/// Plans a persistent kernel for a device that reports its registers and shared memory: the first of
/// [`persistent_plans`].
pub fn plan_persistent(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Plan> {
    let plans = persistent_plans(problem, device, options)?;
    plans.into_iter().next().ok_or_else(|| {
        Error::limit(
            "shared memory of a block of a persistent kernel",
            format!(
                "the exchange ring of {} fields of radius {:?}",
                problem.program.fields().len(),
                problem.program.radius()
            ),
            format!("{} bytes", device.shared_bytes_per_block),
            "use --execution stepwise",
        )
    })
}

/// Returns all plans of persistent kernels that fit a device, the one that the model finds fastest first.
pub fn persistent_plans(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Vec<Plan>> {
    problem.check()?;
    refuse_others(problem, device, &Options { execution: Execution::Persistent, ..*options })?;
    check_depth(options.depth)?;
    device.require(Capability::Barrier, "a persistent kernel")?;
    if let Some(&far) = problem.program.radius().iter().find(|&&r| r > MAX_PERSISTENT_RADIUS) {
        return Err(Error::limit(
            "radius of a stencil in a persistent kernel",
            far,
            MAX_PERSISTENT_RADIUS,
            "use --execution stepwise",
        ));
    }
    let policy = if options.cache == CachePolicy::Auto { CachePolicy::Mixed } else { options.cache };
    // Sweeps that keep the whole domain on the chip come first: the model's estimate of a rest in device
    // memory is too coarse to compare with them. Those that keep nothing come last, because a policy that is asked
    // for is followed where it can be.
    let mut sweeps: Vec<(u8, f64, Persistent)> = candidates(problem, device, policy)
        .map(|persistent| {
            let kept = persistent.cached_cells(problem).iter().sum::<usize>();
            let rank = if kept == problem.shape.cells() { 0 } else { 1 + u8::from(kept == 0) };
            (rank, step_seconds(problem, device, &persistent), persistent)
        })
        .collect();
    sweeps.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    Ok(sweeps.into_iter().map(|(_, _, persistent)| plan_of(problem, device, policy, persistent)).collect())
}

/// Returns the plan of a configuration, if it is one of those that [`persistent_plans`] would consider.
pub fn plan_configuration(
    problem: &Problem,
    device: &DeviceSpec,
    policy: CachePolicy,
    configuration: &Configuration,
) -> Option<Plan> {
    let policy = if policy == CachePolicy::Auto { CachePolicy::Mixed } else { policy };
    let persistent = candidates(problem, device, policy)
        .find(|persistent| persistent.configuration() == *configuration)?;
    Some(plan_of(problem, device, policy, persistent))
}

/// Returns the plan that runs a sweep.
fn plan_of(problem: &Problem, device: &DeviceSpec, policy: CachePolicy, persistent: Persistent) -> Plan {
    let traffic = traffic(problem, device, &persistent);
    let estimate = step_seconds(problem, device, &persistent);
    let mut plan = base(problem, device, Execution::Persistent, Schedule::Persistent(persistent), traffic);
    plan.cache = policy;
    plan.estimated_seconds = estimate;
    plan
}

/// Returns a plan with `planes` planes in registers, a multiple of the chunk, as the compiler's
/// report of spills may ask. A plan that is not persistent stays as it is.
pub fn with_planes_in_registers(plan: &Plan, problem: &Problem, planes: usize) -> Plan {
    let Some(persistent) = plan.persistent() else { return plan.clone() };
    let planes = planes.min(persistent.planes[0]) / persistent.chunk * persistent.chunk;
    let persistent = with_registers(persistent, problem, &plan.device, plan.cache, planes);
    let mut fewer = plan_of(problem, &plan.device, plan.cache, persistent);
    fewer.notes = plan.notes.clone();
    fewer
}

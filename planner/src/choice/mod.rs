//! The choice among the schedules of a device.

mod batch;
mod candidates;

use abide_core::plan::{Fuse, Tune};
use abide_core::program::Clock;
use abide_core::{CachePolicy, Depth, DeviceSpec, Error, Execution, Options, Plan, Problem, Result};

use crate::persistent::{persistent_plans, plan_persistent};
use crate::resident::{self, resident_plans};
use crate::stepwise::{compare, plan_loops, plan_persistent_program, plan_stepwise};
use crate::streaming::warp::plan_streaming;

pub use batch::{plan_batch, plan_members};
pub use candidates::candidates;
pub(crate) use candidates::{family, is_asked, most};

/// Plans for a device whose kernels run stepwise, streaming or persistent: what `options` ask for, or the
/// faster by the planner's estimate where they leave it open. A problem that is not plain runs a launch per
/// stage or group of stages, or as one persistent kernel where that is asked for.
pub fn plan(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Plan> {
    if let Some(plan) = plan_loops(problem, device, options) {
        return plan;
    }
    if problem.is_batch() {
        return plan_batch(problem, device, options, |member| plan(member, device, options));
    }
    if let Some(plan) = plan_of_clock(problem, options, true, |plain, options| plan(plain, device, options)) {
        return plan;
    }
    if !problem.is_plain() {
        if options.execution == Execution::Persistent {
            return plan_persistent_program(problem, device, options);
        }
        let mut plan = plan_stepwise(problem, device, options)?;
        if options.execution == Execution::Auto {
            compare(problem, &mut plan);
        }
        return Ok(plan);
    }
    match options.execution {
        Execution::Stepwise => plan_stepwise(problem, device, options),
        Execution::Persistent => plan_on_chip(problem, device, options),
        Execution::Streaming => plan_streaming(problem, device, options),
        Execution::Overlapped => Err(Error::unsupported(
            device.name.clone(),
            "overlapped tiling is for devices whose warps and registers cannot be planned",
            "use --execution streaming",
        )),
        Execution::Auto => fastest(problem, device, options),
    }
}

/// Returns the plan by which the plain form of a problem goes over several steps at a time, as `plan` makes it; `None` for a
/// problem that has none, or where a launch per stage or group of stages of the program as it is was asked for or is faster.
/// `notes` says whether the device has kernels that note values ([`Plan::notes`]).
pub fn plan_of_clock(
    problem: &Problem,
    options: &Options,
    notes: bool,
    plan: impl Fn(&Problem, &Options) -> Result<Plan>,
) -> Option<Result<Plan>> {
    if options.execution == Execution::Stepwise || options.fuse != Fuse::Auto {
        return None;
    }
    let clock = Clock::on_device(problem, notes)?;
    match plan_between(problem, &clock, options, plan) {
        Ok(Some(mut plan)) if is_of_clock(&plan, &clock) => {
            plan.notes.extend(clock.notes(problem));
            Some(Ok(plan))
        }
        // A persistent kernel of the program as it is may do.
        Err(error) if !matches!(options.execution, Execution::Auto | Execution::Persistent) => {
            Some(Err(error))
        }
        _ => None,
    }
}

/// The seconds that a device has nothing to do while the host takes the value of a reduction and asks for the next steps: measured
/// on an H200.
const HALT_SECONDS: f64 = 35e-6;

/// The same where the device makes the scalars between two reductions itself: the launches, which the host puts behind each other.
const TURN_SECONDS: f64 = 20e-6;

/// The most steps of a pass that are tried.
const MOST_STEPS: usize = 24;

/// Plans the plain form of a problem, in whole passes from one reduction to the next: what is left over would be steps of shallower
/// passes. `None` where a launch per stage of the program as it is takes less than such passes and halts.
fn plan_between(
    problem: &Problem,
    clock: &Clock,
    options: &Options,
    plan: impl Fn(&Problem, &Options) -> Result<Plan>,
) -> Result<Option<Plan>> {
    let plain = clock.at_rest();
    let mut own = plan(&plain, options)?;
    let (Some((apart, count)), Some(reductions)) = (clock.between_reductions(), clock.reductions()) else {
        return Ok(Some(own));
    };
    let fits = |depth: u32| apart.is_multiple_of((depth as usize).max(1));
    if options.depth == Depth::Auto {
        // The depth is asked for even where it fits, so that a plan in place of one that spills keeps it.
        let depths = if fits(own.depth) { own.depth..=own.depth } else { 2..=apart.min(MOST_STEPS) as u32 };
        let whole = depths
            .filter(|&depth| fits(depth))
            .filter_map(|depth| plan(&plain, &Options { depth: Depth::Steps(depth), ..*options }).ok());
        own = whole.min_by(|a, b| a.estimated_seconds.total_cmp(&b.estimated_seconds)).unwrap_or(own);
    }
    let stepwise = Options { execution: Execution::Stepwise, tune: Tune::Off, ..*options };
    let each = reductions.program.stages().len().max(1) as f64;
    let reduced = plan_stepwise(reductions, &own.device, &stepwise)?.estimated_seconds / each * count as f64;
    let halts = problem.until.is_some() || problem.marks.is_some() || clock.stretches().is_empty();
    let between = if halts { HALT_SECONDS } else { TURN_SECONDS * count as f64 };
    own.estimated_seconds += (reduced + between) / apart as f64;
    let is_free = options.execution == Execution::Auto && options.depth == Depth::Auto;
    let other = plan_stepwise(problem, &own.device, &stepwise).ok().filter(|_| is_free);
    Ok(Some(own).filter(|own| other.is_none_or(|other| own.estimated_seconds < other.estimated_seconds)))
}

/// Returns whether a plan of a problem that has a clock is one of its plain form.
pub fn is_of_clock(plan: &Plan, clock: &Clock) -> bool {
    let has_several = plan.stepwise().is_none() && plan.persistent_program().is_none();
    has_several && (clock.noted().is_empty() || plan.notes())
}

/// Returns whether kernels of a plan note the values of a problem's probes, so that a run does not halt for them.
pub fn notes_probes(problem: &Problem, plan: &Plan) -> bool {
    Clock::on_device(problem, true)
        .is_some_and(|clock| !clock.noted().is_empty() && is_of_clock(plan, &clock))
}

/// Returns the persistent plans that the options leave open, the least estimate first: of a cache policy that is
/// asked for, or else also those that hold the whole domain, which are the only ones with a depth.
///
/// # Errors
///
/// Those of [`persistent_plans`] or, where a depth is asked for, of [`plan_resident`](crate::plan_resident).
pub fn on_chip_plans(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Vec<Plan>> {
    if options.cache != CachePolicy::Auto {
        return persistent_plans(problem, device, options);
    }
    if let Depth::Steps(2..) = options.depth {
        let plans = resident_plans(problem, device, options)?;
        return if plans.is_empty() { Err(resident::too_large(problem, device, options)) } else { Ok(plans) };
    }
    // Some stencils are for one of the two forms alone.
    let resident = resident_plans(problem, device, options).unwrap_or_default();
    let mut plans = match persistent_plans(problem, device, options) {
        Err(_) if !resident.is_empty() => Vec::new(),
        plans => plans?,
    };
    // Small cubes are faster with all their planes in registers, or with none kept at all.
    for cache in [CachePolicy::Registers, CachePolicy::None] {
        plans.extend(persistent_plans(problem, device, &Options { cache, ..*options }).unwrap_or_default());
    }
    plans.extend(resident);
    plans.retain(|plan| problem.noted.is_empty() || plan.notes());
    plans.sort_by(|a, b| a.estimated_seconds.total_cmp(&b.estimated_seconds));
    Ok(plans)
}

/// Plans a persistent kernel: the first of [`on_chip_plans`].
pub fn plan_on_chip(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Plan> {
    match on_chip_plans(problem, device, options)?.into_iter().next() {
        Some(plan) => Ok(plan),
        None if !problem.noted.is_empty() => Err(resident::too_large(problem, device, options)),
        None => plan_persistent(problem, device, options),
    }
}

/// Returns the plan with the least estimate of those that the options leave open. A cache policy asks for a
/// persistent kernel, a depth for one of several steps per launch or exchange.
fn fastest(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Plan> {
    let mut best = if matches!(options.depth, Depth::Auto | Depth::Steps(1)) && problem.noted.is_empty() {
        plan_stepwise(problem, device, options)
    } else {
        plan_streaming(problem, device, options)
    };
    let wants_cache = options.cache != CachePolicy::Auto;
    let keeps_loops = |plan: &Plan| plan.stepwise().is_some_and(|stepwise| stepwise.lowering.keeps_loops());
    if !wants_cache && best.as_ref().is_ok_and(keeps_loops) {
        // All other kernels would write out each turn of formulas that are too long for it.
        return best;
    }
    let mut notes = Vec::new();
    let mut consider = |kernel: &str, other: Result<Plan>, wanted: bool| match (&best, other) {
        (Ok(plan), Ok(other)) if wanted || other.estimated_seconds < plan.estimated_seconds => {
            best = Ok(other)
        }
        (Err(_), Ok(other)) => best = Ok(other),
        (_, Err(why)) => notes.push(format!("not {kernel} because that cannot be: {why}")),
        _ => {}
    };
    if !wants_cache {
        consider("streaming", plan_streaming(problem, device, options), false);
    }
    consider("persistent", plan_on_chip(problem, device, options), wants_cache);
    let mut plan = best?;
    plan.notes.extend(notes);
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use abide_core::{Boundaries, DType, Shape, catalogue};

    use super::*;
    use crate::cpu::plan_cpu;
    use crate::overlapped::plan_overlapped;
    use abide_core::domain::Boundary;

    fn problem(name: &str, extents: &[usize], dtype: DType) -> Problem {
        let program = catalogue::find(name).unwrap().program(extents.len()).unwrap();
        Problem::new(Arc::new(program), Shape::new(extents).unwrap(), dtype).unwrap()
    }

    #[test]
    fn a_plan_for_another_problem_is_refused() {
        let device = DeviceSpec::preset("h200").unwrap();
        let own = problem("2d5pt", &[99, 101], DType::F64);
        let mut walled = own.clone();
        walled.boundaries = Boundaries::all(Boundary::Mirror);
        let others = [
            problem("2d9pt", &[99, 101], DType::F64),
            problem("2d5pt", &[101, 99], DType::F64),
            problem("2d5pt", &[99, 101], DType::F32),
            problem("gray-scott", &[99, 101], DType::F64),
            walled,
        ];
        for plan in [plan_stepwise, plan_streaming, plan_persistent, plan_overlapped, plan_cpu] {
            let plan = plan(&own, &device, &Options::default()).unwrap();
            assert_eq!(plan.check(&own), Ok(()));
            for other in &others {
                let error = plan.check(other).unwrap_err().to_string();
                assert!(error.contains("it is for 2d5pt on 99x101 f64, boundary fixed"), "{error}");
            }
        }
    }
}

//! The plans around the planner's own choice that are worth trying on a device.
//!
//! The estimates rank plans of one execution better than they compare executions. They rank forms that differ
//! much better than forms that hardly differ. So each execution gets its share of the list, and within it the
//! list goes from coarse to fine: first the best of several depths, then of several blocks, then variants of
//! the best.

use std::collections::HashSet;
use std::hash::Hash;

use abide_core::plan::{Recipe, Schedule};
use abide_core::{CachePolicy, DeviceSpec, Execution, Options, Plan, Problem, Result, Tune};

use super::{on_chip_plans, plan};
use crate::stepwise::plan_stepwise;
use crate::streaming::warp::streaming_plans;

/// Plans of a full list, and of a quick one.
const FULL: usize = 40;

const QUICK: usize = 8;

/// In the first, coarse choice a plan is left out if its estimate is more than this many times the best of
/// its execution.
const HOPELESS: f64 = 2.0;

/// An execution gets an eighth of the places instead of half if its best estimate is more than this many
/// times the other execution's: the estimates are never so far off.
const FAR: f64 = 3.0;

/// Lists the plans worth trying: the planner's own choice first, then a launch per stage, then others by
/// their estimate.
///
/// There are as many as [`Tune::Full`] asks for, else as many as [`Tune::Quick`] does. All plans are as
/// `options` ask, and no two are the same; where the options leave no choice the list has one plan.
///
/// # Errors
///
/// Those of [`plan()`].
pub fn candidates(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Vec<Plan>> {
    let own = plan(problem, device, options)?;
    // A launch per stage is all that there is for a program that is not plain.
    if !problem.is_plain() {
        return Ok(vec![own]);
    }
    let (full, most) = (options.tune == Tune::Full, most(options));
    let mut plans = vec![own];
    if is_asked(options, Execution::Stepwise)
        && options.cache == CachePolicy::Auto
        && problem.noted.is_empty()
    {
        plans.extend(plan_stepwise(problem, device, options));
    }
    let persistent = family(problem, device, options, Execution::Persistent, on_chip_plans);
    let streaming = family(problem, device, options, Execution::Streaming, streaming_plans);
    // The planner's own choice comes up again among these plans and is dropped then, so there is one place
    // more.
    let places = most + 1 - plans.len();
    let best = |plans: &[Plan]| plans.first().map_or(f64::INFINITY, |plan| plan.estimated_seconds);
    let share = if persistent.is_empty() {
        places
    } else if best(&streaming) > FAR * best(&persistent) {
        places.div_ceil(8)
    } else if best(&persistent) > FAR * best(&streaming) {
        places - places.div_ceil(8)
    } else {
        places.div_ceil(2)
    };
    let mut streaming = spread(streaming, share, full);
    let mut rest = spread(persistent, places.saturating_sub(streaming.len()), full);
    rest.append(&mut streaming);
    rest.sort_by(|a, b| a.estimated_seconds.total_cmp(&b.estimated_seconds));
    plans.append(&mut rest);
    let mut seen = HashSet::new();
    plans.retain(|plan| seen.insert(kernel(plan)));
    plans.truncate(most);
    Ok(plans)
}

/// Returns the most plans that a list holds.
pub(crate) fn most(options: &Options) -> usize {
    if options.tune == Tune::Full { FULL } else { QUICK }
}

/// Returns whether the options leave an execution open, or ask for it.
pub(crate) fn is_asked(options: &Options, execution: Execution) -> bool {
    matches!(options.execution, Execution::Auto) || options.execution == execution
}

/// Returns the plans of an execution that the options leave open. The list is empty where the execution is
/// not possible: the planner's own choice is then another one and says why.
pub(crate) fn family(
    problem: &Problem,
    device: &DeviceSpec,
    options: &Options,
    execution: Execution,
    of: fn(&Problem, &DeviceSpec, &Options) -> Result<Vec<Plan>>,
) -> Vec<Plan> {
    // Only launches per stage keep loops.
    let is_asked = is_asked(options, execution) && !options.lowering.keeps_loops();
    if is_asked { of(problem, device, options).unwrap_or_default() } else { Vec::new() }
}

/// Returns up to `most` of `plans`, which come best first: from coarse differences to fine ones, and unless a
/// full list is asked for no two of one form.
fn spread(plans: Vec<Plan>, most: usize, full: bool) -> Vec<Plan> {
    let shares = if full { [most / 4, most * 3 / 4, most] } else { [most / 2, most, 0] };
    let best = plans.first().map_or(0.0, |plan| plan.estimated_seconds);
    let mut taken = vec![false; plans.len()];
    take(&plans, &mut taken, shares[0].max(1).min(most), |plan| {
        (plan.estimated_seconds <= HOPELESS * best).then(|| coarse(plan))
    });
    take(&plans, &mut taken, shares[1], |plan| Some(form(plan)));
    take(&plans, &mut taken, shares[2], |plan| Some(kernel(plan)));
    plans.into_iter().zip(taken).filter_map(|(plan, taken)| taken.then_some(plan)).collect()
}

/// Takes plans, the best first, until `most` are taken; skips a plan whose key a taken plan already has.
fn take<K: Eq + Hash>(plans: &[Plan], taken: &mut [bool], most: usize, key: impl Fn(&Plan) -> Option<K>) {
    let mut count = taken.iter().filter(|taken| **taken).count();
    let mut seen: HashSet<K> =
        plans.iter().zip(&*taken).filter(|(_, t)| **t).filter_map(|(p, _)| key(p)).collect();
    for (plan, taken) in plans.iter().zip(taken) {
        if count >= most {
            return;
        }
        if !*taken && key(plan).is_some_and(|key| seen.insert(key)) {
            *taken = true;
            count += 1;
        }
    }
}

/// Returns what sets plans of one execution farthest apart: the temporal depth of a streaming plan, the cells
/// per thread of a persistent one.
fn coarse(plan: &Plan) -> Vec<usize> {
    match &plan.schedule {
        Schedule::Persistent(persistent) => persistent.cells_per_thread.to_vec(),
        Schedule::Resident(resident) => vec![resident.depth],
        Schedule::WarpStreaming(streaming) => vec![streaming.depth],
        Schedule::Cpu(_)
        | Schedule::Stepwise(_)
        | Schedule::PersistentProgram(_)
        | Schedule::Overlapped(_)
        | Schedule::PortableStreaming(_) => Vec::new(),
    }
}

/// Returns the coarse key with the threads and cells of a block.
fn form(plan: &Plan) -> Vec<usize> {
    match &plan.schedule {
        Schedule::Persistent(persistent) => [persistent.threads, persistent.cells_per_thread].concat(),
        Schedule::Resident(resident) => {
            [&[resident.depth, resident.warps, resident.exchange as usize][..], &resident.cells_per_thread]
                .concat()
        }
        Schedule::WarpStreaming(streaming) => {
            [&[streaming.depth, streaming.warps, usize::from(streaming.lag)][..], &streaming.cells_per_thread]
                .concat()
        }
        Schedule::Cpu(_)
        | Schedule::Stepwise(_)
        | Schedule::PersistentProgram(_)
        | Schedule::Overlapped(_)
        | Schedule::PortableStreaming(_) => Vec::new(),
    }
}

/// Returns all that makes kernels differ. The number of waves is left out, because two of them may come to
/// the same shares.
fn kernel(plan: &Plan) -> (Option<Recipe>, Vec<usize>) {
    let mut recipe = Recipe::of(plan);
    if let Some(Recipe::WarpStreaming { configuration }) = &mut recipe {
        configuration.waves = 0;
    }
    (recipe, plan.warp_streaming().map(|streaming| vec![streaming.shares]).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use abide_core::{DType, Depth, Shape, catalogue};

    use super::*;

    fn problem(name: &str, extents: &[usize]) -> Problem {
        let program = catalogue::find(name).unwrap().program(extents.len()).unwrap();
        Problem::new(Arc::new(program), Shape::new(extents).unwrap(), DType::F64).unwrap()
    }

    fn list(problem: &Problem, options: &Options) -> Vec<Plan> {
        candidates(problem, &DeviceSpec::preset("h200").unwrap(), options).unwrap()
    }

    fn count(plans: &[Plan], execution: Execution) -> usize {
        plans.iter().filter(|plan| plan.execution == execution).count()
    }

    #[test]
    fn the_own_choice_leads_and_every_execution_has_its_share() {
        let device = DeviceSpec::preset("h200").unwrap();
        for problem in
            [problem("2d5pt", &[2304, 2304]), problem("2d5pt", &[8352, 8352]), problem("3d7pt", &[128; 3])]
        {
            for (tune, most) in [(Tune::Quick, 8), (Tune::Full, 40)] {
                let options = Options { tune, ..Options::default() };
                let plans = list(&problem, &options);
                assert_eq!(plans.len(), most, "{}", problem.shape);
                assert_eq!(plans[0], plan(&problem, &device, &options).unwrap());
                assert_eq!(count(&plans, Execution::Stepwise), 1);
                let firsts = [
                    (
                        Execution::Persistent,
                        on_chip_plans(&problem, &device, &options).unwrap()[0].estimated_seconds,
                    ),
                    (
                        Execution::Streaming,
                        streaming_plans(&problem, &device, &options).unwrap()[0].estimated_seconds,
                    ),
                ];
                let best = firsts[0].1.min(firsts[1].1);
                for (execution, first) in firsts {
                    let (count, is_far) = (count(&plans, execution), first > 3.0 * best);
                    let fair = if is_far { 1..=most / 8 } else { most * 3 / 8..=most - 2 };
                    assert!(fair.contains(&count), "{} {execution}: {count}, far: {is_far}", problem.shape);
                }
                let rest = &plans[1 + usize::from(plans[0].execution != Execution::Stepwise)..];
                assert!(rest.is_sorted_by_key(|plan| plan.estimated_seconds));
            }
        }
    }

    #[test]
    fn plans_differ_in_form_and_in_a_full_list_in_their_kernels() {
        for problem in [problem("2d5pt", &[8352, 8352]), problem("poisson", &[127, 193, 251])] {
            let quick = list(&problem, &Options { tune: Tune::Quick, ..Options::default() });
            let forms: HashSet<_> = quick.iter().map(|plan| (plan.execution.name(), form(plan))).collect();
            assert_eq!(forms.len(), quick.len(), "{forms:?}");
            let streams = quick.iter().filter_map(Plan::warp_streaming);
            assert!(streams.map(|stream| stream.depth).collect::<HashSet<_>>().len() > 1);
            let full = list(&problem, &Options { tune: Tune::Full, ..Options::default() });
            assert_eq!(full.iter().map(kernel).collect::<HashSet<_>>().len(), full.len());
            let forms: HashSet<_> = full.iter().map(|plan| (plan.execution.name(), form(plan))).collect();
            assert!(forms.len() < full.len() && forms.len() >= full.len() / 2, "{} forms", forms.len());
        }
    }

    #[test]
    fn the_best_of_each_execution_is_among_them() {
        let device = DeviceSpec::preset("h200").unwrap();
        let problem = problem("2d9pt", &[8352, 8352]);
        let options = Options { tune: Tune::Quick, ..Options::default() };
        let plans = list(&problem, &options);
        let firsts = [
            on_chip_plans(&problem, &device, &options).unwrap().swap_remove(0),
            streaming_plans(&problem, &device, &options).unwrap().swap_remove(0),
        ];
        for first in firsts {
            assert!(plans.iter().any(|plan| kernel(plan) == kernel(&first)), "{}", first.summary());
        }
    }

    #[test]
    fn what_is_asked_is_kept_to() {
        let problem = problem("2d5pt", &[2304, 2304]);
        let full = Options { tune: Tune::Full, ..Options::default() };
        let plans = list(&problem, &Options { execution: Execution::Stepwise, ..full });
        assert_eq!(plans.len(), 1);
        let plans = list(
            &problem,
            &Options { execution: Execution::Persistent, cache: CachePolicy::Registers, ..full },
        );
        assert!(plans.len() > 20 && plans.iter().all(|plan| plan.cache == CachePolicy::Registers));
        let plans = list(&problem, &Options { cache: CachePolicy::Shared, ..full });
        assert!(plans.iter().all(|plan| plan.cache == CachePolicy::Shared));
        let plans =
            list(&problem, &Options { execution: Execution::Streaming, depth: Depth::Steps(4), ..full });
        assert!(plans.len() > 10 && plans.iter().all(|plan| plan.depth == 4));
    }

    #[test]
    fn a_device_without_registers_to_plan_with_has_one_plan() {
        let device = DeviceSpec { registers: None, warp: None, ..DeviceSpec::preset("h200").unwrap() };
        let plans = candidates(&problem("2d5pt", &[64, 64]), &device, &Options::default()).unwrap();
        assert_eq!(plans.iter().map(|plan| plan.execution).collect::<Vec<_>>(), [Execution::Stepwise]);
    }
}

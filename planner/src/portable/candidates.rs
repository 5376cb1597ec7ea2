//! The plans that are worth timing on a device that reports almost nothing about itself.

use std::collections::HashSet;

use abide_core::plan::Schedule;
use abide_core::{CachePolicy, DeviceSpec, Execution, Options, Plan, Problem, Result};

use super::plan_portable;
use crate::choice::{family, is_asked, most};
use crate::overlapped::overlapped_plans;
use crate::stepwise::plan_stepwise;
use crate::streaming::portable::portable_streaming_plans;

/// Lists the plans worth trying on a device for which [`plan_portable`] plans. Its own choice comes first,
/// then a launch per stage, then streaming and overlapped plans, half of each.
///
/// Each half goes from coarse differences to fine, in the order of the estimates: the best for several blocks
/// of a thread, then for several depths of each, then with other threads.
///
/// # Errors
///
/// Those of [`plan_portable`].
pub fn candidates(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Vec<Plan>> {
    let mut plans = vec![plan_portable(problem, device, options)?];
    let most = most(options);
    if is_asked(options, Execution::Stepwise) && options.cache == CachePolicy::Auto {
        let stepwise =
            plan_stepwise(problem, device, options).ok().filter(|plan| plan.execution != plans[0].execution);
        plans.extend(stepwise);
    }
    let streaming = family(problem, device, options, Execution::Streaming, portable_streaming_plans);
    let overlapped = family(problem, device, options, Execution::Overlapped, overlapped_plans);
    let room = most - plans.len();
    take(&mut plans, &streaming, if overlapped.is_empty() { room } else { room / 2 });
    let room = most - plans.len();
    take(&mut plans, &overlapped, room);
    Ok(plans)
}

/// Takes up to `count` plans of a family, in three turns from coarse differences to fine.
fn take(plans: &mut Vec<Plan>, family: &[Plan], count: usize) {
    let before = plans.len();
    for (share, kind) in [(count / 2, cells as Kind), (count * 4 / 5, depth_and_cells), (count, all)] {
        let mut seen: HashSet<Vec<usize>> = plans.iter().map(kind).collect();
        for plan in family {
            if plans.len() - before >= share {
                break;
            }
            if seen.insert(kind(plan)) {
                plans.push(plan.clone());
            }
        }
    }
}

/// A function for the numbers that set plans apart. They begin with a number of the plan's own family.
type Kind = fn(&Plan) -> Vec<usize>;

fn cells(plan: &Plan) -> Vec<usize> {
    match &plan.schedule {
        Schedule::Overlapped(overlapped) => [&[1], &overlapped.configuration.cells[..]].concat(),
        Schedule::PortableStreaming(streaming) => [&[2], &streaming.configuration.cells[..]].concat(),
        _ => Vec::new(),
    }
}

fn depth_and_cells(plan: &Plan) -> Vec<usize> {
    [cells(plan), vec![plan.depth as usize]].concat()
}

fn all(plan: &Plan) -> Vec<usize> {
    let rest = match &plan.schedule {
        Schedule::Overlapped(overlapped) => {
            [&overlapped.configuration.threads[..], &[usize::from(overlapped.configuration.double)]].concat()
        }
        Schedule::PortableStreaming(streaming) => {
            let configuration = &streaming.configuration;
            [
                &configuration.threads[..],
                &[configuration.ahead, configuration.handover.barriers(), configuration.shares],
            ]
            .concat()
        }
        _ => Vec::new(),
    };
    [depth_and_cells(plan), rest].concat()
}

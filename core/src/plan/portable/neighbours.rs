//! The plans that are worth timing on a device that tells next to nothing of itself.

use std::collections::HashSet;

use super::plan_portable;
use crate::device::DeviceSpec;
use crate::error::Result;
use crate::plan::{Blocks, CachePolicy, Execution, Options, Plan, Tune, blocks_plans, plan_tiles};
use crate::program::Problem;

/// Plans of a quick and of a full list.
const QUICK: usize = 8;
const FULL: usize = 40;

/// The plans worth trying on a device that is planned for by [`plan_portable`]: its own choice first, then a launch a
/// stage, then windows from coarse differences to fine, each by their estimate: the best for several forms of a thread's
/// block, then for several depths of each, then with other threads.
pub fn neighbours(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Vec<Plan>> {
    let mut plans = vec![plan_portable(problem, device, options)?];
    let most = if options.tune == Tune::Full { FULL } else { QUICK };
    let asked = |execution| matches!(options.execution, Execution::Auto) || options.execution == execution;
    if asked(Execution::Stepwise) && options.cache == CachePolicy::Auto {
        let stepwise = plan_tiles(problem, device, options).ok().filter(|plan| plan.execution != plans[0].execution);
        plans.extend(stepwise);
    }
    if asked(Execution::Streaming) {
        let windows = blocks_plans(problem, device, options).unwrap_or_default();
        for (share, kind) in [(most / 2, cells as Kind), (most * 4 / 5, depth_and_cells), (most, all)] {
            let mut seen: HashSet<Vec<usize>> = plans.iter().filter_map(Plan::blocks).map(kind).collect();
            for plan in &windows {
                if plans.len() >= share {
                    break;
                }
                if plan.blocks().is_some_and(|blocks| seen.insert(kind(blocks))) {
                    plans.push(plan.clone());
                }
            }
        }
    }
    Ok(plans)
}

/// What sets windows apart.
type Kind = fn(&Blocks) -> Vec<usize>;

fn cells(blocks: &Blocks) -> Vec<usize> {
    blocks.form.cells.to_vec()
}

fn depth_and_cells(blocks: &Blocks) -> Vec<usize> {
    [&[blocks.form.depth], &blocks.form.cells[..]].concat()
}

fn all(blocks: &Blocks) -> Vec<usize> {
    [&depth_and_cells(blocks)[..], &blocks.form.threads, &[usize::from(blocks.form.double)]].concat()
}

//! Plans of batches: whether members run side by side or one after another.

use abide_core::plan::{Batched, Order};
use abide_core::{DeviceSpec, Error, Options, Plan, Problem, Result};

use super::plan as plan_alone;
use crate::resident;

/// Plans a batch whose members run by the plan of a member alone, which `plan` makes.
pub fn plan_members(
    problem: &Problem,
    order: Order,
    plan: impl FnOnce(&Problem) -> Result<Plan>,
) -> Result<Plan> {
    problem.check()?;
    let mut plan = plan(&problem.member(0))?;
    plan.batch = Some(Batched { members: problem.members(), order });
    if order == Order::InTurn && problem.members() > 1 {
        plan.notes.push("the members of the batch run one after another".to_owned());
    }
    Ok(plan)
}

/// Plans a batch for a device of blocks: its members side by side, a block for each, where they fit and that is
/// estimated to be faster. Otherwise they run in turn, each by the plan of a member alone, which `alone` makes, and
/// a note says why.
pub fn plan_batch(
    problem: &Problem,
    device: &DeviceSpec,
    options: &Options,
    alone: impl FnOnce(&Problem) -> Result<Plan>,
) -> Result<Plan> {
    let why = match at_once(problem, device, options) {
        Ok(plan) => return Ok(plan),
        Err(why) => why,
    };
    let mut plan = plan_members(problem, Order::InTurn, alone)?;
    if problem.members() > 1 {
        plan.notes.push(format!("not side by side because {why}"));
    }
    Ok(plan)
}

/// Returns the plan of all members side by side; where they are to run in turn, the error is the reason.
fn at_once(problem: &Problem, device: &DeviceSpec, options: &Options) -> std::result::Result<Plan, String> {
    let cannot = |why: Error| format!("that cannot be: {why}");
    let plan = resident::plan_batch(problem, device, options).map_err(cannot)?;
    if let Ok(alone) = plan_alone(&problem.member(0), device, options)
        && alone.estimated_seconds < plan.estimated_seconds
    {
        let micros = |plan: &Plan| 1e6 * plan.estimated_seconds * problem.members() as f64;
        return Err(format!(
            "that is estimated at {:.2} µs a step of all members, and one after another at {:.2} µs",
            micros(&plan),
            micros(&alone)
        ));
    }
    Ok(plan)
}

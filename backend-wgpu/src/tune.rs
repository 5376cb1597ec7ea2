//! Tuning: plans around the planner's own choice, timed one after another; the fastest is kept.

use std::time::Duration;

use abide_core::plan::{CachePolicy, Execution, Measured};
use abide_core::{Array, Backend, Error, Plan, Problem, Result, Session};
use abide_planner::{plan, plan_portable, portable_candidates};
use abide_tuning::Stand;
use abide_tuning::tuned::Tuning;

/// Returns the plan for a problem: as the options ask, the one that an earlier tuning kept, the one that
/// tuning finds now, or the planner's own choice.
pub(crate) fn planned(tuning: &Tuning<'_>, backend: &dyn Backend) -> Result<Plan> {
    if !tuning.problem.is_plain() {
        // Drivers report no registers.
        return tuning.grouped(|| other(tuning, backend), |_| Ok(Vec::new()));
    }
    other(tuning, backend)
}

/// Does the same, without a search for groups.
fn other(tuning: &Tuning<'_>, backend: &dyn Backend) -> Result<Plan> {
    let Tuning { problem, device, options, .. } = *tuning;
    let own = match (options.execution, options.cache) {
        (Execution::Auto, CachePolicy::Auto) | (Execution::Overlapped | Execution::Streaming, _) => {
            plan_portable(problem, device, options)?
        }
        // A launch per stage leaves nothing to choose.
        (Execution::Stepwise, _) => return plan_portable(problem, device, options),
        // This refuses a persistent kernel, and notes why a cache policy is not followed.
        _ => return plan(problem, device, options),
    };
    match problem.is_plain() {
        true => tuning.plan(own, || measure(tuning, backend)),
        // Other programs have a launch per stage or group alone.
        false => Ok(own),
    }
}

/// Times the plans worth trying, until the budget is used up. The caller sees to it that nothing else is
/// timed meanwhile.
pub(crate) fn measure(tuning: &Tuning<'_>, backend: &dyn Backend) -> Result<Vec<Measured>> {
    if !tuning.problem.is_plain() {
        return Err(Error::unsupported(
            "backend wgpu",
            format!("{} runs a launch per stage, and there is no other plan", tuning.problem.program.name()),
            "leave tuning out",
        ));
    }
    let plans = portable_candidates(tuning.problem, tuning.device, tuning.options)?;
    let stand = Sessions { backend, problem: tuning.problem, start: tuning.start()? };
    Ok(tuning.measure(stand, plans.into_iter().map(|plan| (Measured::of(plan), Some(()))).collect()))
}

/// A backend that opens a session for each plan.
struct Sessions<'a> {
    backend: &'a dyn Backend,
    problem: &'a Problem,
    start: Vec<Array>,
}

impl Stand for Sessions<'_> {
    type Code = ();
    type Run<'s>
        = Box<dyn Session>
    where
        Self: 's;

    /// Compiling is included, because drivers compile when they please.
    const BUDGETS: [Duration; 2] = [Duration::from_secs(90), Duration::from_secs(15)];
    const WARMS_WHILE_LENGTHENING: bool = true;

    fn open(&mut self, plan: &Plan, (): ()) -> Result<Box<dyn Session>> {
        self.backend.open(self.problem, plan, self.start.clone())
    }
}

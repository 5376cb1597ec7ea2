//! The time of the planner's choice against that of the best plan that a backend has.

use serde::Serialize;

use super::check::{differs, same_path};
use super::timing::{Timed, rates};
use super::{Settings, afford, begin, random};
use crate::backend::Opened;
use crate::program::Problem;
use crate::{CachePolicy, Depth, Execution, Options, Plan, Result, Tune};

/// The depths that are tried beside the planner's own.
const DEPTHS: [u32; 5] = [1, 2, 4, 8, 16];

/// The plans that are timed in turn with the planner's choice: those that a first look found fastest.
const FINALISTS: usize = 2;

/// The planner's choice and the best plan for a problem, both timed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Regret {
    /// The planner's choice in one line.
    pub chosen: String,
    /// The fastest plan in one line; the choice itself where none was faster.
    pub best: String,
    /// The median seconds per step of the choice.
    pub chosen_seconds: f64,
    /// The median seconds per step of the fastest.
    pub best_seconds: f64,
    /// The plans that were timed.
    pub tried: usize,
    /// The differences found between the states that the plans left; empty where all is right.
    pub faults: Vec<String>,
}

impl Regret {
    /// Returns the choice's time over the best's: 1 where the planner chose best.
    pub fn regret(&self) -> f64 {
        self.chosen_seconds / self.best_seconds
    }
}

/// Times the planner's choice and every other execution, cache policy and depth that the backend has for a problem:
/// each once for a sixth of `settings.seconds`, then the fastest and the choice in turn, `settings.repeats` times. The
/// states that these leave are compared to the bit, where the backend promises bits.
///
/// Tuned plans are not used. An error means that the problem could not be run at all; a plan that does not fit the
/// device is left out.
pub fn regret(opened: &Opened, problem: &Problem, settings: &Settings) -> Result<Regret> {
    abide_cpu::start_threads()?;
    // The initial values, the sessions in turn, and two states that are compared.
    let copies = 3 + 2 * (1 + FINALISTS) as u128;
    afford(problem, "memory to time plans in turn", copies, "choose a smaller domain by --only")?;
    let start = random(problem)?;
    let own = Options { tune: Tune::Off, ..Options::default() };
    let timed = |options: &Options| -> Result<Timed<'_>> {
        Ok(Timed::new(begin(opened, problem, options, &start)?, &start))
    };
    let mut chosen = timed(&own)?;
    let chosen_plan = chosen.session().plan().clone();
    let mut looked: Vec<(f64, Options)> = Vec::new();
    for (options, _) in others(opened, problem, &chosen_plan) {
        // The device may have no room for it, or the compiler no registers.
        let Ok(mut other) = timed(&options) else { continue };
        let steps = other.calibrate(settings.seconds / 6.0)?;
        looked.push((other.run(steps)? / steps as f64, options));
    }
    let tried = looked.len() + 1;
    looked.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut runs = vec![chosen];
    for (_, options) in looked.into_iter().take(FINALISTS) {
        runs.push(timed(&options)?);
    }
    let mut steps = u64::MAX;
    for run in &mut runs {
        steps = steps.min(run.calibrate(settings.seconds)?.max(settings.least_steps));
    }
    let mut seconds = vec![Vec::new(); runs.len()];
    for _ in 0..settings.repeats {
        for (run, seconds) in runs.iter_mut().zip(&mut seconds) {
            seconds.push(run.run(steps)? / steps as f64);
        }
    }
    let median = |all: &[f64]| rates(all).map_or(f64::INFINITY, |found| found.median);
    let medians: Vec<f64> = seconds.iter().map(|all| median(all)).collect();
    let best = (0..runs.len()).min_by(|&a, &b| medians[a].total_cmp(&medians[b])).unwrap_or(0);
    let best_plan = runs[best].session().plan().summary();
    let mut faults = Vec::new();
    if crate::backend::ulp_bound_per_step(opened.backend.name(), problem, 1.0)? == 0.0 {
        let expected = runs[0].read()?;
        for run in runs.iter_mut().skip(1) {
            let other = run.session().plan().summary();
            let how = differs(problem, &expected, &run.read()?);
            faults.extend(how.map(|how| format!("{other}: {how}")));
        }
    }
    Ok(Regret {
        chosen: chosen_plan.summary(),
        best: best_plan,
        chosen_seconds: medians[0],
        best_seconds: medians[best],
        tried,
        faults,
    })
}

/// Returns the options of all plans that a backend has for a problem beside the planner's choice, each once, with the
/// plans.
fn others(opened: &Opened, problem: &Problem, chosen: &Plan) -> Vec<(Options, Plan)> {
    let depths = std::iter::once(Depth::Auto).chain(DEPTHS.map(Depth::Steps));
    let executions = Execution::ALL.iter().filter(|execution| **execution != Execution::Auto);
    let mut all: Vec<(Options, Plan)> = Vec::new();
    for &execution in executions {
        for &cache in CachePolicy::ALL {
            for depth in depths.clone() {
                let options = Options { execution, cache, depth, tune: Tune::Off, ..Options::default() };
                let Ok(plan) = opened.backend.plan(problem, &options) else { continue };
                let is_new = |other: &Plan| !(same_path(other, &plan) && other.cache == plan.cache);
                if plan.execution == execution && is_new(chosen) && all.iter().all(|(_, other)| is_new(other))
                {
                    all.push((options, plan));
                }
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Shape, bench};

    #[test]
    fn plans_are_different_and_the_best_is_no_slower_than_the_choice() {
        let opened = crate::backend::open("cpu").unwrap();
        let problem = bench::problem("2d5pt", Shape::new(&[96, 131]).unwrap(), DType::F32).unwrap();
        let chosen = opened.backend.plan(&problem, &Options::default()).unwrap();
        let others = others(&opened, &problem, &chosen);
        let mut executions: Vec<_> = others.iter().map(|(_, plan)| plan.execution.name()).collect();
        executions.push(chosen.execution.name());
        for execution in ["stepwise", "streaming", "persistent"] {
            assert!(executions.contains(&execution), "{executions:?}");
        }
        let settings = Settings { seconds: 1e-3, ..Settings::quick() };
        let found = regret(&opened, &problem, &settings).unwrap();
        assert_eq!(found.tried, others.len() + 1);
        assert!(found.regret() >= 1.0 && found.best_seconds > 0.0, "{found:?}");
        assert!(found.faults.is_empty(), "{found:?}");
    }
}

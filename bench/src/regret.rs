//! The time of the planner's choice against that of the best plan that a backend has.

use abide::backend::Opened;
use abide::plan::Recipe;
use abide::program::Problem;
use abide::{CachePolicy, Depth, Execution, Options, Plan, Result, Tune};
use serde::Serialize;

use super::check::{differs, same_path};
use super::timing::{Timed, rates};
use super::{Settings, afford, begin, random};

/// The depths that are tried beside the planner's own.
const DEPTHS: [u32; 10] = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16];

/// The plans that are timed in turn with the planner's choice: those that a first look found fastest.
const FINALISTS: usize = 2;

/// A plan that takes this many times as long as the fastest yet is no finalist: its calibration is not refined.
const HOPELESS: f64 = 1.5;

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
    /// All plans that were timed, the choice first.
    pub looked: Vec<Looked>,
    /// The differences found between the states that the plans left; empty where all is right.
    pub faults: Vec<String>,
}

impl Regret {
    /// Returns the choice's time over the best's: 1 where the planner chose best.
    pub fn regret(&self) -> f64 {
        self.chosen_seconds / self.best_seconds
    }
}

/// A plan and the time of its first look.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Looked {
    /// The plan in one line.
    pub plan: String,
    /// The configuration by which a tuned plan is kept; `None` of a launch per step.
    pub recipe: Option<Recipe>,
    /// The planner's estimate in seconds per step.
    pub estimated_seconds: f64,
    /// The seconds per step of one run; of the calibration's last one where the plan was far from the fastest.
    pub seconds: f64,
}

/// Times the planner's choice and every other execution, cache policy and depth that the backend has for a problem:
/// each once for a sixth of `settings.seconds`, or less where it is far from the fastest, then the fastest and the
/// choice in turn, `settings.repeats` times for as long. The states that these leave are compared to the bit, where
/// the backend promises bits. All runs are whole passes of their plans, and go on from the values that are there. A problem
/// with one plan is timed by the first look alone.
///
/// Tuned plans are not used. An error means that the problem could not be run at all; a plan that does not fit the
/// device is left out.
pub fn regret(opened: &Opened, problem: &Problem, settings: &Settings) -> Result<Regret> {
    abide_cpu::start_threads()?;
    // The initial values, the sessions in turn, and two states that are compared.
    let copies = 3 + 2 * (1 + FINALISTS) as u128;
    afford(problem, "memory to time plans in turn", copies, "choose a smaller domain by --only")?;
    let start = random(problem)?;
    let timed = |options: &Options| -> Result<Timed<'_>> {
        Ok(Timed::new(begin(opened, problem, options, &start)?, &start).in_whole_passes())
    };
    let mut chosen = timed(&own())?;
    // The values of a look are a few steps old: to load them anew would take longer than the look.
    let look = |run: &mut Timed<'_>, fastest: f64| -> Result<Looked> {
        let steps = run.calibrate(settings.seconds / 6.0)?;
        let calibrated = run.step_seconds();
        let seconds = if calibrated > HOPELESS * fastest { calibrated } else { run.go_on(steps)? };
        let plan = run.session().plan();
        let recipe = Recipe::of(plan);
        Ok(Looked { plan: plan.summary(), recipe, estimated_seconds: plan.estimated_seconds, seconds })
    };
    let mut looked = vec![look(&mut chosen, f64::INFINITY)?];
    let mut fastest = looked[0].seconds;
    let chosen_plan = chosen.session().plan().clone();
    let mut others: Vec<(f64, Options)> = Vec::new();
    for (options, _) in plans(opened, problem, &chosen_plan) {
        // The device may have no room for it, or the compiler no registers.
        let Ok(mut other) = timed(&options) else { continue };
        let found = look(&mut other, fastest)?;
        fastest = fastest.min(found.seconds);
        others.push((found.seconds, options));
        looked.push(found);
    }
    if others.is_empty() {
        let (plan, seconds) = (chosen_plan.summary(), looked[0].seconds);
        return Ok(Regret {
            chosen: plan.clone(),
            best: plan,
            chosen_seconds: seconds,
            best_seconds: seconds,
            looked,
            faults: Vec::new(),
        });
    }
    others.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut runs = vec![chosen];
    for (_, options) in others.into_iter().take(FINALISTS) {
        runs.push(timed(&options)?);
    }
    let mut steps = u64::MAX;
    for run in &mut runs {
        steps = steps.min(run.calibrate(settings.seconds / 6.0)?.max(settings.least_steps));
    }
    let mut seconds = vec![Vec::new(); runs.len()];
    for _ in 0..settings.repeats {
        for (run, seconds) in runs.iter_mut().zip(&mut seconds) {
            seconds.push(run.go_on(steps)?);
        }
    }
    let median = |all: &[f64]| rates(all).map_or(f64::INFINITY, |found| found.median);
    let medians: Vec<f64> = seconds.iter().map(|all| median(all)).collect();
    let best = (0..runs.len()).min_by(|&a, &b| medians[a].total_cmp(&medians[b])).unwrap_or(0);
    let best_plan = runs[best].session().plan().summary();
    let mut faults = Vec::new();
    if abide::backend::ulp_bound_per_step(opened.backend.name(), problem, 1.0)? == 0.0 {
        // No fewer steps than were timed, and whole passes of each.
        let unit = runs.iter().fold(1, |all, run| common_multiple(all, run.whole(1)));
        let steps = steps.next_multiple_of(unit);
        let mut expected = None;
        for run in &mut runs {
            run.rerun(steps)?;
            let (state, plan) = (run.read()?, run.session().plan().summary());
            match &expected {
                None => expected = Some(state),
                Some(first) => {
                    let how = differs(problem, first, &state);
                    faults.extend(how.map(|how| format!("after {steps} steps, {plan}: {how}")));
                }
            }
        }
    }
    Ok(Regret {
        chosen: chosen_plan.summary(),
        best: best_plan,
        chosen_seconds: medians[0],
        best_seconds: medians[best],
        looked,
        faults,
    })
}

/// Returns the planner's choice and all plans with which [`regret`] compares it.
pub fn tried(opened: &Opened, problem: &Problem) -> Vec<Plan> {
    let Ok(chosen) = opened.backend.plan(problem, &own()) else { return Vec::new() };
    let mut all: Vec<Plan> = plans(opened, problem, &chosen).into_iter().map(|(_, plan)| plan).collect();
    all.insert(0, chosen);
    all
}

fn own() -> Options {
    Options { tune: Tune::Off, ..Options::default() }
}

fn common_multiple(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}

/// Returns the options of all plans that a backend has for a problem beside the planner's choice, each once, with the
/// plans.
fn plans(opened: &Opened, problem: &Problem, chosen: &Plan) -> Vec<(Options, Plan)> {
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
    use abide::{DType, Shape};

    #[test]
    fn plans_are_different_and_the_best_is_no_slower_than_the_choice() {
        let opened = abide::backend::open("cpu").unwrap();
        let problem = crate::problem("2d5pt", Shape::new(&[96, 131]).unwrap(), DType::F32).unwrap();
        let chosen = opened.backend.plan(&problem, &Options::default()).unwrap();
        let others = plans(&opened, &problem, &chosen);
        let mut executions: Vec<_> = others.iter().map(|(_, plan)| plan.execution.name()).collect();
        executions.push(chosen.execution.name());
        for execution in ["stepwise", "streaming", "persistent"] {
            assert!(executions.contains(&execution), "{executions:?}");
        }
        let settings = Settings { seconds: 1e-3, ..Settings::quick() };
        let found = regret(&opened, &problem, &settings).unwrap();
        assert_eq!(found.looked.len(), others.len() + 1);
        assert!(found.looked.iter().all(|looked| looked.seconds > 0.0));
        assert_eq!(tried(&opened, &problem).len(), found.looked.len());
        assert!(found.regret() >= 1.0 && found.best_seconds > 0.0, "{found:?}");
        assert!(found.faults.is_empty(), "{found:?}");
    }
}

//! Tuning: plans around the planner's own choice, timed one after another; the fastest is kept.

use std::time::Duration;

use abide_cache::tuned::{Tuning, alone};
use abide_core::backend::Tuner;
use abide_core::plan::{
    CachePolicy, Execution, Measured, Options, Tune, plan, plan_portable, portable_neighbours,
};
use abide_core::{Array, Backend, Error, Plan, Problem, Result};
use web_time::Instant;

use crate::WgpuBackend;

/// The least seconds of a timed run: beside them the submission and the clock's resolution are nothing.
const RUN_SECONDS: f64 = 0.02;

/// Seconds of work before the first run is timed, in which an idle device reaches its clock.
const WARM_UP_SECONDS: f64 = 0.3;

/// A plan whose first run takes so many times as long as the fastest plan's runs is not run again.
const BEATEN: f64 = 1.3;

/// How long timing may take, compiling included, for drivers compile when they please.
fn budget(tune: Tune) -> Duration {
    Duration::from_secs(if tune == Tune::Full { 90 } else { 15 })
}

/// Timed runs of a plan, of which the median counts.
fn repeats(tune: Tune) -> usize {
    if tune == Tune::Full { 5 } else { 3 }
}

/// The plan for a problem: what an earlier tuning kept, or what tuning finds now, or the planner's own
/// choice, as the options ask.
pub(crate) fn planned(backend: &WgpuBackend, problem: &Problem, options: &Options) -> Result<Plan> {
    let own = match (options.execution, options.cache) {
        (Execution::Auto, CachePolicy::Auto) | (Execution::Overlapped | Execution::Streaming, _) => {
            plan_portable(problem, &backend.spec, options)?
        }
        // A launch per stage leaves nothing to choose.
        (Execution::Stepwise, _) => return plan_portable(problem, &backend.spec, options),
        // Refuses a persistent kernel, and notes why a cache policy is not followed.
        _ => return plan(problem, &backend.spec, options),
    };
    let driver = backend.driver();
    tuning(backend, problem, options, &driver).plan(own, || measure(backend, problem, options))
}

fn tuning<'a>(
    backend: &'a WgpuBackend,
    problem: &'a Problem,
    options: &'a Options,
    driver: &'a str,
) -> Tuning<'a> {
    Tuning { winners: &backend.winners, device: &backend.spec, driver, problem, options }
}

impl Tuner for WgpuBackend {
    fn measure(&self, problem: &Problem, options: &Options) -> Result<Vec<Measured>> {
        let _alone = alone();
        measure(self, problem, options)
    }
}

/// Times the plans worth trying, until the budget is used up. The caller sees to it that nothing else is
/// timed meanwhile.
fn measure(backend: &WgpuBackend, problem: &Problem, options: &Options) -> Result<Vec<Measured>> {
    let plans = portable_neighbours(problem, &backend.spec, options)?;
    let fill = |field| problem.program.start(field).fill(&problem.shape, problem.dtype);
    let start: Vec<Array> = (0..problem.program.fields().len()).map(fill).collect::<Result<_>>()?;
    let (begun, budget) = (Instant::now(), budget(options.tune));
    let mut rows: Vec<Measured> = Vec::with_capacity(plans.len());
    let mut is_warm = false;
    for plan in plans {
        let predicted_seconds = plan.estimated_seconds;
        let mut row = Measured { plan, predicted_seconds, seconds: None, note: None };
        let best = Measured::fastest(&rows).and_then(|place| rows[place].seconds);
        if best.is_some() && begun.elapsed() > budget {
            row.note = Some(format!("left out: the {} s for timing were used up", budget.as_secs()));
        } else {
            match time(backend, problem, &row.plan, &start, best, repeats(options.tune), is_warm) {
                Ok(seconds) => (row.seconds, is_warm) = (Some(seconds), true),
                Err(error) => row.note = Some(format!("it does not run: {}", brief(&error))),
            }
        }
        rows.push(row);
    }
    tuning(backend, problem, options, &backend.driver()).keep(&rows);
    Ok(rows)
}

/// The median seconds a step of a plan; of its first run alone where `best` is far from it.
fn time(
    backend: &WgpuBackend,
    problem: &Problem,
    plan: &Plan,
    start: &[Array],
    best: Option<f64>,
    repeats: usize,
    is_warm: bool,
) -> Result<f64> {
    let mut session = backend.open(problem, plan, start.to_vec())?;
    // Whole rounds: fewer steps take a window as long.
    let round = u64::from(plan.depth.max(1));
    // The first may also compile.
    session.advance(round)?;
    let mut steps = round;
    let mut seconds = session.advance(steps)?;
    while seconds < RUN_SECONDS {
        let factor = (1.2 * RUN_SECONDS / seconds.max(1e-7)).clamp(2.0, 1000.0);
        steps = ((steps as f64 * factor) as u64).next_multiple_of(round);
        seconds = session.advance(steps)?;
    }
    let mut worked = if is_warm { WARM_UP_SECONDS } else { seconds };
    while worked < WARM_UP_SECONDS {
        seconds = session.advance(steps)?;
        worked += seconds;
    }
    let mut samples = vec![seconds / steps as f64];
    while samples.len() < repeats && best.is_none_or(|best| samples[0] < BEATEN * best) {
        samples.push(session.advance(steps)? / steps as f64);
    }
    samples.sort_by(f64::total_cmp);
    Ok(samples[samples.len() / 2])
}

/// The first line of an error: a compiler's log is long.
fn brief(error: &Error) -> String {
    error.to_string().lines().next().unwrap_or_default().chars().take(200).collect()
}

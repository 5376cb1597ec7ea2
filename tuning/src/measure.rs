//! Timing plans on a device, one after another: their order, the length of runs, and the end of timing.

use std::time::Duration;

use abide_core::plan::{Measured, Tune};
use abide_core::{Error, Plan, Result, Session};
use web_time::Instant;

/// The least seconds of a timed run, beside which a launch and the clock's resolution are nothing.
const RUN_SECONDS: f64 = 0.02;

/// Seconds of work before the first run is timed, in which an idle device reaches its clock.
const WARM_UP_SECONDS: f64 = 0.3;

/// The factor by which a plan's first run may be slower than the fastest plan's runs; beyond it the plan is
/// not run again.
const BEATEN: f64 = 1.3;

/// A device on which one plan after another runs.
pub trait Stand {
    /// The backend's preparation of a plan, such as a compiled kernel.
    type Code;

    /// A plan ready to run; it gives back what it holds of the device when it is dropped.
    type Run<'s>: Run
    where
        Self: 's;

    /// The time that timing may take: under [`Tune::Full`], and under less.
    const BUDGETS: [Duration; 2];

    /// The passes that the device is given at once, if a run has as many; such a run is a multiple of them.
    const PASSES_AT_ONCE: u64 = 1;

    /// Whether the run that showed how many steps to time counts as warming up.
    const WARMS_WHILE_LENGTHENING: bool;

    /// Returns a plan's run, from the program's own start.
    fn open(&mut self, plan: &Plan, code: Self::Code) -> Result<Self::Run<'_>>;
}

/// A plan at work.
pub trait Run {
    /// Returns the most steps that can be run at once.
    fn most_steps(&self) -> u64;

    /// Runs `steps` steps and returns the seconds that the device took.
    fn run(&mut self, steps: u64) -> Result<f64>;
}

impl Run for Box<dyn Session> {
    fn most_steps(&self) -> u64 {
        u64::MAX
    }

    fn run(&mut self, steps: u64) -> Result<f64> {
        self.advance(steps)
    }
}

/// Returns the first line of an error: a compiler's log is long.
pub fn brief(error: &Error) -> String {
    error.to_string().lines().next().unwrap_or_default().chars().take(200).collect()
}

/// Times the plans that come with code, in order, until the budget is used up; the rows of the other plans
/// already say why they are not timed. The first plan is timed in any case.
pub(crate) fn measure<S: Stand>(
    stand: S,
    candidates: Vec<(Measured, Option<S::Code>)>,
    tune: Tune,
) -> Vec<Measured> {
    let begun = Instant::now();
    by_clock(stand, candidates, tune, || begun.elapsed())
}

fn by_clock<S: Stand>(
    mut stand: S,
    candidates: Vec<(Measured, Option<S::Code>)>,
    tune: Tune,
    elapsed: impl Fn() -> Duration,
) -> Vec<Measured> {
    let is_full = tune == Tune::Full;
    let (budget, repeats) = (S::BUDGETS[usize::from(!is_full)], if is_full { 5 } else { 3 });
    let mut rows: Vec<Measured> = Vec::with_capacity(candidates.len());
    let mut is_warm = false;
    for (mut row, code) in candidates {
        let best = Measured::fastest(&rows).and_then(|row| row.seconds);
        if let Some(code) = code {
            if best.is_some() && elapsed() > budget {
                row.note = Some(format!("left out: the {} s for timing were used up", budget.as_secs()));
            } else {
                match time(&mut stand, &row.plan, code, best, repeats, &mut is_warm) {
                    Ok(seconds) => row.seconds = Some(seconds),
                    Err(error) => row.note = Some(format!("it does not run: {}", brief(&error))),
                }
            }
        }
        rows.push(row);
    }
    rows
}

/// Returns the median seconds per step of a plan's timed runs; of the first run alone where `best` is far
/// below it.
fn time<S: Stand>(
    stand: &mut S,
    plan: &Plan,
    code: S::Code,
    best: Option<f64>,
    repeats: usize,
    is_warm: &mut bool,
) -> Result<f64> {
    let mut run = stand.open(plan, code)?;
    // Whole passes: fewer steps take as long.
    let pass = u64::from(plan.depth.max(1));
    let most = run.most_steps() / pass * pass;
    // The first run may also compile or load.
    run.run(pass)?;
    let mut steps = pass;
    let mut seconds = run.run(steps)?;
    while seconds < RUN_SECONDS && steps < most {
        steps = longer(steps, seconds, pass, S::PASSES_AT_ONCE).min(most);
        seconds = run.run(steps)?;
    }
    if !*is_warm {
        let mut worked = if S::WARMS_WHILE_LENGTHENING { seconds } else { 0.0 };
        while worked < WARM_UP_SECONDS {
            seconds = run.run(steps)?;
            worked += seconds;
        }
        *is_warm = true;
    }
    let mut samples = vec![seconds / steps as f64];
    while samples.len() < repeats && best.is_none_or(|best| samples[0] < BEATEN * best) {
        samples.push(run.run(steps)? / steps as f64);
    }
    samples.sort_by(f64::total_cmp);
    Ok(samples[samples.len() / 2])
}

/// Returns more steps than `steps`, which took `seconds`: about as many as a timed run needs, in whole
/// passes, and where there are enough, in multiples of the passes that the device is given at once.
fn longer(steps: u64, seconds: f64, pass: u64, at_once: u64) -> u64 {
    let factor = (1.2 * RUN_SECONDS / seconds.max(1e-7)).clamp(2.0, 1000.0);
    let wanted = (steps as f64 * factor) as u64;
    let unit = if wanted >= at_once * pass { at_once * pass } else { pass };
    wanted.next_multiple_of(unit)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::sync::Arc;

    use abide_core::plan::Options;
    use abide_core::{DType, DeviceSpec, Problem, Shape, catalogue};

    use super::*;

    /// The behaviour of a plan on the fake device.
    #[derive(Clone, Copy)]
    struct Fake {
        /// Seconds per step.
        step: f64,
        most: u64,
        /// The run that something else slows down.
        slow: Option<isize>,
        /// The run that fails, counted from 0; −1 where opening fails.
        fails: Option<isize>,
    }

    const WELL: Fake = Fake { step: 1e-3, most: u64::MAX, slow: None, fails: None };

    /// All runs, by plan, and a clock that stands still between runs.
    #[derive(Default)]
    struct Log {
        runs: Vec<(usize, u64)>,
        seconds: f64,
        open: Option<usize>,
    }

    #[derive(Clone, Default)]
    struct Device<const AT_ONCE: u64, const WARMS: bool>(Rc<RefCell<Log>>);

    struct FakeRun {
        log: Rc<RefCell<Log>>,
        number: usize,
        fake: Fake,
        done: isize,
    }

    impl<const AT_ONCE: u64, const WARMS: bool> Stand for Device<AT_ONCE, WARMS> {
        type Code = (usize, Fake);
        type Run<'s> = FakeRun;
        const BUDGETS: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(5)];
        const PASSES_AT_ONCE: u64 = AT_ONCE;
        const WARMS_WHILE_LENGTHENING: bool = WARMS;

        fn open(&mut self, _: &Plan, (number, fake): (usize, Fake)) -> Result<FakeRun> {
            if fake.fails == Some(-1) {
                return Err(Error::device("fake", "opening", "it is stuck\nsecond line"));
            }
            assert_eq!(self.0.borrow_mut().open.replace(number), None, "one plan at a time");
            Ok(FakeRun { log: self.0.clone(), number, fake, done: 0 })
        }
    }

    impl Run for FakeRun {
        fn most_steps(&self) -> u64 {
            self.fake.most
        }

        fn run(&mut self, steps: u64) -> Result<f64> {
            self.done += 1;
            if self.fake.fails == Some(self.done - 1) {
                return Err(Error::device("fake", "running", "it stopped"));
            }
            let mut log = self.log.borrow_mut();
            log.runs.push((self.number, steps));
            let slowness = if self.fake.slow == Some(self.done - 1) { 2.0 } else { 1.0 };
            let seconds = steps as f64 * self.fake.step * slowness;
            log.seconds += seconds;
            Ok(seconds)
        }
    }

    impl Drop for FakeRun {
        fn drop(&mut self) {
            self.log.borrow_mut().open = None;
        }
    }

    fn plan(depth: u32) -> Plan {
        let program = Arc::new(catalogue::find("2d5pt").unwrap().program(2).unwrap());
        let problem = Problem::new(program, Shape::new(&[64, 64]).unwrap(), DType::F32).unwrap();
        let device = DeviceSpec::preset("h200").unwrap();
        Plan { depth, ..abide_planner::plan(&problem, &device, &Options::default()).unwrap() }
    }

    /// Times plans of this depth, on a clock that only runs move; returns the rows, and the steps of each
    /// plan's runs.
    fn timed<const AT_ONCE: u64, const WARMS: bool>(
        depth: u32,
        fakes: &[Option<Fake>],
        tune: Tune,
    ) -> (Vec<Measured>, Vec<Vec<u64>>) {
        let device = Device::<AT_ONCE, WARMS>::default();
        let (log, plan) = (device.0.clone(), plan(depth));
        let row = |(number, fake): (usize, &Option<Fake>)| {
            let row = Measured { note: Some(format!("row {number}")), ..Measured::of(plan.clone()) };
            (row, fake.map(|fake| (number, fake)))
        };
        let candidates = fakes.iter().enumerate().map(row).collect();
        let rows = by_clock(device, candidates, tune, || Duration::from_secs_f64(log.borrow().seconds));
        assert_eq!(log.borrow().open, None);
        let runs = |number| log.borrow().runs.iter().filter(|run| run.0 == number).map(|run| run.1).collect();
        (rows, (0..fakes.len()).map(runs).collect())
    }

    fn microseconds(rows: &[Measured]) -> Vec<Option<u64>> {
        rows.iter().map(|row| row.seconds.map(|seconds| (seconds * 1e6).round() as u64)).collect()
    }

    #[test]
    fn a_plan_is_loaded_lengthened_warmed_up_once_and_repeated() {
        let fakes = [Some(WELL), Some(Fake { step: 1.2e-3, slow: Some(4), ..WELL })];
        // 4 ms are too short for a run, 24 are enough; the device is warm after 13 of 24 ms.
        let (rows, runs) = timed::<1, false>(4, &fakes, Tune::Quick);
        assert_eq!(microseconds(&rows), [Some(1000), Some(1200)]);
        assert_eq!(runs[0], [[4, 4].as_slice(), &[24; 1 + 13 + 2]].concat());
        assert_eq!(runs[1], [4, 4, 20, 20, 20]);
        // Where the run that was long enough counts as warming up, there is one run less; a full tuning takes
        // five samples.
        let (_, runs) = timed::<1, true>(4, &fakes, Tune::Full);
        assert_eq!(runs[0], [[4, 4].as_slice(), &[24; 1 + 12 + 4]].concat());
        assert_eq!(runs[1], [4, 4, 20, 20, 20, 20, 20]);
    }

    #[test]
    fn a_plan_that_is_far_from_the_fastest_is_run_once() {
        let at = |step| Some(Fake { step, ..WELL });
        let (rows, runs) = timed::<1, true>(1, &[at(1e-3), at(1.31e-3), at(0.5e-3), at(0.7e-3)], Tune::Quick);
        assert_eq!(microseconds(&rows), [Some(1000), Some(1310), Some(500), Some(700)]);
        assert_eq!(runs.iter().skip(1).map(|runs| runs.len() - 3).collect::<Vec<_>>(), [0, 2, 0]);
    }

    #[test]
    fn no_run_is_longer_than_a_plan_allows() {
        let (rows, runs) = timed::<1, true>(3, &[Some(Fake { step: 1e-4, most: 10, ..WELL })], Tune::Quick);
        assert_eq!(microseconds(&rows), [Some(100)]);
        assert_eq!((runs[0][..3].to_vec(), *runs[0].iter().max().unwrap()), (vec![3, 3, 9], 9));
    }

    #[test]
    fn what_the_budget_leaves_out_says_so_and_the_first_is_always_timed() {
        let slow = Some(Fake { step: 3.0, ..WELL });
        let (rows, runs) = timed::<1, true>(1, &[None, slow, Some(WELL), None], Tune::Quick);
        assert_eq!(microseconds(&rows), [None, Some(3_000_000), None, None]);
        assert_eq!(runs[2], [0; 0]);
        let notes: Vec<_> = rows.iter().map(|row| row.note.as_deref().unwrap()).collect();
        assert_eq!(notes, ["row 0", "row 1", "left out: the 5 s for timing were used up", "row 3"]);
        let (rows, _) = timed::<1, true>(1, &[slow, Some(WELL)], Tune::Full);
        assert_eq!(microseconds(&rows), [Some(3_000_000), Some(1000)]);
        // A plan is timed, too, where all before it failed, however long they took.
        let failed = slow.map(|slow| Fake { fails: Some(2), ..slow });
        let (rows, _) = timed::<1, true>(1, &[failed, Some(WELL), Some(WELL)], Tune::Quick);
        assert_eq!(microseconds(&rows), [None, Some(1000), None]);
    }

    #[test]
    fn a_plan_that_fails_says_why_and_the_next_is_timed() {
        for (fails, why) in [(-1, "it is stuck"), (0, "it stopped"), (1, "it stopped"), (3, "it stopped")] {
            let fails = Some(Fake { fails: Some(fails), ..WELL });
            let (rows, runs) = timed::<1, true>(1, &[fails, Some(WELL)], Tune::Quick);
            assert_eq!(microseconds(&rows), [None, Some(1000)]);
            let note = rows[0].note.as_deref().unwrap();
            assert!(note.starts_with("it does not run: ") && note.ends_with(why), "{note}");
            // Nothing was warm yet.
            assert_eq!(runs[1].len(), 3 + 12 + 2);
        }
    }

    #[test]
    fn runs_grow_in_whole_passes_to_what_is_worth_timing() {
        let cases = [(1, 1e-9), (1, 3e-6), (8, 40e-6), (24, 1e-3), (7, 0.05)];
        for ((pass, a_step), at_once) in cases.into_iter().flat_map(|case| [(case, 32), (case, 1)]) {
            let (mut steps, mut rounds) = (pass, 0);
            while (steps as f64 * a_step) < RUN_SECONDS {
                let more = longer(steps, steps as f64 * a_step, pass, at_once);
                assert!(more >= 2 * steps && more.is_multiple_of(pass));
                (steps, rounds) = (more, rounds + 1);
            }
            assert!(rounds <= 4, "{rounds} rounds");
            // No longer than needed, except for the least that can be run.
            let whole = (at_once * pass) as f64 * a_step;
            assert!(
                steps as f64 * a_step <= (1.25 * RUN_SECONDS + whole).max(pass as f64 * a_step),
                "{steps}"
            );
            assert!(steps < at_once * pass || steps.is_multiple_of(at_once * pass));
        }
    }
}

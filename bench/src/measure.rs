//! One row of the table: a problem timed on a backend, its rate compared with the hardware's limits, and its
//! result checked.

use abide::backend::{Given, Opened, Session, open_session, smaller};
use abide::memory::Budget;
use abide::program::Problem;
use abide::{Array, CachePolicy, DType, DeviceSpec, Error, Execution, Options, Result, Shape};
use abide_core::backend::beside;
use abide_core::memory::reserved;
use rayon::prelude::*;
use serde::Serialize;

use super::check::{Check, Checked, differs, few_steps_of, same_path, stepwise};
use super::domain::Domain;
use super::timing::{Timed, rates};

/// Settings of a measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// The options of the runs.
    pub options: Options,
    /// Steps of a timed run. Unless given: as many as take `seconds`, and at least `least_steps`.
    pub steps: Option<u64>,
    /// Seconds that a timed run should take.
    pub seconds: f64,
    /// The fewest steps of a timed run.
    pub least_steps: u64,
    /// Timed runs.
    pub repeats: usize,
    /// Extent of the comparison after timing.
    pub check: Check,
    /// Whether to time a launch per step too.
    pub baseline: bool,
}

impl Default for Settings {
    /// Five runs of 0.3 s and of 100 steps at least, compared in full.
    fn default() -> Self {
        Settings {
            options: Options::default(),
            steps: None,
            seconds: 0.3,
            least_steps: 100,
            repeats: 5,
            check: Check::Full,
            baseline: false,
        }
    }
}

impl Settings {
    /// Three runs of 0.05 s and of 10 steps at least: a look, not a measurement to quote.
    pub fn quick() -> Settings {
        Settings { seconds: 0.05, least_steps: 10, repeats: 3, ..Settings::default() }
    }
}

/// A measured rate and the limits that it is compared with. Rates are in 10⁹ cells per second; every cell of
/// the domain counts once per step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The stencil.
    pub stencil: String,
    /// The stencil's points.
    pub points: usize,
    /// The type of the field.
    pub dtype: DType,
    /// The domain.
    pub shape: Shape,
    /// The domain's name, if it has one.
    pub domain: Option<Domain>,
    /// The boundary.
    pub boundary: String,
    /// Steps of a timed run.
    pub steps: u64,
    /// The rates of the runs, in their order.
    pub runs: Vec<f64>,
    /// The median rate.
    pub gcells_per_s: f64,
    /// Distance from the median to the farthest run, in percent of the median.
    pub spread_percent: f64,
    /// The most that the device's arithmetic allows (see [`ceiling`]); `None` where the device does not report
    /// its peak.
    pub ceiling_gcells_per_s: Option<f64>,
    /// The median over the ceiling.
    pub share_of_ceiling: Option<f64>,
    /// The most that the plan allows on this device, by [`abide::Plan::project`].
    pub projected_gcells_per_s: f64,
    /// The median over the projected rate.
    pub share_of_projected_peak: f64,
    /// The median rate of a launch per step, if it was asked for.
    pub stepwise_gcells_per_s: Option<f64>,
    /// Stepwise or persistent.
    pub execution: Execution,
    /// The place where cells stay from step to step.
    pub cache: CachePolicy,
    /// Temporal depth.
    pub depth: u32,
    /// The plan in one line.
    pub plan: String,
    /// The deviations from what was asked, each with its reason.
    pub notes: Vec<String>,
    /// The comparisons made; `None` where nothing was compared.
    pub checked: Option<Checked>,
}

impl Row {
    /// Returns whether no comparison found a difference.
    pub fn holds(&self) -> bool {
        self.checked.as_ref().is_none_or(|checked| checked.faults.is_empty())
    }

    /// Returns the rate over that of a launch per step.
    pub fn ratio_to_stepwise(&self) -> Option<f64> {
        self.stepwise_gcells_per_s.map(|stepwise| self.gcells_per_s / stepwise)
    }
}

/// Returns the rate at which a device's arithmetic alone computes a linear stencil, in 10⁹ cells per second:
/// one multiply-add for each point of each cell. `None` where the device does not report its peak.
pub fn ceiling(device: &DeviceSpec, dtype: DType, points: usize) -> Option<f64> {
    let flops = device.flops(dtype);
    (flops > 0.0 && points > 0).then(|| flops / (2 * points) as f64 / 1e9)
}

/// Times a problem of [`super::problem`] from random values, checks the result, and returns the rate.
///
/// A difference found is in the row; an error means that the problem could not be run at all.
pub fn measure(opened: &Opened, problem: &Problem, settings: &Settings) -> Result<Row> {
    if settings.repeats == 0 || settings.steps == Some(0) {
        let what = if settings.repeats == 0 { "timed runs" } else { "steps of a timed run" };
        return Err(Error::limit(what, 0, "at least 1", "give one or more"));
    }
    abide_cpu::start_threads()?;
    // The initial values, the states of a run and of a few steps, the CPU's session and result, and a second run's state.
    let copies = if settings.check == Check::Off { 2 } else { 7 };
    afford(problem, "memory to measure and compare", copies, &smaller(problem))?;
    let start = random(problem)?;
    let session = |options: &Options| begin(opened, problem, options, &start);
    let mut timed = Timed::new(session(&settings.options)?, &start);
    let filling = timed.calibrate(settings.seconds)?;
    let steps = settings.steps.unwrap_or(filling.max(settings.least_steps));
    let mut checked = Checked::default();
    let (runs, state) = repeat(problem, &mut timed, steps, settings, Some(&mut checked))?;
    let plan = timed.session().plan().clone();

    let few = match settings.check {
        Check::Off => None,
        _ => few_steps_of(opened, problem, &mut timed, &start, &mut checked)?,
    };
    drop(timed);
    let against_cpu = || few.as_ref().map_or(Ok(None), |few| few.against_cpu(problem, &start));
    let mut baseline = None;
    if settings.check == Check::Full || settings.baseline {
        let same = same_path(&plan, &opened.backend.plan(problem, &stepwise())?);
        let mut other = if same { None } else { Some(Timed::new(session(&stepwise())?, &start)) };
        let all = Timed::warm_up(steps) + steps;
        let against_stepwise = || match (&mut other, &state) {
            (Some(other), Some(state)) => {
                other.rerun(all)?;
                Ok(Some(differs(problem, state, &other.read()?)))
            }
            _ => Ok(None),
        };
        // The CPU computes while the device makes a launch per step.
        let (of_stepwise, of_cpu): (Result<_>, _) = beside(against_stepwise, &mut || against_cpu());
        checked.faults.extend(of_cpu?);
        if let Some(fault) = of_stepwise? {
            checked.stepwise_steps = all;
            let described = fault.map(|how| format!("after {all} steps from a launch per step: {how}"));
            checked.faults.extend(described);
        }
        if settings.baseline {
            let median = |runs: &[f64]| rates(runs).map(|rates| rates.median);
            baseline = match &mut other {
                None => median(&runs),
                Some(other) => {
                    let steps = other.calibrate(settings.seconds)?.max(settings.least_steps);
                    median(&repeat(problem, other, steps, settings, None)?.0)
                }
            };
        }
    } else {
        checked.faults.extend(against_cpu()?);
    }

    let device = opened.backend.device();
    let points = problem.program.stages().iter().map(|stage| stage.footprint.taps).sum();
    let found =
        rates(&runs).ok_or_else(|| Error::limit("timed runs", 0, "at least 1", "give one or more"))?;
    let ceiling = ceiling(device, problem.dtype, points);
    let projected = plan.project(steps).gcells_per_s;
    Ok(Row {
        stencil: problem.program.name().to_owned(),
        points,
        dtype: problem.dtype,
        shape: problem.shape,
        domain: Domain::of(&problem.shape),
        boundary: problem.boundaries.describe(problem.shape.dimensions()),
        steps,
        runs,
        gcells_per_s: found.median,
        spread_percent: found.spread_percent,
        ceiling_gcells_per_s: ceiling,
        share_of_ceiling: ceiling.map(|ceiling| found.median / ceiling),
        projected_gcells_per_s: projected,
        share_of_projected_peak: if projected > 0.0 { found.median / projected } else { 0.0 },
        stepwise_gcells_per_s: baseline,
        execution: plan.execution,
        cache: plan.cache,
        depth: plan.depth,
        plan: plan.summary(),
        notes: plan.notes.clone(),
        checked: (settings.check != Check::Off).then_some(checked),
    })
}

/// Returns the rates of all runs and, where runs are compared in full, the state that they left. A run that
/// leaves another state than the first is a fault.
fn repeat(
    problem: &Problem,
    timed: &mut Timed<'_>,
    steps: u64,
    settings: &Settings,
    mut checked: Option<&mut Checked>,
) -> Result<(Vec<f64>, Option<Vec<Array>>)> {
    let (mut runs, mut state) = (Vec::new(), None);
    for number in 1..=settings.repeats {
        let step_seconds = timed.run(steps)?;
        runs.push(problem.shape.cells() as f64 / step_seconds.max(1e-15) / 1e9);
        let Some(checked) = checked.as_deref_mut().filter(|_| settings.check == Check::Full) else {
            continue;
        };
        checked.repeated_steps = Timed::warm_up(steps) + steps;
        let now = timed.read()?;
        match &state {
            None => state = Some(now),
            Some(first) => {
                let fault = differs(problem, first, &now);
                checked.faults.extend(fault.map(|how| format!("run 1 and run {number}: {how}")));
            }
        }
    }
    Ok((runs, state))
}

/// Fails if the machine has no memory for so many copies of all fields.
pub(super) fn afford(problem: &Problem, what: &'static str, copies: u128, change: &str) -> Result<()> {
    let bytes = problem.program.fields().len() as u128 * problem.shape.bytes(problem.dtype) as u128;
    Budget::new(what).with(format!("{copies} times all fields"), copies * bytes).check(change)
}

/// Opens a session that begins from these values.
pub(super) fn begin(
    opened: &Opened,
    problem: &Problem,
    options: &Options,
    start: &[Array],
) -> Result<Box<dyn Session>> {
    let mut fields = Given::new(problem, copied(start)?);
    open_session(opened, problem, options, &mut fields)
}

fn copied(fields: &[Array]) -> Result<Vec<Array>> {
    let copy = |field: &Array| match field {
        Array::F32(values) => copy_of(values).map(Array::F32),
        Array::F64(values) => copy_of(values).map(Array::F64),
    };
    fields.iter().map(copy).collect()
}

/// Copies values on all threads.
fn copy_of<T: Copy + Send + Sync>(values: &[T]) -> Result<Vec<T>> {
    let mut copy = reserved(values.len(), "a copy of a field", "choose a smaller --size")?;
    copy.par_extend(values.par_iter().copied());
    Ok(copy)
}

/// Values that one thread writes at a time.
const CHUNK: usize = 1 << 16;

/// Makes random values between 0 and 1, the same each time: real data, whose cost no shortcut for zeros hides.
pub(super) fn random(problem: &Problem) -> Result<Vec<Array>> {
    let field = |field: usize| {
        let mut values = Array::zeros(problem.dtype, problem.shape.cells())?;
        let generator = |chunk: usize| fastrand::Rng::with_seed(((1 + field as u64) << 32) + chunk as u64);
        match &mut values {
            Array::F32(values) => fill(values, |chunk| {
                let mut generator = generator(chunk);
                move || generator.f32()
            }),
            Array::F64(values) => fill(values, |chunk| {
                let mut generator = generator(chunk);
                move || generator.f64()
            }),
        }
        Ok(values)
    };
    (0..problem.program.fields().len()).map(field).collect()
}

/// Fills values on all threads, each chunk by what `source` makes for its number.
fn fill<T: Send, F: FnMut() -> T>(values: &mut [T], source: impl Fn(usize) -> F + Sync) {
    values.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, values)| values.fill_with(source(chunk)));
}

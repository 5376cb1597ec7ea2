//! Steps of whole programs, timed from their own starts: scalars such as the time step go on from run to run.

use abide::backend::{Opened, Session};
use abide::program::Problem;
use abide::{Array, Error, Execution, Fuse, Options, Result, Tune};

use super::check::differs;
use super::timing::rates;
use super::{Settings, afford, begin};

/// The steps after which two ways to run a program are compared.
const COMPARED: u64 = 10;

/// A way to run a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    /// How its stages become kernels.
    pub fuse: Fuse,
    /// The schedule.
    pub execution: Execution,
}

impl Way {
    /// All ways that are timed: launches of stages and of groups, and one persistent kernel of the groups that the planner
    /// chooses.
    pub fn all() -> impl Iterator<Item = Way> {
        let launched = Fuse::ALL.iter().map(|&fuse| Way { fuse, execution: Execution::Auto });
        launched.chain([Way { fuse: Fuse::Auto, execution: Execution::Persistent }])
    }

    /// Returns the options of such a run, whatever tuning found.
    pub fn options(self) -> Options {
        Options { fuse: self.fuse, execution: self.execution, tune: Tune::Off, ..Options::default() }
    }

    /// Returns the word for it: that of the fusion, unless the schedule is asked for.
    pub fn name(self) -> &'static str {
        match self.execution {
            Execution::Auto => self.fuse.name(),
            execution => execution.name(),
        }
    }
}

/// A program's time per step.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgramRow {
    /// The way in which it ran.
    pub way: Way,
    /// The mean launches of a step over the cycle; `None` on a device whose plan does not state them.
    pub groups: Option<f64>,
    /// Milliseconds per step: the median of the runs.
    pub ms_per_step: f64,
    /// Distance from the median to the farthest run, in percent of the median.
    pub spread_percent: f64,
    /// Bytes per cell and step through device memory, by the plan.
    pub planned_bytes_per_cell: f64,
    /// Steps of a timed run.
    pub steps: u64,
    /// The plan in one line.
    pub plan: String,
    /// Where the fields after a few steps differ from those of the stages by themselves.
    pub faults: Vec<String>,
}

/// Times steps of a program that begins with its own start, and compares the fields after ten steps with those
/// of its stages by themselves.
///
/// # Errors
///
/// Those of a plan and a run; [`Error::Limit`] for no runs.
pub fn measure_program(
    opened: &Opened,
    problem: &Problem,
    way: Way,
    settings: &Settings,
) -> Result<ProgramRow> {
    abide_cpu::start_threads()?;
    afford(problem, "memory to measure and compare", 4, "choose a smaller program with --only")?;
    let start = (0..problem.program.fields().len())
        .map(|field| problem.program.start(field).fill(&problem.shape_of(field)?, problem.dtype))
        .collect::<Result<Vec<Array>>>()?;
    let session = |way: Way| begin(opened, problem, &way.options(), &start);
    let alone = Way { fuse: Fuse::Off, execution: Execution::Auto };
    let compared = |session: &mut dyn Session| -> Result<Vec<Array>> {
        session.advance(COMPARED)?;
        (0..start.len()).map(|field| session.read(field)).collect()
    };
    let mut timed = session(way)?;
    let found = compared(timed.as_mut())?;
    let fault = match way == alone {
        true => None,
        false => differs(problem, &compared(session(alone)?.as_mut())?, &found),
    };
    drop(found);
    let mut steps = 1;
    let mut seconds = timed.advance(steps)?;
    while settings.steps.is_none() && seconds < 0.25 * settings.seconds {
        steps *= 2;
        seconds = timed.advance(steps)?;
    }
    let filling = (settings.seconds * steps as f64 / seconds.max(1e-9)).ceil() as u64;
    let steps = settings.steps.unwrap_or(filling).max(1);
    let mut runs = Vec::new();
    for _ in 0..settings.repeats {
        runs.push(1e3 * timed.advance(steps)? / steps as f64);
    }
    let found =
        rates(&runs).ok_or_else(|| Error::limit("timed runs", 0, "at least 1", "give one or more"))?;
    let plan = timed.plan();
    let groups = plan.stages().map(|stepwise| &stepwise.partition).filter(|groups| !groups.steps.is_empty());
    Ok(ProgramRow {
        way,
        groups: groups.map(|groups| groups.all().count() as f64 / groups.steps.len() as f64),
        ms_per_step: found.median,
        spread_percent: found.spread_percent,
        planned_bytes_per_cell: plan.traffic.load_bytes + plan.traffic.store_bytes,
        steps,
        plan: plan.summary(),
        faults: fault
            .map(|how| format!("after {COMPARED} steps of the stages by themselves: {how}"))
            .into_iter()
            .collect(),
    })
}

//! The papers' models beside a plan, and beside the time that a device took.

use std::fmt::{self, Display};

use abide_core::{Execution, Measured, Plan, Problem, Result};
use serde::Serialize;

use super::{Answer, Papers, Projected, STEPS, projections};

/// The papers' models and the plan, each with what was measured of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// PERKS's choice; measured beside it is the fastest persistent plan.
    pub perks: Row,
    /// EBISU's choice; measured beside it is the fastest streaming plan.
    pub ebisu: Row,
    /// The plan, by the planner's own estimate.
    pub plan: Row,
    /// Whether plans were timed.
    #[serde(skip)]
    timed: bool,
}

/// A model's answer, and what the device took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The choice and its projection, or why there is none.
    #[serde(flatten)]
    pub answer: Answer,
    /// The plan that was measured; `None` where none of the kind was timed.
    pub measured_plan: Option<String>,
    /// Seconds per step, measured.
    pub measured_seconds: Option<f64>,
    /// The measured rate, in 10⁹ cells per second.
    pub measured_gcells_per_s: Option<f64>,
    /// The measured rate over the projected one.
    pub reached: Option<f64>,
}

/// Compares the papers' models with a plan for the same problem. `measured` is what a device took, the plan
/// first; empty if nothing was timed.
///
/// # Errors
///
/// Those of [`Plan::check`] and [`projections`].
pub fn compare(problem: &Problem, plan: &Plan, measured: &[Measured]) -> Result<Compared> {
    plan.check(problem)?;
    let Papers { perks, ebisu } = projections(problem, &plan.device)?;
    // The estimate from before the compiler's report changed the plan, if it did.
    let estimate = measured.first().map_or(plan.estimated_seconds, |own| own.predicted_seconds);
    let own = Projected::of_plan(plan, estimate).map_or_else(
        || Answer::NotApplicable("the planner makes no estimate where there is nothing to choose".to_owned()),
        |own| Answer::Projected(Box::new(own)),
    );
    let cells = problem.shape.cells() as f64;
    let row = |answer: Answer, measured: Option<&Measured>| {
        let seconds = measured.and_then(|measured| measured.seconds).filter(|&seconds| seconds > 0.0);
        let projected = match &answer {
            Answer::Projected(projected) => Some(projected.seconds),
            Answer::NotApplicable(_) => None,
        };
        Row {
            answer,
            measured_plan: seconds.and(measured).map(|measured| measured.plan.summary()),
            measured_seconds: seconds,
            measured_gcells_per_s: seconds.map(|seconds| cells / seconds / 1e9),
            reached: seconds.and_then(|seconds| Some(projected? / seconds)),
        }
    };
    let fastest = |execution: Execution| {
        Measured::fastest(measured.iter().filter(|one| one.plan.execution == execution))
    };
    Ok(Compared {
        perks: row(perks, fastest(Execution::Persistent)),
        ebisu: row(ebisu, fastest(Execution::Streaming)),
        plan: row(own, measured.first()),
        timed: !measured.is_empty(),
    })
}

impl Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "The papers' models beside the plan, for {STEPS} steps:\n")?;
        self.line(f, ["", "projected", "projected", "measured", "reached", "moved", "bound by", "choice"])?;
        self.line(f, ["", "µs per step", "GCells/s", "GCells/s", "", "bytes", "", ""])?;
        for (name, row) in [("PERKS", &self.perks), ("EBISU", &self.ebisu), ("plan", &self.plan)] {
            let rate = row.measured_gcells_per_s.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.1}"));
            let reached =
                row.reached.map_or_else(|| "-".to_owned(), |share| format!("{:.0} %", 100.0 * share));
            let (figures, notes) = match &row.answer {
                Answer::Projected(p) => (
                    [
                        format!("{:.2}", p.seconds * 1e6),
                        format!("{:.1}", p.gcells_per_s),
                        format!("{:.2}", p.memory_bytes),
                        p.bound.to_string(),
                        p.choice.clone(),
                    ],
                    &*p.notes,
                ),
                Answer::NotApplicable(why) => {
                    let dash = || "-".to_owned();
                    ([dash(), dash(), dash(), dash(), format!("not applicable: {why}")], &[][..])
                }
            };
            let [seconds, projected, bytes, bound, choice] = &figures;
            self.line(f, [name, seconds, projected, &rate, &reached, bytes, bound, choice])?;
            for note in notes {
                writeln!(f, "{:<7}{note}", "")?;
            }
        }
        if self.timed {
            writeln!(
                f,
                "\nMeasured beside PERKS is the fastest persistent plan of those timed, beside EBISU the \
                 fastest streaming one."
            )?;
        }
        Ok(())
    }
}

impl Compared {
    /// Writes a line of the table, without the measured columns if nothing was measured.
    fn line(&self, f: &mut fmt::Formatter<'_>, cells: [&str; 8]) -> fmt::Result {
        let [name, seconds, rate, measured, reached, bytes, bound, choice] = cells;
        let mut line = format!("{name:<7}{seconds:>11}{rate:>11}");
        if self.timed {
            line += &format!("{measured:>11}{reached:>9}");
        }
        line += &format!("{bytes:>8}  {bound:<15}{choice}");
        writeln!(f, "{}", line.trim_end())
    }
}

//! Runs that go wrong: values that become NaN or infinite, and the step at which that is noticed.

use std::time::{Duration, Instant};

use abide::program::Problem;
use abide::{Result, RunReport, Running, Simulation};

/// Values that are counted after every run, however short: it takes microseconds.
const FEW: u64 = 1 << 20;
/// Steps after which the values of larger fields are counted: counting takes as long as a step or so.
const SEVERAL: u64 = 16;
/// The share of a run that counting within it takes.
const SHARE: f64 = 0.02;

/// What is known of a simulation's values from one run to the next.
#[derive(Default)]
pub struct Health {
    /// The step after which values that are not finite were noticed.
    noticed: Option<u64>,
    /// The steps since the values were counted.
    unchecked: u64,
}

/// Looks at the values in the course of one run.
pub struct Watch {
    next: Instant,
    noticed: Option<u64>,
}

impl Watch {
    /// Begins with a run.
    pub fn new() -> Watch {
        Watch { next: Instant::now(), noticed: None }
    }

    /// Counts the values between two epochs, seldom enough to be cheap.
    pub fn look(&mut self, running: &mut Running<'_>) -> Result<()> {
        let wanted = self.noticed.is_none() && Instant::now() >= self.next;
        // Processes that share a domain all count, or none does.
        if running.most(f64::from(u8::from(wanted)))? > 0.0 {
            let begun = Instant::now();
            if running.non_finite()? > 0 {
                self.noticed.get_or_insert(running.step());
            }
            self.next = Instant::now() + begun.elapsed().div_f64(SHARE).max(Duration::from_millis(50));
        }
        Ok(())
    }
}

impl Health {
    /// Puts into a run's report what became of its values, and returns the note if they became NaN or infinite in
    /// this run.
    pub fn after(
        &mut self,
        watch: &Watch,
        simulation: &mut Simulation,
        report: &mut RunReport,
    ) -> Result<Option<String>> {
        let problem = simulation.problem();
        let fields = 0..problem.program.fields().len();
        let values = fields.map(|field| problem.shape_of(field).map(|shape| shape.cells() as u64));
        let values: u64 = values.sum::<Result<_>>()?;
        self.unchecked += report.steps;
        let is_due = watch.noticed.is_some() || values <= FEW || self.unchecked >= SEVERAL;
        if report.steps == 0 || !is_due {
            return Ok(None);
        }
        self.unchecked = 0;
        let bad = simulation.non_finite()?;
        report.non_finite = Some(bad);
        if bad == 0 {
            self.noticed = None;
            return Ok(None);
        }
        let is_new = self.noticed.is_none();
        let first = *self.noticed.get_or_insert(watch.noticed.unwrap_or(simulation.step()));
        let limits = limits(simulation.problem());
        let note = format!(
            "{bad} of {values} values are NaN or infinite, which was first noticed after step {first}{limits}"
        );
        report.notes.push(note.clone());
        Ok(is_new.then_some(note))
    }
}

/// Returns the parameters whose meaning names a limit of stability, with their values.
fn limits(problem: &Problem) -> String {
    let own = problem.program.parameters().iter().zip(&problem.parameters);
    let limiting = own.filter(|(parameter, _)| parameter.about.contains("stable"));
    let all: Vec<String> = limiting
        .map(|(parameter, value)| format!("{} is {value} ({})", parameter.name, parameter.about))
        .collect();
    if all.is_empty() { String::new() } else { format!("; {}", all.join(", ")) }
}

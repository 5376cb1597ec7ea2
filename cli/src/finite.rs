//! Values of a run that are not finite: when they were first found, and what may be the reason.

use std::time::{Duration, Instant};

use abide::program::Problem;
use abide::{Result, Running, Simulation};
use serde::Serialize;

/// The share of a run's time that may be spent on looking, and the time that is always allowed. None of it counts for
/// the rate, which is of the device's time between.
const SHARE: f64 = 0.01;
const ALLOWED: Duration = Duration::from_millis(5);

/// A watch over the values of a run: it looks at them before the first step, after the last, and between, at the ends
/// of epochs, as often as its share of the time allows.
pub struct Watch {
    begun: Instant,
    spent: Duration,
    /// The last step after which all values were found finite.
    finite: Option<u64>,
    noticed: Option<u64>,
}

/// When values that are not finite were noticed. Steps are counted from the start, those before a checkpoint included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Noticed {
    /// The first step after which some were found.
    pub noticed_after_step: u64,
    /// The last step after which all were found finite; none where some were not before the first step.
    pub finite_after_step: Option<u64>,
}

impl Watch {
    /// Begins before the first step.
    pub fn begin(simulation: &mut Simulation) -> Result<Watch> {
        let mut watch = Watch { begun: Instant::now(), spent: Duration::ZERO, finite: None, noticed: None };
        let count = simulation.non_finite()?;
        watch.saw(simulation.step(), count);
        Ok(watch)
    }

    fn saw(&mut self, step: u64, count: u64) {
        match (count, self.noticed) {
            (0, None) => self.finite = Some(step),
            (_, None) => self.noticed = Some(step),
            _ => {}
        }
    }

    /// Looks at the end of an epoch, if it is time. All processes of a run look, or none.
    pub fn observe(&mut self, running: &mut Running<'_>) -> Result<()> {
        if self.noticed.is_some() {
            return Ok(());
        }
        let allowed = ALLOWED + self.begun.elapsed().mul_f64(SHARE);
        if running.most(f64::from(self.spent < allowed))? <= 0.0 {
            return Ok(());
        }
        let begun = Instant::now();
        let count = running.non_finite()?;
        self.spent += begun.elapsed();
        self.saw(running.step(), count);
        Ok(())
    }

    /// Ends after the last step, with the number of values that are not finite then.
    pub fn finish(mut self, step: u64, count: u64) -> Option<Noticed> {
        self.saw(step, count);
        let finite_after_step = self.finite;
        self.noticed.map(|noticed_after_step| Noticed { noticed_after_step, finite_after_step })
    }
}

impl Noticed {
    /// Returns the warning of a run that has so many values that are not finite in the end.
    pub fn warning(&self, problem: &Problem, count: u64) -> String {
        let all: u64 = (0..problem.program.fields().len())
            .filter_map(|field| problem.shape_of(field).ok())
            .map(|shape| shape.cells() as u64 * problem.members() as u64)
            .sum();
        let when = match self.finite_after_step {
            Some(step) => format!(
                "first found after step {}, all were finite after step {step}, none was looked at between",
                self.noticed_after_step
            ),
            None => "some before the first step".to_owned(),
        };
        let mut words = format!("{count} of {all} values are NaN or infinite: {when}");
        for (parameter, value) in problem.program.parameters().iter().zip(&problem.parameters) {
            let Some(condition) = parameter.stability() else { continue };
            let value = if problem.is_batch() { String::new() } else { format!(" is {value} and") };
            words.push_str(&format!("; {}{value} is stable {condition}", parameter.name));
        }
        if words.contains("axes") {
            words.push_str(&format!(", here with {} axes", problem.shape.dimensions()));
        }
        words
    }
}

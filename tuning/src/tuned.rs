//! The plan for a problem where a backend can time several: the one that was kept, the one found now, or the
//! planner's own choice.

use abide_planner::plan_recipe;
use std::sync::{Mutex, MutexGuard, PoisonError};

use abide_core::plan::{Measured, Options, Recipe, Tune};
use abide_core::{Array, DeviceSpec, Plan, Problem, Result};

use crate::measure::{Stand, measure};
use crate::tuned_plans::{Question, TunedPlans, Winner};

/// Held while plans are timed, because two that run at once would slow each other down.
static TIMING: Mutex<()> = Mutex::new(());

/// Waits until nothing else is timed in this process; nothing else will be while the result lives.
pub fn alone() -> MutexGuard<'static, ()> {
    TIMING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A question of tuning to a backend, and the place where its answers are kept.
pub struct Tuning<'a> {
    /// The kept answers.
    pub tuned_plans: &'a TunedPlans,
    /// The device.
    pub device: &'a DeviceSpec,
    /// The driver with its version.
    pub driver: String,
    /// The problem.
    pub problem: &'a Problem,
    /// The options for the problem's plan.
    pub options: &'a Options,
}

impl Tuning<'_> {
    /// Returns the plan: as the options ask, the one that an earlier tuning kept, the one that `measure`
    /// finds now, or `own`.
    pub fn plan(&self, own: Plan, measure: impl FnOnce() -> Result<Vec<Measured>>) -> Result<Plan> {
        let mut own = own;
        if self.options.tune == Tune::Off {
            return Ok(own);
        }
        if let Some(plan) = self.kept() {
            return Ok(plan);
        }
        if !self.options.tune.measures() {
            return Ok(own);
        }
        let _alone = alone();
        // Another thread may have asked the same in the meantime.
        if let Some(plan) = self.kept() {
            return Ok(plan);
        }
        let rows = measure()?;
        match winner(&rows) {
            Some((seconds, recipe)) => {
                if let Some(mut plan) = plan_recipe(&recipe, self.problem, self.device, self.options) {
                    plan.notes.push(found(&rows, seconds, self.options));
                    return Ok(plan);
                }
                own.notes
                    .push(format!("tuning {}: the fastest plan could not be made again", self.options.tune));
            }
            None => {
                let why = rows.iter().find_map(|row| row.note.as_deref()).unwrap_or("no reason was told");
                let tune = self.options.tune;
                own.notes.push(format!("tuning {tune}: none of {} plans could be timed; {why}", rows.len()));
            }
        }
        Ok(own)
    }

    /// Returns every field's values where timing begins: the program's own start, so that values are of the
    /// kind that the program is made for.
    pub fn start(&self) -> Result<Vec<Array>> {
        let Problem { program, shape, dtype, .. } = self.problem;
        (0..program.fields().len()).map(|field| program.start(field).fill(shape, *dtype)).collect()
    }

    /// Times the plans that come with code, in order, the first of them in any case, and keeps the fastest
    /// where the options ask for tuning; the rows of the other plans already say why they are not timed. The
    /// caller sees to it that nothing else is timed meanwhile ([`alone`]).
    pub fn measure<S: Stand>(&self, stand: S, candidates: Vec<(Measured, Option<S::Code>)>) -> Vec<Measured> {
        let rows = measure(stand, candidates, self.options.tune);
        self.keep(&rows);
        rows
    }

    /// Keeps the fastest of the measured plans, where the options ask for tuning and there was a choice.
    fn keep(&self, rows: &[Measured]) {
        if self.options.tune.measures()
            && rows.len() > 1
            && let Some((seconds, recipe)) = winner(rows)
        {
            let timed_on = format!("{} {}", self.problem.program.name(), self.problem.shape);
            let tune = self.options.tune;
            self.tuned_plans.keep(&Winner { question: self.question(), timed_on, tune, seconds, recipe });
        }
    }

    /// Returns the plan that an earlier tuning, as thorough as is asked for now, found fastest; `None` where
    /// there is none or it is no plan for these extents.
    fn kept(&self) -> Option<Plan> {
        let winner = self.tuned_plans.find(&self.question())?;
        if self.options.tune == Tune::Full && winner.tune != Tune::Full {
            return None;
        }
        let mut plan = plan_recipe(&winner.recipe, self.problem, self.device, self.options)?;
        plan.notes.push(format!(
            "kept from tuning {} on {}: {} per step were measured there; --tune off takes the planner's own choice",
            winner.tune,
            winner.timed_on,
            microseconds(winner.seconds),
        ));
        Some(plan)
    }

    fn question(&self) -> Question {
        Question::new(self.problem, self.options, self.device, &self.driver)
    }
}

/// Returns the fastest plan's seconds per step and the recipe that makes it again.
fn winner(rows: &[Measured]) -> Option<(f64, Recipe)> {
    let row = Measured::fastest(rows)?;
    Some((row.seconds?, Recipe::of(&row.plan)?))
}

fn found(rows: &[Measured], seconds: f64, options: &Options) -> String {
    let timed = rows.iter().filter(|row| row.seconds.is_some()).count();
    let own = match rows.first().and_then(|row| row.seconds) {
        Some(own) if own > seconds => format!("the planner's own choice took {}", microseconds(own)),
        _ => "it is the planner's own choice".to_owned(),
    };
    format!(
        "tuning {}: the fastest of {timed} plans timed, {} per step; {own}",
        options.tune,
        microseconds(seconds)
    )
}

fn microseconds(seconds: f64) -> String {
    format!("{:.2} µs", seconds * 1e6)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use abide_core::{DType, Shape, catalogue};

    use super::*;

    fn row(predicted_seconds: f64, seconds: Option<f64>) -> Measured {
        let program = Arc::new(catalogue::find("2d5pt").unwrap().program(2).unwrap());
        let problem = Problem::new(program, Shape::new(&[64, 64]).unwrap(), DType::F32).unwrap();
        let device = DeviceSpec::preset("h200").unwrap();
        let plan = abide_planner::plan(&problem, &device, &Options::default()).unwrap();
        Measured { plan, predicted_seconds, seconds, note: None }
    }

    #[test]
    fn the_fastest_that_was_timed_wins() {
        let mut rows =
            vec![row(1e-6, Some(3e-6)), row(2e-6, None), row(3e-6, Some(2e-6)), row(4e-6, Some(2.5e-6))];
        assert_eq!(winner(&rows).map(|(seconds, _)| seconds), Some(2e-6));
        assert_eq!(rows[0].ratio().map(|ratio| (ratio * 1e3).round()), Some(3000.0));
        assert_eq!(rows[1].ratio(), None);
        let options = Options { tune: Tune::Quick, ..Options::default() };
        let note = found(&rows, 2e-6, &options);
        assert_eq!(
            note,
            "tuning quick: the fastest of 3 plans timed, 2.00 µs per step; the planner's own choice took 3.00 µs"
        );
        rows[0].seconds = Some(1e-6);
        assert!(found(&rows, 1e-6, &options).ends_with("it is the planner's own choice"));
        assert_eq!(winner(&[row(1e-6, None)]), None);
    }
}

//! What of a plan ran.

use serde::Serialize;

use crate::plan::{Advances, Plan};

/// What of a plan ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Ran {
    /// The advances: the host waited for the end of each.
    pub advances: u64,
    /// Steps of the longest advance.
    pub longest: u64,
    /// Passes over the domain, each of which loads and stores what does not stay on the chip.
    pub passes: u64,
    /// Steps of the deepest pass; less than the plan's depth where every advance was shorter than a pass.
    pub depth: u64,
}

impl Ran {
    /// Returns what of a plan ran in these advances.
    pub fn of(plan: &Plan, advances: &Advances) -> Ran {
        let cut = plan.cut(advances);
        let passes = cut.iter().map(|(steps, times)| plan.traffic.passes(steps) * times).sum();
        // Tiles that stay on the chip exchange every `depth` steps within a pass.
        let within = |steps: u64| match plan.traffic.pass_steps {
            0 | 1 => steps.min(u64::from(plan.depth)),
            _ => plan.traffic.deepest(steps),
        };
        let depth = cut.iter().map(|(steps, _)| within(steps)).max().unwrap_or(0);
        Ran { advances: advances.count(), longest: advances.longest(), passes, depth }
    }

    /// Returns in words what ran where that is not what the plan says: halts left shallower passes, or more of them; `None`
    /// where they did not.
    pub fn differs(&self, plan: &Plan, steps: u64) -> Option<String> {
        let whole = Ran::of(plan, &Advances::one(steps));
        if steps == 0 || (self.passes <= whole.passes && self.depth >= whole.depth) {
            return None;
        }
        let count = |number: u64, noun: &str| crate::units::count(number as usize, noun);
        // A kernel that keeps the domain goes over it in every step, whether it was halted or not.
        let passes = match plan.traffic.pass_steps {
            0 | 1 => String::new(),
            _ => format!("{} pass{}, ", self.passes, if self.passes == 1 { "" } else { "es" }),
        };
        Some(format!(
            "{passes}{} deep at the most: the run halted {}, {} apart at the most",
            count(self.depth, "step"),
            count(self.advances, "time"),
            count(self.longest, "step"),
        ))
    }
}

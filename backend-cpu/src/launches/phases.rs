//! Steps with loops, phase by phase.

use abide_core::program::{Once, Repeat};
use abide_core::{Real, Result};

use super::Launched;

/// How far a step with loops has come.
#[derive(Debug, Clone, Default)]
pub(super) struct Phase {
    /// The place in the storage of the phase that comes next, or of the next turn of the loop that is under way.
    pub place: usize,
    /// The turns that this loop has had.
    pub turns: u64,
    /// What need not be carried out again.
    pub once: Once,
}

impl<T: Real> Launched<T> {
    /// Carries out all phases of a step.
    pub(super) fn step_with_loops(&mut self) -> Result<()> {
        let step = self.steps;
        while self.steps == step {
            self.turns(u64::MAX)?;
        }
        Ok(())
    }

    /// Carries out the phase that comes next, a loop for so many turns at most. Returns how many there were, and whether the
    /// phase is over.
    pub(super) fn turns(&mut self, most: u64) -> Result<(u64, bool)> {
        let first = self.field_rows.problem.parameters.len();
        let number = self.storage.number(self.phase.place);
        let Some(&phase) = self.field_rows.problem.program.phases().get(number) else { return Ok((0, true)) };
        let (mut done, mut is_over) = (0, false);
        while done < most && !is_over {
            let place = self.phase.place;
            let is_made = self.phase.turns == 0 && self.phase.once.is_made(number);
            let ends = |repeat: Repeat| repeat.ends(self.phase.turns, |own| self.scalars[first + own]);
            if is_made || phase.repeat.is_some_and(ends) {
                (self.phase.place, is_over) = (self.storage.steps[place].end, true);
                break;
            }
            self.launch(place, None, None)?;
            self.phase.place = self.storage.steps[place].next;
            self.phase.turns += 1;
            (done, is_over) = (done + 1, phase.repeat.is_none());
        }
        if is_over {
            if self.phase.turns > 0 {
                self.phase.once.made(number);
            }
            self.phase.turns = 0;
            self.steps += u64::from(phase.ends_step);
        }
        Ok((done, is_over))
    }
}

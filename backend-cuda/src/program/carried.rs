//! Reductions that each step makes for the next one, before the first of them.

use abide_core::Result;

use super::{ProgramSession, Reductions};

/// What a session's steps take over from the step before.
pub(super) struct Carried {
    /// What makes it where there was no step before, or something was set since.
    reductions: Reductions,
    /// Whether it is there, of the fields and parameters as they are.
    pub is_there: bool,
}

impl Carried {
    /// Returns how many there are: the last scalars of the session's problem.
    pub fn count(&self) -> usize {
        self.reductions.count()
    }
}

impl ProgramSession {
    /// Takes what makes the reductions that the plan carries from one step to the next, of the fields before the first.
    pub fn carry(&mut self, reductions: Reductions) {
        self.carried = Some(Carried { reductions, is_there: false });
    }

    /// Makes what the next step takes over, unless it is there.
    pub(super) fn make_carried(&mut self) -> Result<()> {
        let Some(mut carried) = self.carried.take() else { return Ok(()) };
        let made = if carried.is_there { Ok(()) } else { self.make_all(&mut carried) };
        carried.is_there = made.is_ok();
        self.carried = Some(carried);
        made
    }

    fn make_all(&mut self, carried: &mut Carried) -> Result<()> {
        // The reductions read no scalar but parameters; the user's scalars stand behind these.
        let own = self.problem.scalars.len() - carried.count();
        let scalars = [&*self.problem.parameters, &self.problem.scalars[..own]].concat();
        let first = scalars.len();
        for number in 0..carried.count() {
            let value = carried.reductions.reduce_now(self, number, &scalars)?;
            self.memory.set_scalar(first + number, value)?;
        }
        Ok(())
    }
}

//! Steps with loops, phase by phase.
//!
//! A dispatch before each turn tests whether the loop is over, after which the dispatches that follow do nothing. So the device is
//! given several turns at a time, about as many as the loop had in the step before, and the host looks how many there were.

use abide_core::backend::ExpectedTurns;
use abide_core::program::{Once, Phase, Repeat, Watch};
use abide_core::{Problem, Result};

use super::ProgramSession;
use crate::rounds;

/// How far a step with loops has come.
pub(super) struct Phases {
    /// The place in the storage of the phase that comes next, or of the next turn of the loop that is under way.
    pub place: usize,
    /// The turns that this loop has had.
    turns: u64,
    expected: ExpectedTurns,
    /// What need not be carried out again.
    pub once: Once,
    /// What is watched between steps, where the host is there.
    pub watch: Watch,
}

impl Phases {
    pub fn new(problem: &Problem, watch: Watch) -> Phases {
        Phases { place: 0, turns: 0, expected: ExpectedTurns::default(), once: Once::of(problem), watch }
    }
}

impl ProgramSession {
    /// Advances steps of a program with loops, as far as its condition and its marks let it.
    pub(super) async fn advance_with_loops(&mut self, steps: u64) -> Result<f64> {
        let (end, mut seconds) = (self.steps + steps, 0.0);
        self.phases.watch.begin();
        while self.steps < end && self.phases.watch.goes_on() {
            let step = self.steps;
            while self.steps == step {
                seconds += self.turns(u64::MAX).await?.2;
            }
            self.note().await?;
        }
        self.remaining = end - self.steps;
        Ok(seconds)
    }

    /// Takes note of the step that was just done.
    async fn note(&mut self) -> Result<()> {
        let step = self.problem.first_step + self.steps;
        if self.phases.watch.until_due(step - 1) != Some(1) {
            return Ok(());
        }
        let scalars = self.scalars().await?;
        let probes = self.problem.record.as_ref().map_or(Vec::new(), |record| record.probes.clone());
        let mut values = Vec::with_capacity(probes.len());
        for probe in &probes {
            let [low, high] = probe.window();
            values.push(self.read_window(probe.field, low, high).await?.get(0).unwrap_or(f64::NAN));
        }
        let mut values = values.into_iter();
        self.phases.watch.step(step, |number| scalars[number], |_| Ok(values.next().unwrap_or(f64::NAN)))
    }

    /// Carries out the phase that comes next, a loop for so many turns at most. Returns how many there were, whether the phase
    /// is over, and the seconds that it took.
    pub(crate) async fn turns(&mut self, most: u64) -> Result<(u64, bool, f64)> {
        self.renew_matrices().await?;
        let number = self.made.storage.number(self.phases.place);
        let Some(&Phase { repeat, ends_step }) = self.problem.program.phases().get(number) else {
            return Ok((0, true, 0.0));
        };
        let (done, is_over, seconds) = match repeat {
            None => {
                let seconds = self.dispatch(1).await?;
                self.phases.place = self.made.storage.steps[self.phases.place].next;
                (1, true, seconds)
            }
            Some(_) if self.phases.turns == 0 && self.phases.once.is_made(number) => (0, true, 0.0),
            Some(repeat) => {
                let (done, is_over, seconds) = self.turns_of(number, repeat, most).await?;
                self.phases.turns += done;
                (done, is_over || self.phases.turns >= repeat.most, seconds)
            }
        };
        if is_over {
            if repeat.is_some() {
                if self.phases.turns > 0 {
                    self.phases.once.made(number);
                }
                self.phases.expected.had(number, self.phases.turns);
                self.phases.place = self.made.storage.steps[self.phases.place].end;
            }
            self.phases.turns = 0;
            self.steps += u64::from(ends_step);
        }
        Ok((done, is_over, seconds))
    }

    /// Carries out turns of a loop; the place goes on by those that there were.
    async fn turns_of(&mut self, number: usize, repeat: Repeat, most: u64) -> Result<(u64, bool, f64)> {
        let most = most.min(repeat.most - self.phases.turns);
        if repeat.until.is_none() {
            let seconds = self.dispatch(most).await?;
            self.follow(most);
            return Ok((most, false, seconds));
        }
        let (mut done, mut is_over, mut seconds) = (0, false, 0.0);
        while done < most && !is_over {
            // And one more, whose condition ends the loop.
            let more = self.phases.expected.next(number, self.phases.turns + done) + 1;
            let more = more.min(most - done);
            seconds += self.dispatch(more).await?;
            let [over, turns] = self.memory.progress(&self.gpu, &mut self.staging).await?;
            self.memory.set_progress(&self.gpu, [0, 0]).await?;
            self.follow(u64::from(turns));
            (done, is_over) = (done + u64::from(turns), over != 0);
        }
        Ok((done, is_over, seconds))
    }

    /// Has the device carry out the phase so many times.
    async fn dispatch(&mut self, times: u64) -> Result<f64> {
        let mut pace = self.pace.clone();
        let record = |pass: &mut wgpu::ComputePass<'_>, turn: u64| {
            self.dispatches.record(pass, self.made.storage.after_turns(self.phases.place, turn));
        };
        let seconds = rounds::run(&self.gpu, self.clock.as_ref(), &mut pace, times, &record).await?;
        self.pace = pace;
        Ok(seconds)
    }

    fn follow(&mut self, turns: u64) {
        self.phases.place = self.made.storage.after_turns(self.phases.place, turns);
    }
}

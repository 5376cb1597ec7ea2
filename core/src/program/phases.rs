//! Loops in a step: stages that are repeated until a scalar says that it is enough.
//!
//! A step with loops is a row of *phases*: the stages between two loops, and those of each loop. What follows a loop depends on a
//! scalar that the loop makes, so a phase is what sessions and plans take at once, as they take a step elsewhere.

use super::Program;
use super::definition::Definition;
use super::step::Step;
use super::until::Until;
use crate::error::{Error, Result};

/// The stages of a step between two of its loops, or those of one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phase {
    /// How often the stages are carried out; once where this is `None`.
    pub repeat: Option<Repeat>,
    /// Whether the step ends with the phase.
    pub ends_step: bool,
}

/// How often the stages of a loop are carried out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Repeat {
    /// The most turns.
    pub most: u64,
    /// The condition that ends the loop, tested before each turn.
    pub until: Option<Until>,
}

impl Repeat {
    /// Returns whether the loop ends after so many turns. `scalar` returns a computed scalar by its number.
    pub fn ends(&self, turns: u64, scalar: impl Fn(usize) -> f64) -> bool {
        turns >= self.most || self.until.is_some_and(|until| until.ends(scalar(until.scalar)))
    }
}

/// A loop of a step as it is defined.
#[derive(Debug, Clone)]
pub(super) struct Loop {
    pub step: usize,
    /// The stages, by their places in the step.
    pub stages: std::ops::Range<usize>,
    pub most: u64,
    pub until: Option<String>,
}

impl Program {
    /// Returns the phases of the steps of the cycle in order, of which each has stages in [`Program::steps`]; none where no step
    /// has a loop, and steps are what the name says.
    pub fn phases(&self) -> &[Phase] {
        &self.phases
    }

    /// Returns whether steps have loops.
    pub fn has_loops(&self) -> bool {
        !self.phases.is_empty()
    }

    /// Returns whether a step ends with the stages of a place in [`Program::steps`].
    pub fn ends_step(&self, place: usize) -> bool {
        self.phases.get(place).is_none_or(|phase| phase.ends_step)
    }

    /// Returns the number of steps of the cycle.
    pub fn cycle(&self) -> usize {
        match self.phases.is_empty() {
            true => self.steps.len(),
            false => self.phases.iter().filter(|phase| phase.ends_step).count(),
        }
    }

    /// Returns the place in [`Program::steps`] with which a step begins, counted from the beginning of the run.
    pub fn first_phase(&self, step: u64) -> usize {
        let step = (step % self.cycle().max(1) as u64) as usize;
        match (step.checked_sub(1), self.phases.is_empty()) {
            (None, _) | (_, true) => step,
            (Some(before), false) => {
                let mut ends = (0..self.phases.len()).filter(|&phase| self.phases[phase].ends_step);
                ends.nth(before).map_or(0, |last| last + 1)
            }
        }
    }

    /// Returns how often the stages of a place in [`Program::steps`] are carried out; once where this is `None`.
    pub fn repeat(&self, place: usize) -> Option<Repeat> {
        self.phases.get(place)?.repeat
    }

    /// Returns whether a scalar that is made on the way decides what comes next: a loop ends by a condition.
    pub fn has_conditions(&self) -> bool {
        self.phases.iter().any(|phase| phase.repeat.is_some_and(|repeat| repeat.until.is_some()))
    }
}

impl Step<'_> {
    /// Adds stages that are carried out turn by turn, at most so often, until a condition on a computed scalar holds, as in
    /// `residual <= 1e-6`. It is tested before each turn: where it holds at once, or the scalar is NaN, there is none. Without a
    /// condition there are as many turns as said.
    ///
    /// Temporaries of a loop live within a turn; what goes from turn to turn, in or out of it are fields and scalars. A loop has
    /// no loop within.
    ///
    /// ```
    /// use abide_core::program::{Centring, Definition, Reduction};
    ///
    /// // A potential that follows a charge: Jacobi's sweeps in each step, until they change little.
    /// let mut p = Definition::new("potential", 2);
    /// p.field("phi", Centring::CELL).field("charge", Centring::CELL).scalar("change", None, "largest change of a sweep");
    /// let mut step = p.step();
    /// step.compute("change", |s| s.constant(f64::INFINITY));
    /// step.repeat(500, Some("change <= 1e-6"), |sweep| {
    ///     sweep.reduce("change", Reduction::Max, Centring::CELL, |s| {
    ///         let phi = s.field("phi");
    ///         (0.25 * (phi.laplacian() + s.field("charge").here())).abs()
    ///     });
    ///     sweep.stage("sweep", |s| {
    ///         let phi = s.field("phi");
    ///         s.set("phi", phi.here() + 0.25 * (phi.laplacian() + s.field("charge").here()));
    ///     });
    /// });
    /// let program = p.build()?;
    /// assert_eq!(program.phases().len(), 2);
    /// # Ok::<(), abide_core::Error>(())
    /// ```
    pub fn repeat(
        &mut self,
        most: u64,
        until: Option<&str>,
        define: impl FnOnce(&mut Step<'_>),
    ) -> &mut Self {
        self.definition.begin_loop(self.number, most, until);
        define(&mut Step { definition: self.definition, number: self.number });
        self.definition.end_loop();
        self
    }
}

/// A phase of a definition: how often its stages are carried out, and the text of the condition that ends them.
pub(super) struct Cut {
    pub repeat: Option<(u64, Option<String>)>,
    pub ends_step: bool,
}

impl Cut {
    /// Returns the phase of a program.
    pub fn phase(self, program: &Program) -> Result<Phase> {
        let repeat = self.repeat.map(|(most, until)| {
            let until = until.map(|text| Until::parse(&text, program)).transpose()?;
            Ok::<_, Error>(Repeat { most, until })
        });
        Ok(Phase { repeat: repeat.transpose()?, ends_step: self.ends_step })
    }
}

impl Definition {
    /// Begins a loop at the end of a step, counted from 0: the stages that are added to the step belong to it until
    /// [`Definition::end_loop`]. For callers to whom stages come one by one; others call [`Step::repeat`].
    pub fn begin_loop(&mut self, step: usize, most: u64, until: Option<&str>) {
        if self.open_loop.is_some() {
            self.refuse_loop("it stands in another loop", "write the turns of one of the two out");
        }
        if most == 0 {
            self.refuse_loop("it has no turns", "give the most turns, at least 1");
        }
        let begin = self.steps.get(step).map_or(0, Vec::len);
        let until = until.map(str::to_owned);
        self.open_loop = Some(Loop { step, stages: begin..begin, most, until });
    }

    /// Ends the loop that was begun.
    pub fn end_loop(&mut self) {
        let Some(own) = self.open_loop.take() else { return self.refuse_loop("none was begun", "begin one") };
        let stages = own.stages.start..self.steps.get(own.step).map_or(0, Vec::len);
        if stages.is_empty() {
            self.refuse_loop("it has no stages", "add what each turn does");
        }
        self.loops.push(Loop { stages, ..own });
    }

    fn refuse_loop(&mut self, reason: &str, change: &str) {
        let what = format!("a loop of program {}", self.name());
        self.note(Err(Error::invalid(what, reason, change)));
    }

    /// Makes each phase of the steps a step of its own, and returns what the phases are; nothing where no step has a loop.
    pub(super) fn cut_at_loops(&mut self) -> Result<Vec<Cut>> {
        let loops = std::mem::take(&mut self.loops);
        if self.open_loop.is_some() {
            let what = format!("a loop of program {}", self.name());
            return Err(Error::invalid(what, "it has no end", "call Definition::end_loop"));
        }
        if loops.is_empty() {
            return Ok(Vec::new());
        }
        if !self.rare.is_empty() {
            return Err(Error::invalid(
                format!("program {}", self.name()),
                "it has loops, and reductions that are not made in each step",
                "make the reductions in each step",
            ));
        }
        let (mut phases, mut cuts) = (Vec::new(), Vec::new());
        for (number, mut stages) in std::mem::take(&mut self.steps).into_iter().enumerate() {
            let mut done = 0;
            for own in loops.iter().filter(|own| own.step == number) {
                let mut later = stages.split_off((own.stages.end - done).min(stages.len()));
                let turn = stages.split_off((own.stages.start - done).min(stages.len()));
                if !stages.is_empty() {
                    phases.push(stages);
                    cuts.push(Cut { repeat: None, ends_step: false });
                }
                phases.push(turn);
                cuts.push(Cut { repeat: Some((own.most, own.until.clone())), ends_step: false });
                done = own.stages.end;
                stages = std::mem::take(&mut later);
            }
            if !stages.is_empty() || done == 0 {
                phases.push(stages);
                cuts.push(Cut { repeat: None, ends_step: false });
            }
            if let Some(last) = cuts.last_mut() {
                last.ends_step = true;
            }
        }
        self.steps = phases;
        Ok(cuts)
    }

    /// Takes over the loops of a program, whose steps are in this definition phase by phase, and joins these.
    pub(super) fn join_phases(&mut self, program: &Program) {
        if !program.has_loops() {
            return;
        }
        let mut steps = vec![Vec::new()];
        for (stages, phase) in std::mem::take(&mut self.steps).into_iter().zip(&program.phases) {
            let number = steps.len() - 1;
            let Some(step) = steps.last_mut() else { return };
            let begin = step.len();
            step.extend(stages);
            if let Some(Repeat { most, until }) = phase.repeat {
                let until = until.map(|until| until.describe(program));
                self.loops.push(Loop { step: number, stages: begin..step.len(), most, until });
            }
            if phase.ends_step {
                steps.push(Vec::new());
            }
        }
        steps.pop();
        self.steps = steps;
    }

    /// Makes room for a stage at the beginning of each step.
    pub(super) fn shift_loops(&mut self) {
        for own in &mut self.loops {
            own.stages = own.stages.start + 1..own.stages.end + 1;
        }
    }
}

//! Loops in a step: stages that are repeated until a scalar says that it is enough.
//!
//! A step with loops is a row of *phases*: the stages between two loops, and those of each loop. What follows a loop depends on a
//! scalar that the loop makes, so a phase is what sessions and plans take at once, as they take a step elsewhere.

use super::definition::Definition;
use super::groups::uses_scalar;
use super::step::Step;
use super::until::Until;
use super::{Problem, Program, StageKind};
use crate::error::{Error, Result};
use crate::expr::Node;

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
    /// Whether the stages are carried out once for all steps ([`Step::once`]).
    pub once: bool,
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
    pub once: bool,
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

impl Problem {
    /// Returns whether the stages of a place in [`Program::steps`] are to be carried out once, and make the same in each step: of
    /// parameters, of places, of fields that no stage makes, and of what they have made before. Nothing else makes what is read of it.
    pub fn is_once(&self, place: usize) -> bool {
        let program = &self.program;
        if !program.repeat(place).is_some_and(|repeat| repeat.once) {
            return false;
        }
        let first = self.parameters.len();
        let varies = |scalar: &usize| program.scalars()[*scalar].extent.is_none();
        let varying: Vec<usize> =
            (0..program.scalars().len()).filter(varies).map(|scalar| first + scalar).collect();
        let is_made = |name: usize| program.stages().iter().any(|stage| stage.writes.contains(&name));
        let mut made: Vec<usize> = Vec::new();
        let are_known = program.steps()[place].clone().all(|number| {
            let stage = &program.stages()[number];
            let is_there = |name: usize| made.contains(&name) || !is_made(name);
            let is_known = match stage.does {
                StageKind::Update => stage.dag.taps().all(|tap| is_there(usize::from(tap.field))),
                // The field that the operator reads says which boundaries it has; its values change nothing.
                StageKind::Transform(_) => stage.transformed().is_some_and(is_there),
                StageKind::Reduce(..) | StageKind::Scalar(_) => false,
            } && !stage.dag.nodes.iter().any(|node| matches!(node, Node::Draw(..)))
                && !varying.iter().any(|&scalar| uses_scalar(self, stage, scalar));
            made.extend(&stage.writes);
            is_known
        });
        are_known && made.iter().all(|&name| program.is_kept(place, name))
    }
}

impl Program {
    /// Returns whether what the stages of a place in [`Program::steps`] make of a field is there in the next step too, as far as it is
    /// read: no other stage makes it, or the first behind them that is sure to be carried out makes it anew.
    fn is_kept(&self, place: usize, name: usize) -> bool {
        let own = self.steps[place].clone();
        let makes = |number: usize| self.stages[number].writes.contains(&name);
        let reads = |number: usize| self.stages[number].dag.taps().any(|tap| usize::from(tap.field) == name);
        let is_temporary = name >= self.fields.len();
        if is_temporary || !(0..self.stages.len()).any(|number| !own.contains(&number) && makes(number)) {
            return true;
        }
        let is_sure = |number: usize| {
            let phase = self.steps.iter().position(|step| step.contains(&number));
            phase.is_some_and(|phase| self.repeat(phase).is_none())
        };
        for number in (own.end..self.stages.len()).chain(0..own.start) {
            if reads(number) {
                return false;
            }
            if makes(number) && is_sure(number) {
                return true;
            }
        }
        false
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

    /// Adds stages that need not be carried out in each step, because they make fields of parameters, of places and of fields
    /// that no stage makes: a backend carries them out in the first step, and again once a parameter or a field was set from
    /// outside. Where one of them reads anything else they are carried out in each step. What other stages make of a field after
    /// them, and what they make of it, must be nothing that is read before it is made anew.
    ///
    /// ```
    /// use abide_core::program::{Centring, Definition};
    ///
    /// // A damping that grows along an axis, whose formula is too long for each step.
    /// let mut p = Definition::new("damped", 2);
    /// p.field("u", Centring::CELL).field("damping", Centring::CELL).parameter("strength", 0.1, "of the damping");
    /// let mut step = p.step();
    /// step.once(|first| {
    ///     first.stage("damping", |s| s.set("damping", (-s.param("strength") * s.coord(1)).exp()));
    /// });
    /// step.stage("u", |s| s.set("u", s.field("damping").here() * s.field("u").here()));
    /// assert_eq!(p.build()?.phases().len(), 2);
    /// # Ok::<(), abide_core::Error>(())
    /// ```
    pub fn once(&mut self, define: impl FnOnce(&mut Step<'_>)) -> &mut Self {
        self.definition.begin_once(self.number);
        define(&mut Step { definition: self.definition, number: self.number });
        self.definition.end_loop();
        self
    }
}

/// A phase of a definition: how often its stages are carried out, the text of the condition that ends them, and whether they are
/// carried out once.
pub(super) struct Cut {
    pub repeat: Option<(u64, Option<String>, bool)>,
    pub ends_step: bool,
}

impl Cut {
    /// Returns the phase of a program.
    pub fn phase(self, program: &Program) -> Result<Phase> {
        let repeat = self.repeat.map(|(most, until, once)| {
            let until = until.map(|text| Until::parse(&text, program)).transpose()?;
            Ok::<_, Error>(Repeat { most, until, once })
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
        self.open_loop = Some(Loop { step, stages: begin..begin, most, until, once: false });
    }

    /// Begins stages that are carried out once for all steps, at the end of a step as [`Definition::begin_loop`] does:
    /// [`Step::once`] says which may be.
    pub fn begin_once(&mut self, step: usize) {
        self.begin_loop(step, 1, None);
        if let Some(own) = &mut self.open_loop {
            own.once = true;
        }
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
                let repeat = Some((own.most, own.until.clone(), own.once));
                cuts.push(Cut { repeat, ends_step: false });
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
            if let Some(Repeat { most, until, once }) = phase.repeat {
                let until = until.map(|until| until.describe(program));
                self.loops.push(Loop { step: number, stages: begin..step.len(), most, until, once });
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

/// The stages that are carried out once ([`Step::once`]), and those that a session need not carry out again.
#[derive(Debug, Clone, Default)]
pub struct Once {
    /// Of each place in [`Program::steps`].
    is_once: Vec<bool>,
    is_made: Vec<bool>,
}

impl Once {
    /// Returns those of a problem, none of which has been carried out.
    pub fn of(problem: &Problem) -> Once {
        let is_once: Vec<bool> =
            (0..problem.program.phases().len()).map(|place| problem.is_once(place)).collect();
        Once { is_made: vec![false; is_once.len()], is_once }
    }

    /// Returns whether what stands at a place has been made.
    pub fn is_made(&self, place: usize) -> bool {
        self.is_made.get(place).is_some_and(|&is_made| is_made)
    }

    /// Takes note that the stages at a place have been carried out.
    pub fn made(&mut self, place: usize) {
        if let Some(is_made) = self.is_made.get_mut(place) {
            *is_made = self.is_once[place];
        }
    }

    /// Forgets all, because a parameter or a field was set.
    pub fn forget(&mut self) {
        self.is_made.fill(false);
    }
}

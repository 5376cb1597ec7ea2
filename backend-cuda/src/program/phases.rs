//! Steps with loops, phase by phase.
//!
//! A kernel before each turn tests whether the loop is over, and stops the launches that follow. So the device is given several
//! turns at a time, about as many as the loop had in the step before, and the host looks how many there were.

use std::collections::HashMap;

use abide_core::backend::ExpectedTurns;
use abide_core::program::{Once, Repeat};
use abide_core::{Error, Problem, Result};
use abide_shaders::cuda::KernelLaunch;
use cudarc::driver::{CudaFunction, CudaGraph};

use super::{ProgramSession, launch_kernel};
use crate::driver::during;
use crate::graph::recorded;
use crate::kernels::Kernels;

/// Turns of a loop that a graph has at most.
const GRAPH_TURNS: u64 = 8;

/// Launches from which on a graph of them is worth its replay.
const GRAPH_LAUNCHES: u64 = 4;

/// What a graph has.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Recorded {
    /// So many turns, each behind its test.
    Turns(u64),
    /// What stands in a phase, or in a turn that has begun.
    Body,
}

/// How far a step with loops has come.
#[derive(Default)]
pub(super) struct Phase {
    /// The place in the storage of the phase that comes next, or of the next turn of the loop that is under way.
    pub place: usize,
    /// The turns that this loop has had.
    turns: u64,
    /// Whether the problem's condition has ended the run.
    pub has_ended: bool,
    expected: ExpectedTurns,
    /// What need not be carried out again.
    pub once: Once,
    /// What is launched from places of the storage on.
    pub graphs: HashMap<(usize, Recorded), CudaGraph>,
    /// The kernels before turns, by the numbers of their loops, and that behind the last.
    functions: HashMap<usize, CudaFunction>,
    leave: Option<CudaFunction>,
}

impl Phase {
    /// Loads the kernels between turns, and begins at the first phase.
    pub fn load(
        problem: &Problem,
        loaded: &Kernels,
        kernels: &abide_shaders::cuda::ProgramKernels,
    ) -> Result<Phase> {
        let phase = Phase { once: Once::of(problem), ..Phase::default() };
        let Some(loops) = &kernels.loops else { return Ok(phase) };
        let load = |kernel: &KernelLaunch| loaded.function(&kernel.entry, kernel.shared_bytes);
        let functions = loops.turns.iter().map(|(&number, kernel)| Ok((number, load(kernel)?)));
        let functions = functions.collect::<Result<_>>()?;
        Ok(Phase { functions, leave: Some(load(&loops.leave)?), ..phase })
    }
}

impl ProgramSession {
    /// Advances steps of a program with loops.
    pub(super) fn advance_with_loops(&mut self, steps: u64) -> Result<f64> {
        let end = self.steps + steps;
        self.timer.start(&self.memory.stream)?;
        while self.steps < end && !self.phase.has_ended {
            let step = self.steps;
            while self.steps == step {
                self.turns(u64::MAX)?;
            }
            if let Some(until) = self.problem.until {
                self.phase.has_ended = until.ends(self.scalar(until.scalar)?);
            }
        }
        let seconds = self.timer.stop(&self.memory.stream)?;
        self.neighbours.done();
        self.remaining = end - self.steps;
        Ok(seconds)
    }

    /// Carries out the phase that comes next, a loop for so many turns at most. Returns how many there were, and whether the
    /// phase is over.
    pub(super) fn turns(&mut self, most: u64) -> Result<(u64, bool)> {
        let number = self.storage.number(self.phase.place);
        let Some(&phase) = self.problem.program.phases().get(number) else { return Ok((0, true)) };
        let (done, is_over) = match phase.repeat {
            None => {
                self.launch_body(self.phase.place)?;
                self.phase.place = self.storage.steps[self.phase.place].next;
                (1, true)
            }
            Some(_) if self.phase.turns == 0 && self.phase.once.is_made(number) => (0, true),
            Some(repeat) => {
                let (done, is_over) = self.turns_of(number, repeat, most)?;
                self.phase.turns += done;
                (done, is_over || self.phase.turns >= repeat.most)
            }
        };
        if is_over {
            if phase.repeat.is_some() {
                if self.phase.turns > 0 {
                    self.phase.once.made(number);
                }
                self.phase.expected.had(number, self.phase.turns);
                self.phase.place = self.storage.steps[self.phase.place].end;
            }
            self.phase.turns = 0;
            self.steps += u64::from(phase.ends_step);
        }
        Ok((done, is_over))
    }

    /// Carries out turns of a loop, and returns how many there were, and whether its condition holds.
    fn turns_of(&mut self, number: usize, repeat: Repeat, most: u64) -> Result<(u64, bool)> {
        let most = most.min(repeat.most - self.phase.turns);
        let Some(until) = repeat.until else {
            self.launch_turns(most)?;
            self.follow(most);
            return Ok((most, false));
        };
        let mut done = 0;
        if self.together.is_some() {
            // The host joins the reductions of each turn.
            while done < most {
                if until.ends(self.scalar(until.scalar)?) {
                    return Ok((done, true));
                }
                self.launch_turns(1)?;
                self.follow(1);
                done += 1;
            }
            return Ok((done, false));
        }
        let mut is_over = false;
        while done < most && !is_over {
            let more = self.phase.expected.next(number, self.phase.turns + done).min(most - done);
            self.launch_turns(more)?;
            // The test of the next turn says whether there is one, which has begun then.
            let next = self.storage.after_turns(self.phase.place, more);
            let goes_on = done + more < most;
            if goes_on {
                self.launch_test(next)?;
            }
            let progress = self.memory.progress()?;
            if goes_on && !progress.is_loop_over {
                self.launch_body(next)?;
            }
            self.follow(progress.turns.saturating_sub(done));
            (done, is_over) = (progress.turns, progress.is_loop_over);
        }
        let leave = self.kernels.loops.as_ref().map(|loops| &loops.leave);
        if let (Some(kernel), Some(function)) = (leave, &self.phase.leave) {
            let arguments = self.memory.arguments(&[], self.kernels.slots);
            launch_kernel(function, kernel, &arguments, &self.memory.stream)?;
        }
        Ok((done, is_over))
    }

    /// Goes on by so many turns from place to place of the storage.
    fn follow(&mut self, turns: u64) {
        self.phase.place = self.storage.after_turns(self.phase.place, turns);
    }

    /// Launches so many turns of the loop that is under way.
    fn launch_turns(&mut self, turns: u64) -> Result<()> {
        let (mut place, mut left) = (self.phase.place, turns);
        while left > 0 {
            // The greatest power of two of them.
            let many = (1 << left.ilog2()).min(GRAPH_TURNS);
            if self.together.is_some() {
                self.launch_body(place)?;
                (place, left) = (self.storage.steps[place].next, left - 1);
                continue;
            }
            self.replay(place, Recorded::Turns(many))?;
            (place, left) = (self.storage.after_turns(place, many), left - many);
        }
        Ok(())
    }

    /// Launches what stands at a place of the storage without a test before it. Reductions that go over several slabs the host joins.
    fn launch_body(&mut self, place: usize) -> Result<()> {
        match self.together.take() {
            Some(mut together) => {
                let launched = self.launch_together(&mut together, place);
                self.together = Some(together);
                launched
            }
            None => self.replay(place, Recorded::Body),
        }
    }

    /// Launches what stands from a place of the storage on, as a graph where these are many launches.
    fn replay(&mut self, place: usize, what: Recorded) -> Result<()> {
        let launch = || match what {
            Recorded::Body => self.launch_stages(place),
            Recorded::Turns(turns) => (0..turns).try_for_each(|turn| {
                let place = self.storage.after_turns(place, turn);
                self.launch_test(place)?;
                self.launch_stages(place)
            }),
        };
        let turns = if let Recorded::Turns(turns) = what { turns } else { 1 };
        if turns * (self.storage.steps[place].launches.len() as u64) < GRAPH_LAUNCHES {
            return launch();
        }
        if !self.phase.graphs.contains_key(&(place, what)) {
            let graph = recorded(&self.memory.stream, launch)?;
            self.phase.graphs.insert((place, what), graph);
        }
        match self.phase.graphs.get(&(place, what)) {
            Some(graph) => graph.launch().map_err(during("replaying a graph")),
            None => Ok(()),
        }
    }

    /// Launches the test of a loop's next turn; nothing where a loop has none.
    fn launch_test(&self, place: usize) -> Result<()> {
        let number = self.storage.steps[place].number;
        let Some(kernel) = self.kernels.loops.as_ref().and_then(|loops| loops.turns.get(&number)) else {
            return Ok(());
        };
        let none = || Error::device("cuda", "launching a turn of a loop", "it has no kernel");
        let function = self.phase.functions.get(&number).ok_or_else(none)?;
        let arguments = self.memory.arguments(&[], self.kernels.slots);
        launch_kernel(function, kernel, &arguments, &self.memory.stream)
    }

    fn launch_stages(&self, place: usize) -> Result<()> {
        self.launch_all(&self.storage.steps[place].launches)
    }

    /// Returns the value of a computed scalar.
    fn scalar(&self, number: usize) -> Result<f64> {
        let all = self.memory.scalars()?;
        Ok(all.get(self.problem.parameters.len() + number).copied().unwrap_or(f64::NAN))
    }
}

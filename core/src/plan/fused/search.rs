//! Which stages become a group, by the genetic search over all partitions (`crate::fusion`).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::partition::{Costs, Known, Partition};
use crate::device::DeviceSpec;
use crate::error::Result;
use crate::fusion::{Loop, Loops, Objective, Search, Set, in_turn, search};
use crate::program::{Boxes, Groups, Problem, uses_scalar};

/// How long a search of a step lasts. A group's cost takes some ten microseconds at least: its tiles are tried.
const SETTINGS: Search = Search { seed: 1, stagnation: 6, evaluations: 200_000 };

/// Units of cost in a second.
const UNITS: f64 = 1e12;

/// Searches for the partition of a problem that is not plain with the least estimate on a device, among those without
/// the groups that are refused.
///
/// # Errors
///
/// Those of [`Loops::new`]: the program has too many stages or names.
pub fn searched(
    problem: &Problem,
    boxes: &Boxes,
    device: &DeviceSpec,
    refused: &[Vec<usize>],
) -> Result<Partition> {
    let mut groups = Groups::needed(&problem.program, boxes);
    let mut costs = Costs::new(problem, boxes, device);
    costs.known.extend(refused.iter().map(|group| (group.clone(), None)));
    for step in &mut groups.steps {
        let stages: Vec<usize> = step.iter().flatten().copied().collect();
        let loops: Vec<Loop> = stages.iter().map(|&stage| as_loop(problem, stage)).collect();
        let times = Times { loops: Loops::new(&loops, usize::MAX)?, stages, costs: Mutex::new(costs) };
        let found = search(&times, &SETTINGS, &in_turn, || true);
        *step = found.groups.iter().map(|group| times.stages_of(group.iter().copied())).collect();
        costs = times.costs.into_inner().unwrap_or_else(PoisonError::into_inner);
    }
    let known: HashMap<Vec<usize>, Known> = costs.known;
    Ok(Partition::of(groups, |stages| known.get(stages)?.clone()?.1))
}

/// Returns what a stage reads and writes: fields and temporaries, and scalars behind them.
fn as_loop(problem: &Problem, number: usize) -> Loop {
    let program = &problem.program;
    let (stage, names) = (&program.stages()[number], program.names().len());
    let mut reads: Vec<usize> = stage.dag.taps().map(|tap| usize::from(tap.field)).collect();
    let mut writes = stage.writes.clone();
    for scalar in 0..program.parameters().len() + program.scalars().len() {
        if uses_scalar(problem, stage, scalar) {
            reads.push(names + scalar);
        }
        if stage.does.scalar() == Some(scalar) {
            writes.push(names + scalar);
        }
    }
    Loop { reads, writes }
}

/// What groups of a step's stages cost in time.
struct Times<'a> {
    loops: Loops,
    /// The stages of the loops.
    stages: Vec<usize>,
    costs: Mutex<Costs<'a>>,
}

impl Times<'_> {
    fn stages_of(&self, loops: impl Iterator<Item = usize>) -> Vec<usize> {
        loops.map(|own| self.stages[own]).collect()
    }
}

impl Objective for Times<'_> {
    fn loops(&self) -> &Loops {
        &self.loops
    }

    fn cost(&self, group: &Set) -> Option<u64> {
        let stages = self.stages_of(group.iter());
        let mut costs = self.costs.lock().unwrap_or_else(PoisonError::into_inner);
        (stages.len() == 1 || costs.are_fit(&stages)).then_some(())?;
        Some((costs.of(&stages)? * UNITS) as u64)
    }
}

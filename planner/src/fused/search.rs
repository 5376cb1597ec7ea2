//! Which stages become a group, by the genetic search over all partitions (`crate::fusion`), of whole stages and of
//! stages in parts.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use abide_core::plan::fused::Partition;
use abide_core::program::{Boxes, Groups, Place, Split, uses_scalar};
use abide_core::{DeviceSpec, Error, Problem, Result};

use super::partition::{Costs, Passing, timed};
use crate::fusion::{Loop, Loops, Objective, Search, Set, in_turn, search};

/// How long a search of a step lasts. A group's cost takes some ten microseconds at least: its tiles are tried.
const SETTINGS: Search = Search { seed: 1, stagnation: 6, evaluations: 200_000 };

/// Units of cost in a second.
const UNITS: f64 = 1e12;

/// The share of the time of whole stages that stages in parts may take at most: a search is not surer than that.
const PAYS: f64 = 0.99;

/// Searches for the partition of a problem that is not plain with the least estimate on a device, among those without
/// the groups that are refused, each given by the results that it computes. A stage whose results need nothing of each
/// other runs in parts where that is estimated to pay.
///
/// # Errors
///
/// Those of [`Loops::new`]: the program has too many stages or names.
pub fn searched(
    problem: &Problem,
    boxes: &Boxes,
    device: &DeviceSpec,
    refused: &[Vec<Place>],
    passing: Passing,
) -> Result<Partition> {
    let mut costs = Costs::new(problem, boxes, device, passing);
    refuse(&mut costs, &problem.program.places(&[]), refused);
    let groups = found(&mut costs, &[])?;
    let seconds = costs.sum(&groups);
    let whole = Partition::of(groups, |stages| costs.known.get(stages)?.clone()?.1);
    let splits = problem.splits(boxes);
    if splits.is_empty() {
        return Ok(whole);
    }
    match in_parts(&mut costs, &splits, refused, passing) {
        Ok(Some((in_parts, partition))) if in_parts < PAYS * seconds => Ok(partition),
        // In all its parts a program may have more loops than a search takes.
        Ok(_) | Err(Error::Limit { .. }) => Ok(whole),
        Err(error) => Err(error),
    }
}

/// Searches for groups of stages in parts, and returns their seconds and how they run; parts that come into one group are
/// one part again. `whole` are the costs of the whole stages.
fn in_parts(
    whole: &mut Costs<'_>,
    splits: &[Split],
    refused: &[Vec<Place>],
    passing: Passing,
) -> Result<Option<(f64, Partition)>> {
    let (problem, device) = (whole.problem, whole.device);
    let apart = problem.split(splits)?;
    let boxes = Boxes::of(&apart)?;
    let places = problem.program.places(splits);
    let mut costs = Costs::new(&apart, &boxes, device, passing);
    refuse(&mut costs, &places, refused);
    let mut kin = Vec::new();
    for split in splits {
        let parts: Vec<usize> = (0..places.len()).filter(|&own| places[own][0][0] == split.stage).collect();
        // All parts combined, and nothing else, make up the stage.
        let stage = whole.of(&[split.stage]).map(|seconds| (seconds, None));
        costs.known.insert(parts.clone(), stage);
        kin.push(parts);
    }
    let groups = found(&mut costs, &kin)?;
    let joined = joined(splits, &places, &groups);
    let own = problem.program.places(&joined);
    let number = |place: &Place| own.iter().position(|results| results.contains(place));
    let renumbered = |group: &Vec<usize>| {
        let mut stages: Vec<usize> =
            group.iter().flat_map(|&part| &places[part]).filter_map(number).collect();
        stages.sort_unstable();
        stages.dedup();
        stages
    };
    let steps = groups.steps.iter().map(|step| step.iter().map(renumbered).collect()).collect();
    let split = problem.split(&joined)?;
    let found = timed(&split, &Boxes::of(&split)?, device, &Groups { steps }, passing);
    Ok(found.map(|(seconds, partition)| (seconds, Partition { splits: joined, ..partition })))
}

/// Returns the splits that are left where parts of a stage that are in one group, or in none, are one part.
fn joined(splits: &[Split], places: &[Vec<Place>], groups: &Groups) -> Vec<Split> {
    let of = |split: &Split| {
        let mut parts: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
        for (own, results) in places.iter().enumerate().filter(|(_, results)| results[0][0] == split.stage) {
            let group = groups.steps.iter().flatten().position(|group| group.contains(&own));
            parts.entry(group).or_default().extend(results.iter().map(|&[_, output]| output));
        }
        let mut parts: Vec<Vec<usize>> = parts.into_values().collect();
        parts.iter_mut().for_each(|part| part.sort_unstable());
        parts.sort_unstable();
        (parts.len() > 1).then_some(Split { stage: split.stage, parts })
    };
    splits.iter().filter_map(of).collect()
}

/// Refuses groups that are given by the results that they compute, where stages that compute these `places` can be such a
/// group.
fn refuse(costs: &mut Costs<'_>, places: &[Vec<Place>], refused: &[Vec<Place>]) {
    for group in refused {
        let within = |own: &usize| places[*own].iter().all(|place| group.contains(place));
        let stages: Vec<usize> = (0..places.len()).filter(within).collect();
        if stages.iter().map(|&own| places[own].len()).sum::<usize>() == group.len() {
            costs.known.insert(stages, None);
        }
    }
}

/// Searches each step of a program for groups. Stages of each of `kin` may be united though they share no field.
fn found(costs: &mut Costs<'_>, kin: &[Vec<usize>]) -> Result<Groups> {
    let mut groups = Groups::needed(&costs.problem.program, costs.boxes);
    for step in &mut groups.steps {
        let stages: Vec<usize> = step.iter().flatten().copied().collect();
        let loops: Vec<Loop> = stages.iter().map(|&stage| as_loop(costs.problem, stage, kin)).collect();
        let times = Times { loops: Loops::new(&loops, usize::MAX)?, stages, costs: Mutex::new(&mut *costs) };
        let found = search(&times, &SETTINGS, &in_turn, || true);
        *step = found.groups.iter().map(|group| times.stages_of(group.iter().copied())).collect();
    }
    Ok(groups)
}

/// Returns what a stage reads and writes: fields and temporaries, scalars behind them, and behind these what kin share.
fn as_loop(problem: &Problem, number: usize, kin: &[Vec<usize>]) -> Loop {
    let program = &problem.program;
    let (stage, names) = (&program.stages()[number], program.names().len());
    let scalars = program.parameters().len() + program.scalars().len();
    let mut reads: Vec<usize> = stage.dag.taps().map(|tap| usize::from(tap.field)).collect();
    let mut writes = stage.writes.clone();
    for scalar in 0..scalars {
        if uses_scalar(problem, stage, scalar) {
            reads.push(names + scalar);
        }
        if stage.does.scalar() == Some(scalar) {
            writes.push(names + scalar);
        }
    }
    let own = kin.iter().position(|stages| stages.contains(&number));
    reads.extend(own.map(|own| names + scalars + own));
    Loop { reads, writes }
}

/// What groups of a step's stages cost in time.
struct Times<'a, 'b> {
    loops: Loops,
    /// The stages of the loops.
    stages: Vec<usize>,
    costs: Mutex<&'a mut Costs<'b>>,
}

impl Times<'_, '_> {
    fn stages_of(&self, loops: impl Iterator<Item = usize>) -> Vec<usize> {
        loops.map(|own| self.stages[own]).collect()
    }
}

impl Objective for Times<'_, '_> {
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

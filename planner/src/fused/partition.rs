//! Which stages become a group: those whose union saves most, as long as any does.

use std::collections::HashMap;

use abide_core::device::Capability;
use abide_core::plan::fused::{Group, GroupKernel, Partition};
use abide_core::program::{Boxes, Groups, is_renamed, ordered, waits};
use abide_core::{DeviceSpec, Problem};

use super::candidates::{fastest, fastest_with_copies};
use super::chain::{Links, chains};
use super::pass::{Passes, runs};
use super::tail::is_tail;
use crate::estimate;

/// Returns groups that were found before with their kernels; `None` where they are no groups of the problem, or one has
/// no kernel on the device.
pub fn partition_of(
    problem: &Problem,
    boxes: &Boxes,
    device: &DeviceSpec,
    groups: &Groups,
    passing: Passing,
) -> Option<Partition> {
    Some(timed(problem, boxes, device, groups, passing)?.1)
}

/// Does the same, and returns the seconds that the groups are estimated to take.
pub(super) fn timed(
    problem: &Problem,
    boxes: &Boxes,
    device: &DeviceSpec,
    groups: &Groups,
    passing: Passing,
) -> Option<(f64, Partition)> {
    let is_ascending = |group: &Vec<usize>| !group.is_empty() && group.is_sorted_by(|one, two| one < two);
    if !groups.steps.iter().flatten().all(is_ascending) {
        return None;
    }
    groups.check(problem, boxes).ok()?;
    let mut costs = Costs::new(problem, boxes, device, passing);
    for group in groups.steps.iter().flatten().filter(|group| group.len() > 1) {
        costs.of(group).filter(|_| costs.are_fit(group))?;
    }
    let seconds = costs.sum(groups);
    Some((seconds, Partition::of(groups.clone(), |stages| costs.known.get(stages)?.clone()?.1)))
}

/// The share of the time of stages by themselves that groups may take at most to be chosen unasked, because estimates
/// are wrong by some 10 %.
const WORTHWHILE: f64 = 0.9;

/// Unites groups of a problem that is not plain, two at a time, as long as that is estimated to save time on a device.
pub fn greedy(problem: &Problem, boxes: &Boxes, device: &DeviceSpec, passing: Passing) -> Partition {
    united_greedily(problem, boxes, device, (passing, None)).0
}

/// Returns the groups of [`greedy`] where they are well worth it, else every stage by itself; stages that go over few values
/// in chains. The estimate was measured on devices that report their registers, so other devices get no groups.
pub fn worthwhile(problem: &Problem, boxes: &Boxes, device: &DeviceSpec, passing: Passing) -> Partition {
    if device.registers.is_none() {
        return Partition::alone(&problem.program);
    }
    let links = Links::of(device).filter(|_| passing == Passing::Allowed);
    let (partition, mut costs) = united_greedily(problem, boxes, device, (passing, links));
    let grouped = costs.sum(&partition.groups());
    let alone = costs.sum(&Groups::needed(&problem.program, boxes));
    let partition = if grouped <= WORTHWHILE * alone { partition } else { with_tails(problem, &partition) };
    let chains = links.map_or(Vec::new(), |links| chains(problem, boxes, &partition, &links));
    Partition { chains, ..partition }
}

/// Returns the partition without all groups but reductions in the kernel of the update before them, which read less in any case.
fn with_tails(problem: &Problem, partition: &Partition) -> Partition {
    let order = Waits::of(problem);
    let of_step = |(number, step): (usize, &Vec<Group>)| {
        let own = |group: &Group| match group.is_tail() {
            true => vec![group.stages.clone()],
            false => group.stages.iter().map(|&stage| vec![stage]).collect(),
        };
        let groups = order.ordered(step.iter().flat_map(own).collect());
        groups.unwrap_or_else(|| Groups::alone(&problem.program).steps.swap_remove(number))
    };
    let steps = partition.steps.iter().enumerate().map(of_step).collect();
    Partition::of(Groups { steps }, |_| None)
}

/// The shares of the estimate of several stages in one kernel by which stages are united. With less than all of it pairs come
/// together that pay with a third stage alone.
const OPTIMISM: [f64; 2] = [1.0, 0.8];

/// Unites groups, and returns those with the least estimate of all tries. A group that takes longer than its stages one by one is
/// dissolved. Stages that chains take are left alone.
fn united_greedily<'a>(
    problem: &'a Problem,
    boxes: &'a Boxes,
    device: &'a DeviceSpec,
    (passing, links): (Passing, Option<Links>),
) -> (Partition, Costs<'a>) {
    let alone = Groups::needed(&problem.program, boxes);
    let mut costs = Costs { links, ..Costs::new(problem, boxes, device, passing) };
    let order = Waits::of(problem);
    let mut best: Option<(f64, Groups)> = None;
    for optimism in OPTIMISM {
        let mut groups = alone.clone();
        for step in &mut groups.steps {
            costs.pass(step);
            while let Some(united) = costs.best_union(step, &order, optimism) {
                *step = united;
            }
            *step = costs.dissolved(step, &order);
        }
        let seconds = costs.sum(&groups);
        if best.as_ref().is_none_or(|(least, _)| seconds < *least) {
            best = Some((seconds, groups));
        }
    }
    let groups = best.map_or(alone, |(_, groups)| groups);
    (Partition::of(groups, |stages| costs.known.get(stages)?.clone()?.1), costs)
}

/// Whether stages that repeat one formula may be passes of a streaming kernel: each is a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passing {
    /// They may.
    Allowed,
    /// They may, and no stages are chained, because reductions are joined between launches.
    Slab,
    /// One persistent kernel does all stages.
    Refused,
}

/// A group's seconds, and the group as a kernel; `None` where the stages are no group.
pub type Known = Option<(f64, Option<GroupKernel>)>;

/// What groups cost, and which were asked for already.
pub struct Costs<'a> {
    pub problem: &'a Problem,
    pub boxes: &'a Boxes,
    pub device: &'a DeviceSpec,
    pub known: HashMap<Vec<usize>, Known>,
    passing: Passing,
    passes: Passes,
    /// How stages that go over few values are chained, if they are.
    links: Option<Links>,
}

impl<'a> Costs<'a> {
    pub fn new(
        problem: &'a Problem,
        boxes: &'a Boxes,
        device: &'a DeviceSpec,
        passing: Passing,
    ) -> Costs<'a> {
        Costs {
            problem,
            boxes,
            device,
            known: HashMap::new(),
            passing,
            passes: Passes::default(),
            links: None,
        }
    }

    /// Puts stages of a step that repeat one formula into passes of about the same depth, where that is estimated to save
    /// time.
    fn pass(&mut self, step: &mut Vec<Vec<usize>>) {
        if self.passing == Passing::Refused {
            return;
        }
        for run in runs(self.problem, self.boxes, step).into_iter().rev() {
            let stages: Vec<usize> = step[run.clone()].concat();
            if !self.are_fit(&stages) {
                continue;
            }
            let alone: f64 = stages.iter().filter_map(|&stage| self.of(&[stage])).sum();
            let mut best = (alone, Vec::new());
            for count in 1..=stages.len() / 2 {
                let passes: Vec<Vec<usize>> = (0..count)
                    .map(|part| {
                        let at = |part: usize| part * stages.len() / count;
                        stages[at(part)..at(part + 1)].to_vec()
                    })
                    .collect();
                let seconds: Option<f64> = passes.iter().map(|pass| self.of(pass)).sum();
                if let Some(seconds) = seconds.filter(|&seconds| seconds < best.0) {
                    best = (seconds, passes);
                }
            }
            if !best.1.is_empty() {
                step.splice(run, best.1);
            }
        }
    }

    /// Returns the groups of a step with those two united that save most by it; `None` where none do.
    fn best_union(&mut self, step: &[Vec<usize>], order: &Waits, optimism: f64) -> Option<Vec<Vec<usize>>> {
        let mut best: Option<(f64, Vec<Vec<usize>>)> = None;
        for first in 0..step.len() {
            for second in first + 1..step.len() {
                let pair = [&step[first], &step[second]];
                if !self.may_unite(pair) {
                    continue;
                }
                let union = united(pair);
                let [Some(one), Some(two), Some(cost)] =
                    [&step[first], &step[second], &union].map(|group| self.hoped(group, optimism))
                else {
                    continue;
                };
                let saved = one + two - cost;
                if saved <= best.as_ref().map_or(0.0, |(most, _)| *most) {
                    continue;
                }
                let others = step.iter().enumerate().filter(|(place, _)| *place != first && *place != second);
                let all = others.map(|(_, group)| group.clone()).chain([union]).collect();
                best = order.ordered(all).map(|ordered| (saved, ordered)).or(best);
            }
        }
        best.map(|(_, groups)| groups)
    }

    /// Returns this share of the estimate of several stages, or the estimate of one.
    fn hoped(&mut self, group: &[usize], optimism: f64) -> Option<f64> {
        Some(self.of(group)? * if group.len() > 1 { optimism } else { 1.0 })
    }

    /// Returns the groups of a step without those whose stages take less time one by one, if they can run then.
    fn dissolved(&mut self, step: &[Vec<usize>], order: &Waits) -> Vec<Vec<usize>> {
        let mut all = Vec::new();
        for group in step {
            let one_by_one: Option<f64> = group.iter().map(|&stage| self.of(&[stage])).sum();
            match self.of(group).zip(one_by_one) {
                Some((together, one_by_one)) if group.len() > 1 && together > one_by_one => {
                    all.extend(group.iter().map(|&stage| vec![stage]));
                }
                _ => all.push(group.clone()),
            }
        }
        order.ordered(all).unwrap_or_else(|| step.to_vec())
    }

    /// Returns whether two groups may be one: they are of stages that can be fused and share a field or temporary.
    fn may_unite(&self, pair: [&Vec<usize>; 2]) -> bool {
        let stages = self.problem.program.stages();
        let names = |group: &Vec<usize>| -> Vec<usize> {
            group.iter().flat_map(|&stage| stages[stage].names()).collect()
        };
        let other = names(pair[1]);
        pair.iter().all(|group| self.are_fit(group)) && names(pair[0]).iter().any(|name| other.contains(name))
    }

    /// Returns whether stages are of those that can be fused.
    pub fn are_fit(&self, stages: &[usize]) -> bool {
        let all = self.problem.program.stages();
        let is_chained = |stage| self.links.is_some_and(|links| links.takes(self.problem, self.boxes, stage));
        stages.iter().all(|&stage| all[stage].sweeps() && !is_chained(stage))
    }

    /// Returns the seconds of all steps' groups; infinite where one of them may not be.
    pub fn sum(&mut self, groups: &Groups) -> f64 {
        let all = groups.steps.iter().flatten();
        all.map(|group| self.of(group).unwrap_or(f64::INFINITY)).sum()
    }

    /// Returns the seconds of a group with its launch.
    pub fn of(&mut self, group: &[usize]) -> Option<f64> {
        if let Some(known) = self.known.get(group) {
            return known.as_ref().map(|(seconds, _)| *seconds);
        }
        let launch = self.device.launch_seconds;
        let known = match *group {
            // A stage that only copies gives another name to a buffer.
            [stage] if is_renamed(self.problem, self.boxes, stage) => Some((0.0, None)),
            [stage] => {
                let alone = estimate::alone(self.problem, self.boxes, self.device, stage);
                Some((alone.seconds + launch, None))
            }
            // Kernels of CUDA join what they have at hand.
            [update, reduction]
                if self.device.has(Capability::Warps) && is_tail(self.problem, self.boxes, group) =>
            {
                let stages = [update, reduction];
                let tail = estimate::tail(self.problem, self.boxes, self.device, stages);
                Some((tail.seconds + launch, None))
            }
            _ => {
                // Groups that copy what they read were faster than others wherever they fit.
                let copied = match self.passing {
                    Passing::Refused => None,
                    _ => fastest_with_copies(self.problem, self.boxes, self.device, group),
                };
                let tiles = copied.or_else(|| fastest(self.problem, self.boxes, self.device, group).ok());
                let tiles = tiles
                    .map(|(fused, estimate)| (estimate.seconds + launch, Some(GroupKernel::Tiles(fused))));
                let pass = match self.passing {
                    Passing::Refused => None,
                    _ => self.passes.of(self.problem, self.boxes, self.device, group),
                };
                let pass = pass.map(|(seconds, pass)| (seconds, Some(GroupKernel::Pass(pass))));
                tiles.into_iter().chain(pass).min_by(|one, other| one.0.total_cmp(&other.0))
            }
        };
        let seconds = known.as_ref().map(|(seconds, _)| *seconds);
        self.known.insert(group.to_vec(), known);
        seconds
    }
}

fn united(pair: [&Vec<usize>; 2]) -> Vec<usize> {
    let mut union = [&pair[0][..], pair[1]].concat();
    union.sort_unstable();
    union
}

/// For each stage, whether it waits for each earlier one of its step.
struct Waits(Vec<Vec<bool>>);

impl Waits {
    fn of(problem: &Problem) -> Waits {
        let program = &problem.program;
        let mut all = vec![Vec::new(); program.stages().len()];
        for step in program.steps() {
            for later in step.clone() {
                all[later] = vec![false; later];
                step.clone().take_while(|&earlier| earlier < later).for_each(|earlier| {
                    all[later][earlier] = waits(problem, later, earlier);
                });
            }
        }
        Waits(all)
    }

    /// Returns groups of a step in an order in which they can run; `None` if there is none.
    fn ordered(&self, groups: Vec<Vec<usize>>) -> Option<Vec<Vec<usize>>> {
        let follows = |later: &Vec<usize>, earlier: &Vec<usize>| {
            later.iter().any(|&two| earlier.iter().any(|&one| one < two && self.0[two][one]))
        };
        ordered(groups, follows, |group| group.first().copied())
    }
}

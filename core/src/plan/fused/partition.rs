//! Which stages become a group: those whose union saves most, as long as any does.

use std::collections::HashMap;

use super::{Fused, estimate, fastest};
use crate::device::DeviceSpec;
use crate::program::{Boxes, Does, Groups, Problem, is_renamed, waits};

/// The groups of a problem's steps, with those of several stages as kernels.
#[derive(Debug, Clone, PartialEq)]
pub struct Partition {
    /// The groups.
    pub groups: Groups,
    /// Those of several stages.
    pub fused: HashMap<Vec<usize>, Fused>,
}

/// Unites groups of a problem that is not plain, two at a time, as long as that is estimated to save time on a device.
pub fn partition(problem: &Problem, boxes: &Boxes, device: &DeviceSpec) -> Partition {
    let program = &problem.program;
    let mut groups = Groups::needed(program, boxes);
    let mut costs = Costs { problem, boxes, device, known: HashMap::new() };
    let order = Order::of(problem);
    for step in &mut groups.steps {
        loop {
            let mut best: Option<(f64, [usize; 2], Vec<Vec<usize>>)> = None;
            for first in 0..step.len() {
                for second in first + 1..step.len() {
                    let pair = [&step[first], &step[second]];
                    if !costs.may_unite(pair) {
                        continue;
                    }
                    let union = united(pair);
                    let Some(cost) = costs.of(&union) else { continue };
                    let [Some(one), Some(two)] = pair.map(|group| costs.of(group)) else { continue };
                    let saved = one + two - cost;
                    if saved <= best.as_ref().map_or(0.0, |(most, ..)| *most) {
                        continue;
                    }
                    let others = step.iter().enumerate().filter(|(place, _)| *place != first && *place != second);
                    let all: Vec<Vec<usize>> = others.map(|(_, group)| group.clone()).chain([union]).collect();
                    if let Some(ordered) = order.ordered(all) {
                        best = Some((saved, [first, second], ordered));
                    }
                }
            }
            let Some((_, _, united)) = best else { break };
            *step = united;
        }
    }
    let several = groups.steps.iter().flatten().filter(|group| group.len() > 1);
    let fused = several.filter_map(|group| Some((group.clone(), costs.known.get(group)?.clone()?.1?))).collect();
    Partition { groups, fused }
}

/// A group's seconds, and the group as a kernel; `None` where the stages are no group.
type Known = Option<(f64, Option<Fused>)>;

/// What groups cost, and which were asked for already.
struct Costs<'a> {
    problem: &'a Problem,
    boxes: &'a Boxes,
    device: &'a DeviceSpec,
    known: HashMap<Vec<usize>, Known>,
}

impl Costs<'_> {
    /// Returns whether two groups may be one: they are of stages that can be fused and share a field or temporary.
    fn may_unite(&self, pair: [&Vec<usize>; 2]) -> bool {
        let stages = self.problem.program.stages();
        let names = |group: &Vec<usize>| {
            let mut names: Vec<usize> = Vec::new();
            for &stage in group {
                names.extend(&stages[stage].writes);
                names.extend(stages[stage].dag.taps().map(|tap| usize::from(tap.field)));
            }
            names
        };
        let is_fit = |&stage: &usize| !matches!(stages[stage].does, Does::Scalar(_)) && stages[stage].points.is_empty();
        let other = names(pair[1]);
        pair.iter().all(|group| group.iter().all(is_fit)) && names(pair[0]).iter().any(|name| other.contains(name))
    }

    /// Returns the seconds of a group with its launch.
    fn of(&mut self, group: &Vec<usize>) -> Option<f64> {
        if let Some(known) = self.known.get(group) {
            return known.as_ref().map(|(seconds, _)| *seconds);
        }
        let launch = self.device.launch_seconds;
        let known = match group[..] {
            // A stage that only copies gives another name to a buffer.
            [stage] if is_renamed(self.problem, self.boxes, stage) => Some((0.0, None)),
            [stage] => {
                let alone = estimate::alone(self.problem, self.boxes, self.device, stage);
                Some((alone.seconds + launch, None))
            }
            _ => fastest(self.problem, self.boxes, self.device, group)
                .ok()
                .map(|(fused, estimate)| (estimate.seconds + launch, Some(fused))),
        };
        let seconds = known.as_ref().map(|(seconds, _)| *seconds);
        self.known.insert(group.clone(), known);
        seconds
    }
}

fn united(pair: [&Vec<usize>; 2]) -> Vec<usize> {
    let mut union = [&pair[0][..], pair[1]].concat();
    union.sort_unstable();
    union
}

/// For each stage, whether it waits for each earlier one of its step.
struct Order(Vec<Vec<bool>>);

impl Order {
    fn of(problem: &Problem) -> Order {
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
        Order(all)
    }

    /// Returns groups of a step in an order in which they can run, of several the one with the first stage before
    /// the others; `None` if there is no order.
    fn ordered(&self, mut left: Vec<Vec<usize>>) -> Option<Vec<Vec<usize>>> {
        let follows = |later: &[usize], earlier: &[usize]| {
            later.iter().any(|&two| earlier.iter().any(|&one| one < two && self.0[two][one]))
        };
        let mut done = Vec::new();
        while !left.is_empty() {
            let is_free = |place: usize| {
                left.iter().enumerate().all(|(other, group)| other == place || !follows(&left[place], group))
            };
            let ready = (0..left.len()).filter(|&place| is_free(place)).min_by_key(|&place| left[place][0])?;
            done.push(left.swap_remove(ready));
        }
        Some(done)
    }
}

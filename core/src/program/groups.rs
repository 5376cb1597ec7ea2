//! The stages of each step in groups (fusion): a group runs as one kernel, and has the bits of its stages one by
//! one.

use super::{Boxes, Problem, Program, Stage, StageKind, is_empty};
use crate::error::{Error, Result};
use crate::expr::Node;

/// The stages of each step of a cycle in groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Groups {
    /// Of each step, the groups in the order in which they run; each has the numbers of its stages, ascending.
    pub steps: Vec<Vec<Vec<usize>>>,
}

impl Groups {
    /// Returns every stage in a group of its own.
    pub fn alone(program: &Program) -> Groups {
        let step = |step: &std::ops::Range<usize>| step.clone().map(|stage| vec![stage]).collect();
        Groups { steps: program.steps().iter().map(step).collect() }
    }

    /// Returns each stage that anybody needs in a group of its own. A stage is left out if all its values are
    /// overwritten before they are read.
    pub fn needed(program: &Program, boxes: &Boxes) -> Groups {
        let needed = needed(program, boxes);
        let mut groups = Groups::alone(program);
        groups.steps.iter_mut().for_each(|step| step.retain(|group| group.iter().all(|&own| needed[own])));
        groups
    }

    /// Checks that each group has stages of its step, that no stage is in two, that every stage that is needed is in
    /// one, and that no stage runs before one that it waits for.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] that names the stage.
    pub fn check(&self, problem: &Problem, boxes: &Boxes) -> Result<()> {
        let program = &problem.program;
        let fault = |stage: usize, reason: String| {
            let name = program.stages().get(stage).map_or("?", |stage| &stage.name);
            Err(Error::invalid(
                format!("groups of stages: stage {name}"),
                reason,
                "make a plan for this problem",
            ))
        };
        if self.steps.len() != program.steps().len() {
            let reason =
                format!("{} steps have groups, the cycle has {}", self.steps.len(), program.steps().len());
            return fault(0, reason);
        }
        let needed = needed(program, boxes);
        for (step, groups) in program.steps().iter().zip(&self.steps) {
            let mut done: Vec<usize> = Vec::new();
            for &stage in groups.iter().flatten() {
                if !step.contains(&stage) || done.contains(&stage) {
                    return fault(stage, format!("{stage} is not in the step, or in two groups"));
                }
                done.push(stage);
            }
            if let Some(missing) = step.clone().find(|stage| needed[*stage] && !done.contains(stage)) {
                return fault(missing, "it is in no group".to_owned());
            }
            for (place, &stage) in done.iter().enumerate() {
                let waits = |earlier: &usize| *earlier < stage && waits(problem, stage, *earlier);
                if let Some(&earlier) = done[place + 1..].iter().find(|earlier| waits(earlier)) {
                    return fault(
                        stage,
                        format!("it runs before {}, for which it waits", program.stages()[earlier].name),
                    );
                }
            }
        }
        Ok(())
    }
}

/// Returns whether a stage of a step has to run after an earlier one: one of them makes what the other reads or
/// makes.
pub fn waits(problem: &Problem, later: usize, earlier: usize) -> bool {
    let [first, second] = [earlier, later].map(|stage| &problem.program.stages()[stage]);
    let reads = |stage: &Stage, name: usize| stage.dag.taps().any(|tap| usize::from(tap.field) == name);
    let (one, two) = (first.does.scalar(), second.does.scalar());
    first.writes.iter().any(|&name| second.writes.contains(&name) || reads(second, name))
        || second.writes.iter().any(|&name| reads(first, name))
        || one.is_some_and(|scalar| one == two || uses_scalar(problem, second, scalar))
        || two.is_some_and(|scalar| uses_scalar(problem, first, scalar))
}

/// Returns groups in an order in which they can run, of several the one with the first member before the others; `None`
/// if there is no order. `follows` says whether its first argument waits for its second.
pub fn ordered<G>(
    mut left: Vec<G>,
    follows: impl Fn(&G, &G) -> bool,
    first: impl Fn(&G) -> Option<usize>,
) -> Option<Vec<G>> {
    let mut done = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let is_free = |&place: &usize| {
            let mut others = left.iter().enumerate().filter(|(other, _)| *other != place);
            others.all(|(_, group)| !follows(&left[place], group))
        };
        let ready = (0..left.len()).filter(is_free).min_by_key(|&place| first(&left[place]))?;
        done.push(left.swap_remove(ready));
    }
    Some(done)
}

/// Returns whether a computed scalar, by its number in formulas, is in a stage's own, or ghost values that it taps
/// may hold it.
pub fn uses_scalar(problem: &Problem, stage: &Stage, number: usize) -> bool {
    let program = &problem.program;
    let shows = |field: usize| {
        let mut names = problem.boundaries_of(field).scalars();
        field < program.fields().len()
            && names.any(|name| program.number_of_scalar(name.as_str()) == Ok(number))
    };
    stage.dag.nodes.iter().any(|node| matches!(*node, Node::Param(p) if usize::from(p) == number))
        || stage.dag.taps().any(|tap| shows(usize::from(tap.field)))
}

/// Returns the fields and temporaries that a group of stages makes, in the order in which it first does.
pub fn made(program: &Program, group: &[usize]) -> Vec<usize> {
    let mut made: Vec<usize> = Vec::new();
    for &name in group.iter().flat_map(|&stage| &program.stages()[stage].writes) {
        if !made.contains(&name) {
            made.push(name);
        }
    }
    made
}

/// Returns, for each field and temporary, whether anybody reads what a group of stages makes of it once the group has
/// run: a later stage of the step that is needed, or, of a field, the next step.
pub fn outlasts(problem: &Problem, boxes: &Boxes, group: &[usize]) -> Vec<bool> {
    let program = &problem.program;
    let needed = needed(program, boxes);
    let fields = program.fields().len();
    let outlasts = |name: usize| {
        let mut makers = group.iter().rev();
        let Some(&last) = makers.find(|&&stage| program.stages()[stage].writes.contains(&name)) else {
            return false;
        };
        let end = program.steps().iter().find(|step| step.contains(&last)).map_or(last, |step| step.end);
        for later in (last + 1..end).filter(|later| needed[*later] && !group.contains(later)) {
            let stage = &program.stages()[later];
            if stage.dag.taps().any(|tap| usize::from(tap.field) == name) {
                return true;
            }
            if let Some(output) = stage.writes.iter().position(|&made| made == name) {
                // What a stage does not compute it takes along.
                return name < fields && !covers(boxes, later, output, name, stage);
            }
        }
        name < fields
    };
    (0..boxes.buffers.len()).map(outlasts).collect()
}

/// Returns whether an output of a stage replaces all values of its field or temporary.
fn covers(boxes: &Boxes, number: usize, output: usize, name: usize, stage: &Stage) -> bool {
    let (kind, own) = (&boxes.buffers[name], &boxes.stages[number][output]);
    stage.points.is_empty()
        && (0..3).all(|axis| {
            own[axis].start <= kind.low[axis] && own[axis].end >= kind.low[axis] + kind.extents[axis] as isize
        })
}

/// Returns whether each stage is needed: it makes a scalar, or values that are read or outlast the step.
fn needed(program: &Program, boxes: &Boxes) -> Vec<bool> {
    let fields = program.fields().len();
    let mut needed = vec![false; program.stages().len()];
    for step in program.steps() {
        // Whether the present values of each name are read later.
        let mut living: Vec<bool> = (0..boxes.buffers.len()).map(|name| name < fields).collect();
        for number in step.clone().rev() {
            let stage = &program.stages()[number];
            let outputs = || stage.writes.iter().zip(&boxes.stages[number]);
            needed[number] = stage.does != StageKind::Update
                || outputs().any(|(&name, own)| living[name] && !is_empty(own));
            if !needed[number] {
                continue;
            }
            for (output, &name) in stage.writes.iter().enumerate() {
                if covers(boxes, number, output, name, stage) {
                    living[name] = false;
                }
            }
            stage.dag.taps().for_each(|tap| living[usize::from(tap.field)] = true);
        }
    }
    needed
}

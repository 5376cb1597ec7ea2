//! Stages that repeat one formula, as the sweeps of a relaxation do: a plain problem of its own, so that kernels of several
//! steps run as many of them in a pass.

use std::sync::Arc;

use super::{Boxes, Centring, FieldKind, Footprint, Indices, Launch, Problem, Program, Stage, StageKind};
use crate::domain::{Boundary, Sides};
use crate::expr::{Node, Tap};

/// Stages of a program that follow one another and do the same, as the steps of a plain problem.
#[derive(Debug, Clone)]
pub struct Repeated {
    /// The problem; each of its steps is one of the stages.
    pub problem: Problem,
    /// Of each of its fields, the number of the field or temporary of the program.
    pub names: Vec<usize>,
}

impl Repeated {
    /// Returns the buffers of the problem's fields before a launch of the stages, and behind it; `None` where one has none.
    pub fn buffers(&self, launch: &Launch) -> Option<[Vec<usize>; 2]> {
        let behind = |&name: &usize| match launch.made.iter().position(|&made| made == name) {
            Some(output) => launch.writes[output],
            None => launch.reads[name],
        };
        let before = self.names.iter().map(|&name| launch.reads[name]).collect::<Option<_>>()?;
        Some([before, self.names.iter().map(behind).collect::<Option<_>>()?])
    }
}

impl Problem {
    /// Returns the problem whose steps are some stages of this one; `None` where they do not repeat one formula, or are no
    /// steps of a plain problem: over all cells, without held cells and computed scalars, in a run that nothing ends early.
    pub fn repeated(&self, boxes: &Boxes, stages: &[usize]) -> Option<Repeated> {
        let may_stop = self.until.is_some() || self.marks.is_some() || self.program.has_conditions();
        if may_stop || self.is_batch() || !repeat(&self.program, boxes, stages) {
            return None;
        }
        let stage = &self.program.stages[*stages.first()?];
        let parameters = self.parameters.len();
        let is_scalar =
            |node: &Node| matches!(*node, Node::Param(number) if usize::from(number) >= parameters);
        if stage.looped.is_some() || stage.dag.nodes.iter().any(is_scalar) {
            return None;
        }
        let names = self.named(stage);
        let whole = self.shape.padded();
        // A buffer that is wider, or of a narrower type, has another layout.
        let is_whole = |&name: &usize| {
            let own = &boxes.buffers[name];
            own.low == [0; 3] && own.extents == whole && own.precision.is_none()
        };
        let covers = |own: &Indices| (0..3).all(|axis| own[axis] == (0..whole[axis] as isize));
        if !names.iter().all(is_whole) || !boxes.stages[stages[0]].iter().all(covers) {
            return None;
        }
        let (program, sides) = self.program_of(stage, &names)?;
        let boundaries = self.boundaries_of(stage.writes[0]);
        let problem = Problem {
            program: Arc::new(program),
            boundaries,
            sides,
            scalars: Vec::new(),
            first_step: 0,
            record: None,
            noted: Vec::new(),
            ..self.clone()
        };
        let mut tapped = names.iter().enumerate().filter(|&(_, &name)| is_reached(stage, name));
        let are_kept = tapped.all(|(field, &name)| problem.boundaries_of(field) == self.boundaries_of(name));
        (are_kept && problem.is_plain() && problem.check().is_ok()).then_some(Repeated { problem, names })
    }

    /// Returns the fields and temporaries of a stage, ascending.
    fn named(&self, stage: &Stage) -> Vec<usize> {
        let mut names: Vec<usize> = stage.names().collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Returns the program of a stage alone over its fields and temporaries, and the fields' own boundaries; `None` where
    /// these have none that kernels of several steps know.
    fn program_of(&self, stage: &Stage, names: &[usize]) -> Option<(Program, Vec<Sides>)> {
        let old = &*self.program;
        let shared = self.boundaries_of(stage.writes[0]);
        let mut sides = Vec::new();
        for &name in names {
            let is_field = name < old.fields.len();
            let is_written = stage.writes.contains(&name);
            if old.centring(name) != Centring::CELL || (is_written && !is_field) {
                return None;
            }
            if !is_written && !is_reached(stage, name) {
                sides.push(Sides::default());
                continue;
            }
            let own = self.boundaries_of(name);
            let is_known = |side: &Boundary| !matches!(side, Boundary::Fixed | Boundary::Open);
            if !is_field
                || !own.is_plain()
                || !own.0.as_flattened()[2 * self.slowest()..].iter().all(is_known)
            {
                return None;
            }
            sides.push(if own == shared { Sides::default() } else { Sides::all(own) });
        }
        let number = |name: usize| names.binary_search(&name).ok();
        let renumbered = |node: &Node| match *node {
            Node::Tap(tap) => {
                let field = number(usize::from(tap.field))? as u16;
                Some(Node::Tap(Tap { field, ..tap }))
            }
            other => Some(other),
        };
        let mut dag = stage.dag.clone();
        dag.nodes = stage.dag.nodes.iter().map(renumbered).collect::<Option<_>>()?;
        let writes = stage.writes.iter().map(|&name| number(name)).collect::<Option<_>>()?;
        let footprint = Footprint::of(&dag, names.len());
        let start = |&name: &usize| old.starts.get(name).or(old.starts.first()).cloned();
        let starts = names.iter().map(start).collect::<Option<_>>()?;
        let mut program = Program {
            // Names without components: each field has a buffer of its own.
            fields: (0..names.len()).map(|field| format!("field{field}")).collect(),
            kinds: vec![FieldKind::default(); names.len()],
            temporaries: Vec::new(),
            scalars: Vec::new(),
            stages: vec![Stage { dag, writes, footprint, ..stage.clone() }],
            steps: std::iter::once(0..1).collect(),
            phases: Vec::new(),
            sides: Sides::default(),
            until: None,
            shown: 0,
            starts,
            ..old.clone()
        };
        program.find_coefficients();
        Some((program, sides))
    }
}

/// Returns whether stages follow one another in a step and do the same, each with the results of the one before.
fn repeat(program: &Program, boxes: &Boxes, stages: &[usize]) -> bool {
    let is_next = |pair: &[usize]| pair[1] == pair[0] + 1;
    let Some((&first, others)) = stages.split_first() else { return false };
    let Some(stage) = program.stages.get(first) else { return false };
    let in_step = program.steps.iter().any(|step| stages.iter().all(|stage| step.contains(stage)));
    let is_same = |&other: &usize| {
        let own = &program.stages[other];
        own.does == stage.does
            && own.dag == stage.dag
            && own.writes == stage.writes
            && own.points == stage.points
            && boxes.stages[other] == boxes.stages[first]
    };
    in_step
        && stages.windows(2).all(is_next)
        && stage.does == StageKind::Update
        && stage.points.is_empty()
        && others.iter().all(is_same)
}

/// Returns whether a stage reads a field or temporary at other cells than the own one.
fn is_reached(stage: &Stage, name: usize) -> bool {
    stage.dag.taps().any(|tap| usize::from(tap.field) == name && tap.offset != [0; 3])
}

//! Programs without temporaries and points: the formula of a temporary stands where it is read, and what stages set at points
//! is chosen there.
//!
//! A temporary is defined wherever it is read, beyond the domain too, so its formula at another cell is its value. No bit
//! of any field differs.

use std::collections::HashMap;

use super::{Footprint, Problem, Program, Stage, StageKind};
use crate::expr::{Binary, Constant, Dag, Id, Node, Tap};

/// The most points of a step that formulas choose by: each costs every cell some comparisons.
const MOST_POINTS: usize = 8;

/// The most nodes of a stage's formulas.
const MOST_NODES: usize = 2000;

/// A formula in the making: equal nodes are stored once.
#[derive(Default)]
pub(super) struct Formula {
    nodes: Vec<Node>,
    known: HashMap<Node, Id>,
}

impl Formula {
    pub(super) fn put(&mut self, node: Node) -> Id {
        let nodes = &mut self.nodes;
        *self.known.entry(node).or_insert_with(|| {
            nodes.push(node);
            (nodes.len() - 1) as Id
        })
    }

    /// Adds the formulas of a stage, at a cell so far from the own one, and returns its outputs. `value` returns the value of
    /// a tap that stands for a formula.
    fn add(
        &mut self,
        dag: &Dag,
        by: [i32; 3],
        value: &mut impl FnMut(&mut Formula, Tap) -> Option<Id>,
    ) -> Vec<Id> {
        let mut new: Vec<Id> = Vec::with_capacity(dag.nodes.len());
        for &node in &dag.nodes {
            let id = match node {
                Node::Tap(Tap { field, offset }) => {
                    let tap = Tap { field, offset: [0, 1, 2].map(|axis| offset[axis] + by[axis]) };
                    match value(self, tap) {
                        Some(id) => id,
                        None => self.put(Node::Tap(tap)),
                    }
                }
                // Whole numbers: nothing is rounded.
                Node::Coord(axis) if by[usize::from(axis)] != 0 => {
                    let own = self.put(node);
                    let by = self.put(Node::Const(Constant::new(by[usize::from(axis)].into())));
                    self.put(Node::Binary(Binary::Add, own, by))
                }
                other => self.put(other.map(|operand| new[operand as usize])),
            };
            new.push(id);
        }
        dag.outputs.iter().map(|&output| new[output as usize]).collect()
    }

    /// Returns the node of a number.
    pub(super) fn node(&self, id: Id) -> Node {
        self.nodes[id as usize]
    }

    /// Adds a formula, and returns its outputs.
    pub(super) fn put_all(&mut self, dag: &Dag) -> Vec<Id> {
        self.add(dag, [0; 3], &mut |_, _| None)
    }

    pub(super) fn finished(&self, outputs: &[Id]) -> Dag {
        Dag::pruned(&self.nodes, outputs)
    }
}

/// The formula of a temporary, and the values that it reads as they were then.
struct Known {
    dag: Dag,
    reads: Vec<(Read, usize)>,
}

/// What a formula reads.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Read {
    Field(usize),
    Scalar(usize),
}

impl Read {
    fn all(dag: &Dag) -> impl Iterator<Item = Read> {
        dag.nodes.iter().filter_map(|node| match *node {
            Node::Tap(tap) => Some(Read::Field(usize::from(tap.field))),
            Node::Param(number) => Some(Read::Scalar(usize::from(number))),
            _ => None,
        })
    }
}

/// The stages of a step so far.
struct Step<'p> {
    problem: &'p Problem,
    radius: [usize; 3],
    temporaries: HashMap<usize, Known>,
    /// How often each value was set so far.
    turns: HashMap<Read, usize>,
    stages: Vec<Stage>,
    points: usize,
}

impl Problem {
    /// Returns the program without temporaries and points, if no value differs by a bit.
    pub(super) fn flattened(&self) -> Option<Program> {
        let program = &*self.program;
        let is_flat = program.temporaries.is_empty() && program.stages.iter().all(|s| s.points.is_empty());
        if is_flat {
            return Some(program.clone());
        }
        if program.stages.iter().any(|stage| stage.looped.is_some()) {
            return None;
        }
        let steps = program.steps.iter().map(|stages| self.flat_step(&program.stages[stages.clone()]));
        let mut flat =
            Program { steps: Vec::new(), stages: Vec::new(), temporaries: Vec::new(), ..program.clone() };
        for step in steps {
            let first = flat.stages.len();
            flat.stages.extend(step?);
            flat.steps.push(first..flat.stages.len());
        }
        Some(flat)
    }

    fn flat_step(&self, stages: &[Stage]) -> Option<Vec<Stage>> {
        let mut step = Step {
            problem: self,
            radius: self.program.radius(),
            temporaries: HashMap::new(),
            turns: HashMap::new(),
            stages: Vec::new(),
            points: 0,
        };
        for stage in stages {
            match stage.does {
                StageKind::Reduce(_, _, scalar) => {
                    let (formula, outputs) = step.without_temporaries(&stage.dag)?;
                    let dag = formula.finished(&outputs);
                    let footprint = Footprint::of(&dag, step.fields());
                    step.stages.push(Stage { dag, footprint, ..stage.clone() });
                    step.set(Read::Scalar(scalar));
                }
                StageKind::Scalar(scalar) => {
                    step.stages.push(stage.clone());
                    step.set(Read::Scalar(scalar));
                }
                StageKind::Update if stage.points.is_empty() => step.update(stage)?,
                StageKind::Update => step.points(stage)?,
                StageKind::Transform(_) => return None,
            }
        }
        Some(step.stages)
    }
}

impl Step<'_> {
    fn fields(&self) -> usize {
        self.problem.program.fields.len()
    }

    fn set(&mut self, what: Read) {
        *self.turns.entry(what).or_insert(0) += 1;
    }

    fn turn(&self, what: Read) -> usize {
        self.turns.get(&what).copied().unwrap_or(0)
    }

    /// Returns a stage's formulas of fields alone; `None` where a temporary was made of values that are no longer there.
    fn without_temporaries(&self, dag: &Dag) -> Option<(Formula, Vec<Id>)> {
        let fields = self.fields();
        let mut formula = Formula::default();
        let mut is_there = true;
        let outputs = formula.add(dag, [0; 3], &mut |formula, tap| {
            let temporary = usize::from(tap.field);
            if temporary < fields {
                return None;
            }
            let Some(known) = self.temporaries.get(&temporary) else {
                is_there = false;
                return None;
            };
            is_there &= known.reads.iter().all(|&(what, turn)| self.turn(what) == turn);
            Some(formula.add(&known.dag, tap.offset, &mut |_, _| None)[0])
        });
        (is_there && formula.nodes.len() <= MOST_NODES).then_some((formula, outputs))
    }

    fn update(&mut self, stage: &Stage) -> Option<()> {
        let fields = self.fields();
        let (formula, outputs) = self.without_temporaries(&stage.dag)?;
        let own = |is_field: bool| {
            let of = move |&(&target, _): &(&usize, &Id)| (target < fields) == is_field;
            stage.writes.iter().zip(&outputs).filter(of).map(|(&target, &id)| (target, id))
        };
        for (temporary, output) in own(false) {
            let dag = formula.finished(&[output]);
            let reads = Read::all(&dag).map(|what| (what, self.turn(what))).collect();
            self.temporaries.insert(temporary, Known { dag, reads });
        }
        let (writes, outputs): (Vec<usize>, Vec<Id>) = own(true).unzip();
        if !writes.is_empty() {
            writes.iter().for_each(|&field| self.set(Read::Field(field)));
            self.stages.push(self.stage(stage, formula.finished(&outputs), writes));
        }
        Some(())
    }

    fn stage(&self, like: &Stage, dag: Dag, writes: Vec<usize>) -> Stage {
        let footprint = Footprint::of(&dag, self.fields());
        let (looped, points) = (None, Vec::new());
        Stage { name: like.name.clone(), dag, looped, does: StageKind::Update, writes, points, footprint }
    }

    /// Adds a stage at points: to the formula of the stage of fields before it, or else as a stage of all cells.
    fn points(&mut self, stage: &Stage) -> Option<()> {
        let (shape, fields) = (self.problem.shape, self.fields());
        self.points += stage.points.len();
        let sets_temporaries = stage.writes.iter().any(|&target| target >= fields);
        if self.points > MOST_POINTS || sets_temporaries || !self.problem.tells_indices() {
            return None;
        }
        // Cells that are held are none that formulas set.
        for &field in &stage.writes {
            let boundaries = self.problem.boundaries_of(field);
            let extents = shape.padded();
            let is_set = |point: &[usize; 3]| {
                let set = |axis: usize| boundaries.computed(axis, extents[axis], self.radius[axis]);
                (0..3).all(|axis| set(axis).contains(&point[axis]))
            };
            if !stage.points.iter().all(is_set) {
                return None;
            }
        }
        let (own, outputs) = self.without_temporaries(&stage.dag)?;
        let dag = own.finished(&outputs);
        if let Some(place) = self.stage_before(&dag, &stage.writes) {
            let before = self.stages.remove(place);
            let mut formula = Formula::default();
            let mut all = formula.add(&before.dag, [0; 3], &mut |_, _| None);
            let made = all.clone();
            let number = |field: usize| before.writes.iter().position(|&own| own == field);
            let at_points = formula
                .add(&dag, [0; 3], &mut |_, tap| number(usize::from(tap.field)).map(|output| made[output]));
            for (field, value) in stage.writes.iter().zip(at_points) {
                let output = number(*field)?;
                all[output] = self.chosen(&mut formula, stage, value, all[output]);
            }
            let joined = self.stage(&before, formula.finished(&all), before.writes.clone());
            self.stages.push(joined);
        } else {
            let mut formula = Formula::default();
            let values = formula.add(&dag, [0; 3], &mut |_, _| None);
            let mut outputs = Vec::new();
            for (&field, value) in stage.writes.iter().zip(values) {
                let old = formula.put(Node::Tap(Tap { field: field as u16, offset: [0; 3] }));
                outputs.push(self.chosen(&mut formula, stage, value, old));
            }
            let alone = self.stage(stage, formula.finished(&outputs), stage.writes.clone());
            self.stages.push(alone);
        }
        stage.writes.iter().for_each(|&field| self.set(Read::Field(field)));
        Some(())
    }

    /// Returns the place of the last stage of fields, if no reduction is behind it, it sets all of these, a formula that is computed at its end reads them
    /// at the cell alone, and the scalars that are made after it can be made before it.
    fn stage_before(&self, dag: &Dag, writes: &[usize]) -> Option<usize> {
        let place = self.stages.iter().rposition(|stage| !matches!(stage.does, StageKind::Scalar(_)))?;
        let before = self.stages.get(place).filter(|stage| stage.does == StageKind::Update)?;
        let is_here = |tap: Tap| tap.offset == [0; 3] || !before.writes.contains(&usize::from(tap.field));
        let made = self.stages[place + 1..].iter().filter_map(|stage| stage.does.scalar());
        let reads: Vec<Read> = Read::all(&before.dag).collect();
        let fits = writes.iter().all(|field| before.writes.contains(field))
            && dag.taps().all(is_here)
            && !made.map(Read::Scalar).any(|scalar| reads.contains(&scalar));
        fits.then_some(place)
    }

    /// Returns the value at the stage's points, and the other one elsewhere.
    fn chosen(&self, formula: &mut Formula, stage: &Stage, value: Id, other: Id) -> Id {
        let slowest = self.problem.slowest();
        stage.points.iter().fold(other, |other, point| {
            // Outermost the axis along which most cells of a row or plane are alike.
            (slowest..3).rev().fold(value, |value, axis| {
                let at = formula.put(Node::Coord(axis as u8));
                let index = formula.put(Node::Const(Constant::new(point[axis] as f64)));
                let is_there = formula.put(Node::Binary(Binary::Equal, at, index));
                formula.put(Node::Select(is_there, value, other))
            })
        })
    }
}

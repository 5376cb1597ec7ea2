//! The graph of a program: its stages as loops, its fields, temporaries and scalars as arrays.

use std::ops::Range;

use abide_core::expr::Dag;
use abide_core::program::StageKind;
use abide_core::{Error, Problem, Program, Result, Stage, expr};

use super::graph::{Access, Array, Graph, Holds, Kind, Node, Reach};
use super::operations::Operations;
use super::set::MOST;
use abide_core::domain::Boundary;

/// The stages that a graph is made of, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Form {
    /// The number of the only step of the cycle that is taken; all of them, one after the other, if `None`.
    pub step: Option<usize>,
    /// Whether each value of a name is an array of its own, so that a loop waits only for the values that it reads.
    /// Loops that only copy a field onto another then are no loops: both names mean the same array.
    pub renamed: bool,
    /// Whether a stage whose results share no operation becomes several loops.
    pub split: bool,
}

impl Graph {
    /// Makes the graph of a problem, which has been checked.
    ///
    /// A stage is a loop: scalars' stages, reductions and stages at points too. Parameters are constants, and so are
    /// the extents of the domain; a boundary that holds a computed scalar's value reads that scalar.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] where there is no such step, and beyond [`MOST`] loops or arrays.
    pub fn of(problem: &Problem, form: &Form) -> Result<Graph> {
        let program = &problem.program;
        let steps: Vec<Range<usize>> = match form.step {
            None => program.steps().to_vec(),
            Some(step) => match program.steps().get(step) {
                Some(stages) => vec![stages.clone()],
                None => {
                    let (asked, most) = (step, format!("below {}", program.steps().len()));
                    return Err(Error::limit("step of the cycle", asked, most, "give another step, or none"));
                }
            },
        };
        let mut making = Making::new(problem, *form);
        for step in steps {
            making.current[making.fields..making.fields + program.temporaries().len()].fill(None);
            for number in step {
                making.stage(number);
            }
        }
        let graph = making.finish();
        for (what, asked) in [
            ("loops of a program to be fused", graph.loops.len()),
            ("arrays of a program to be fused", graph.arrays.len()),
        ] {
            if asked > MOST {
                return Err(Error::limit(
                    what,
                    asked,
                    MOST,
                    "fuse one step of the cycle, or values under one name",
                ));
            }
        }
        Ok(graph)
    }
}

/// A graph in the making.
struct Making<'a> {
    problem: &'a Problem,
    form: Form,
    graph: Graph,
    fields: usize,
    /// The array that a name means now, of fields, temporaries and computed scalars; `None` if none yet.
    current: Vec<Option<usize>>,
    /// The loops that have written each name.
    written: Vec<usize>,
    /// Whether some stage sets single points of a name.
    is_pointed: Vec<bool>,
}

impl<'a> Making<'a> {
    fn new(problem: &'a Problem, form: Form) -> Making<'a> {
        let program = &problem.program;
        let (fields, all) = (program.fields().len(), program.names().len());
        let names = all + program.scalars().len();
        let mut is_pointed = vec![false; names];
        let at_points = program.stages().iter().filter(|stage| !stage.points.is_empty());
        at_points.flat_map(|stage| &stage.writes).for_each(|&target| is_pointed[target] = true);
        Making {
            problem,
            form,
            graph: Graph {
                name: program.name().to_owned(),
                dimensions: program.dimensions(),
                value_bytes: problem.dtype.bytes(),
                loops: Vec::new(),
                arrays: Vec::new(),
                is_renamed: form.renamed,
            },
            fields,
            current: vec![None; names],
            written: vec![0; names],
            is_pointed,
        }
    }

    fn stage(&mut self, number: usize) {
        let (program, problem) = (&*self.problem.program, self.problem);
        let stage = &program.stages()[number];
        let copies: Option<Vec<usize>> =
            (0..stage.writes.len()).map(|output| copied(problem, stage, output)).collect();
        // What is set at points is set where it lies, which no other name may mean.
        let is_pointed = |sources: &[usize]| {
            let mut names = sources.iter().chain(&stage.writes);
            names.any(|&name| self.is_pointed[name])
        };
        let may_be_names =
            |sources: &Vec<usize>| self.form.renamed && !sources.is_empty() && !is_pointed(sources);
        if let Some(sources) = copies.filter(may_be_names) {
            let arrays: Vec<usize> = sources.iter().map(|&source| self.array(source)).collect();
            for (&target, array) in stage.writes.iter().zip(arrays) {
                self.current[target] = Some(array);
                self.written[target] += 1;
            }
            return;
        }
        let parts = match self.form.split {
            true => stage.parts(),
            false => vec![(0..stage.dag.outputs.len()).collect()],
        };
        // All parts read what was there before the stage.
        let mut writes: Vec<Vec<Access>> = Vec::new();
        for outputs in &parts {
            let dag = stage.dag.restricted(outputs);
            let accesses = self.reads(stage, &dag);
            self.graph.loops.push(Node {
                name: stage.name.clone(),
                stage: number,
                outputs: outputs.clone(),
                kind: match stage.does {
                    StageKind::Update if stage.points.is_empty() => Kind::Update,
                    StageKind::Update => Kind::Points,
                    StageKind::Reduce(..) => Kind::Reduce,
                    StageKind::Scalar(_) => Kind::Scalar,
                    // Nothing joins what goes over whole lines.
                    StageKind::Transform(_) => Kind::Points,
                },
                operations: Operations::of(&dag.simplified(problem.dtype)),
                accesses,
            });
        }
        for outputs in &parts {
            let targets = match stage.does {
                StageKind::Transform(_) => stage.writes.clone(),
                StageKind::Update => outputs.iter().map(|&output| stage.writes[output]).collect(),
                StageKind::Reduce(.., scalar) | StageKind::Scalar(scalar) => {
                    vec![program.names().len() + scalar - program.parameters().len()]
                }
            };
            writes.push(targets.into_iter().map(|target| self.write(stage, target)).collect());
        }
        let first = self.graph.loops.len() - parts.len();
        for (own, writes) in writes.into_iter().enumerate() {
            let accesses = &mut self.graph.loops[first + own].accesses;
            for write in writes {
                match accesses.iter_mut().find(|access| access.array == write.array) {
                    Some(access) => (access.writes, access.keeps) = (true, write.keeps),
                    None => accesses.push(write),
                }
            }
        }
    }

    /// Returns what a formula reads.
    fn reads(&mut self, stage: &Stage, dag: &Dag) -> Vec<Access> {
        let program = &*self.problem.program;
        let mut names: Vec<(usize, Reach)> = Vec::new();
        let mut take = |name: usize, offset: [i32; 3]| {
            let known = names.iter().position(|(known, _)| *known == name);
            let at = known.unwrap_or_else(|| {
                names.push((name, Reach::default()));
                names.len() - 1
            });
            names[at].1.take(offset);
        };
        let scalar = |number: usize| {
            let computed = number.checked_sub(program.parameters().len())?;
            let scalar = program.scalars().get(computed)?;
            scalar.extent.is_none().then_some(program.names().len() + computed)
        };
        for tap in dag.taps() {
            take(usize::from(tap.field), tap.offset);
            if usize::from(tap.field) < self.fields && stage.points.is_empty() {
                for name in self.problem.boundaries_of(usize::from(tap.field)).scalars() {
                    let number = program.number_of_scalar(name.as_str()).ok();
                    number.and_then(scalar).into_iter().for_each(|name| take(name, [0; 3]));
                }
            }
        }
        for node in &dag.nodes {
            if let expr::Node::Param(number) = node {
                scalar(usize::from(*number)).into_iter().for_each(|name| take(name, [0; 3]));
            }
        }
        let access = |(name, reach)| Access {
            array: self.array(name),
            reads: Some(reach),
            writes: false,
            keeps: false,
        };
        // Two names may mean one array.
        let mut accesses: Vec<Access> = Vec::new();
        for own in names.into_iter().map(access) {
            match accesses.iter_mut().find(|known| known.array == own.array) {
                Some(Access { reads: Some(known), .. }) => {
                    let reach = own.reads.unwrap_or_default();
                    for axis in 0..3 {
                        known.low[axis] = known.low[axis].min(reach.low[axis]);
                        known.high[axis] = known.high[axis].max(reach.high[axis]);
                    }
                    known.taps += reach.taps;
                }
                _ => accesses.push(own),
            }
        }
        accesses
    }

    /// Notes that a stage writes a name.
    fn write(&mut self, stage: &Stage, target: usize) -> Access {
        // Values at `fixed` sides never change, unless single points do, and each array has them from the beginning.
        let at_sides = self.is_pointed[target] && target < self.fields && {
            let boundaries = self.problem.boundaries_of(target);
            boundaries.0.iter().flatten().any(|side| *side == Boundary::Fixed)
        };
        let keeps = !stage.points.is_empty() || at_sides;
        let array = match self.current[target] {
            Some(array) if !self.form.renamed || keeps => array,
            _ if keeps => self.array(target),
            _ => self.add(target, self.written[target] + usize::from(self.form.renamed), false),
        };
        self.written[target] += 1;
        self.current[target] = Some(array);
        Access { array, reads: None, writes: true, keeps }
    }

    /// Returns the array that a name means; one with a value from before where there is none yet.
    fn array(&mut self, name: usize) -> usize {
        self.current[name].unwrap_or_else(|| {
            let array = self.add(name, 0, true);
            self.current[name] = Some(array);
            array
        })
    }

    fn add(&mut self, name: usize, version: usize, is_given: bool) -> usize {
        let program = &*self.problem.program;
        let all = program.names().len();
        let version = if self.form.renamed { version } else { 0 };
        let (holds, text) = match name {
            field if field < self.fields => (Holds::Field, &program.fields()[field]),
            temporary if temporary < all => {
                (Holds::Temporary, &program.temporaries()[temporary - self.fields].name)
            }
            scalar => (Holds::Scalar, &program.scalars()[scalar - all].name),
        };
        let array = Array { name: text.clone(), holds, version, is_given, is_kept: false };
        // Under one name a temporary of every step is the same array.
        let known = self.graph.arrays.iter().position(|known| known.name == *text && known.holds == holds);
        match known.filter(|_| !self.form.renamed) {
            Some(known) => known,
            None => {
                self.graph.arrays.push(array);
                self.graph.arrays.len() - 1
            }
        }
    }

    fn finish(mut self) -> Graph {
        let temporaries = self.fields..self.problem.program.names().len();
        for (name, array) in self.current.iter().enumerate() {
            if let Some(array) = array.filter(|_| !temporaries.contains(&name)) {
                self.graph.arrays[array].is_kept = true;
            }
        }
        self.graph
    }
}

/// Returns the field that an output copies whole; `None` if it is no such copy.
fn copied(problem: &Problem, stage: &Stage, output: usize) -> Option<usize> {
    let program: &Program = &problem.program;
    let expr::Node::Tap(tap) = stage.dag.nodes[stage.dag.outputs[output] as usize] else { return None };
    let (source, target) = (usize::from(tap.field), stage.writes[output]);
    let kinds = program.kinds();
    let is_alike = kinds.get(source)?.centring == kinds.get(target)?.centring
        && problem.extents_of(source) == problem.extents_of(target);
    let is_fixed = problem.boundaries_of(target).0.iter().flatten().any(|side| *side == Boundary::Fixed);
    (tap.offset == [0; 3] && is_alike && stage.points.is_empty() && !is_fixed).then_some(source)
}

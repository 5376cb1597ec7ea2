//! The plain form of a problem: scalars that follow from the step's number, the parameters and earlier scalars alone, such as
//! the time or a source's amplitude, are known before the step, and so are all parts of formulas that cells have in common. With
//! these as parameters that change, without temporaries and points, such a program is a plain one.

use std::sync::Arc;

use super::stage::StageKind;
use super::{Footprint, Parameter, Probe, Problem, Program, Record};
use crate::domain::Boundary;
use crate::error::{Error, Result};
use crate::expr::{Dag, Id, Node};
use crate::real::{DType, Real};

/// The least steps from one row of probes to the next for which halting a run costs less than its passes gain.
const ROWS_APART: u64 = 32;

/// How often as many operations a cell may have on a device without temporaries: kernels of several steps have time for them
/// while they wait for memory.
const GROWTH_ON_DEVICE: f64 = 4.0;

/// The most lines of cells, of all fields, that kernels which note values look up: 256 MiB of their places.
const MOST_LINES: usize = 1 << 26;

/// Operations that no cell feels.
const SLIGHT: f64 = 16.0;

/// The same for a CPU, which keeps temporaries in its caches.
const GROWTH: f64 = 1.0;

/// The scalars of a problem, step by step, and the plain problem whose parameters they are.
#[derive(Debug, Clone)]
pub struct Clock {
    plain: Problem,
    /// The stages of a step in order.
    stages: Vec<Timed>,
    /// The parameters, then the scalars, and then what stages of fields read of them.
    values: Vec<f64>,
    /// The number of parameters, and of these and the scalars.
    counts: [usize; 2],
    /// The values of a formula's nodes.
    nodes: Vec<f64>,
    single: Vec<f32>,
}

/// What a stage is for a clock.
#[derive(Debug, Clone)]
enum Timed {
    /// A formula makes the scalar of this number.
    Scalar(Dag, usize),
    /// A stage of fields: formulas, in the type of the fields, make the parameters of these numbers.
    Fields(Vec<(Dag, usize)>),
}

impl Clock {
    /// Returns the clock of a problem; `None` for one that is plain, or that is not plain beside its scalars and points.
    ///
    /// A slab, whose sides are open, has none: its scalars are those of the whole domain's run.
    pub fn of(problem: &Problem) -> Option<Clock> {
        // Choices beyond sides cost a CPU, which computes both values, more than its passes gain.
        if problem.has_shared_boundaries() { Clock::with_growth(problem, GROWTH, Vec::new()) } else { None }
    }

    /// Returns the clock of a problem as [`Clock::of`] does, for a device. Temporaries are computed where they are read.
    ///
    /// Where rows of probes are so close that halting at each would take longer than a launch per stage, kernels of several
    /// steps note their values (`notes`), of plain problems, too; there is no clock where a device has none that do.
    pub fn on_device(problem: &Problem, notes: bool) -> Option<Clock> {
        let is_close = |record: &&Record| record.every < ROWS_APART;
        let close = problem.record.as_ref().filter(is_close);
        let noted = close.map_or(Vec::new(), |record| record.probes.clone());
        let is_possible = notes && problem.lines() <= MOST_LINES;
        if !noted.is_empty() && !is_possible {
            return None;
        }
        Clock::with_growth(problem, GROWTH_ON_DEVICE, noted)
    }

    fn with_growth(problem: &Problem, growth: f64, noted: Vec<Probe>) -> Option<Clock> {
        let is_slab = problem.boundaries.0.as_flattened().contains(&Boundary::Open);
        if problem.program.steps().len() != 1 || problem.is_batch() || is_slab {
            return None;
        }
        let (flat, boundaries) = match problem.is_plain() {
            true if noted.is_empty() => return None,
            true => ((*problem.program).clone(), problem.boundaries),
            false => problem.with_shared_boundaries(problem.flattened()?)?,
        };
        // Cells that are held are as many as the radius.
        let is_held = |axis: usize| boundaries.0[axis].contains(&Boundary::Fixed);
        let [old, new] = [&*problem.program, &flat].map(Program::radius);
        if (0..3).any(|axis| is_held(axis) && old[axis] != new[axis]) {
            return None;
        }
        let made: Vec<usize> = flat.stages.iter().filter_map(|stage| stage.does.scalar()).collect();
        let (program, stages) = flat.timed(&made)?;
        if program.flops() as f64 > growth * problem.program.flops() as f64 + SLIGHT {
            return None;
        }
        let mut values: Vec<f64> = problem.parameters.iter().chain(&problem.scalars).copied().collect();
        let counts = [problem.parameters.len(), values.len()];
        values.resize(program.parameters.len(), 0.0);
        let plain = Problem {
            program: Arc::new(program),
            parameters: values.clone(),
            boundaries,
            sides: Vec::new(),
            scalars: Vec::new(),
            until: None,
            marks: None,
            record: None,
            noted,
            ..problem.clone()
        };
        plain.is_plain().then(|| Clock {
            plain,
            stages,
            values,
            counts,
            nodes: Vec::new(),
            single: Vec::new(),
        })
    }

    /// Returns the plain problem: it has the stages of fields alone, and the scalars' values before the first step as its
    /// last parameters.
    pub fn plain(&self) -> &Problem {
        &self.plain
    }

    /// Returns the plain problem with scalars that stay what they are before the first step, as a plan is made and timed.
    pub fn at_rest(&self) -> Problem {
        let mut program = (*self.plain.program).clone();
        program.parameters.iter_mut().for_each(|parameter| parameter.varies = false);
        Problem { program: Arc::new(program), ..self.plain.clone() }
    }

    /// Returns what a plan of the plain problem says of what kernels note, and of boundaries that are choices in formulas.
    pub fn notes(&self, problem: &Problem) -> Vec<String> {
        let noted = match self.noted().len() {
            0 => None,
            1 => Some("kernels note the value of the probe after each step".to_owned()),
            count => Some(format!("kernels note the values of {count} probes after each step")),
        };
        noted.into_iter().chain(self.note_of_boundaries(problem)).collect()
    }

    fn note_of_boundaries(&self, problem: &Problem) -> Option<String> {
        let shared = self.plain.boundaries;
        let fields = problem.program.fields();
        let own = (0..fields.len()).filter(|&field| problem.boundaries_of(field) != shared);
        let own: Vec<&str> = own.map(|field| &*fields[field]).collect();
        let dimensions = problem.shape.dimensions();
        (!own.is_empty()).then(|| {
            let (shared, own) = (shared.describe(dimensions), own.join(", "));
            format!("ghost cells of all fields are those of {shared}; formulas choose what the own boundaries of {own} say beyond")
        })
    }

    /// Returns whether the program has scalars.
    pub fn has_scalars(&self) -> bool {
        self.counts[0] < self.counts[1]
    }

    /// Returns the values that kernels note after each step.
    pub fn noted(&self) -> &[Probe] {
        &self.plain.noted
    }

    /// Returns whether a stage of fields reads a scalar that changes.
    pub fn is_read(&self) -> bool {
        self.plain.program.parameters.iter().any(|parameter| parameter.varies)
    }

    /// Returns the scalars after the last step.
    pub fn scalars(&self) -> &[f64] {
        &self.values[self.counts[0]..self.counts[1]]
    }

    /// Sets a parameter for the steps that follow.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] for a number that is none of a parameter.
    pub fn set_parameter(&mut self, parameter: usize, value: f64) -> Result<()> {
        let own = &self.plain.program.parameters()[..self.counts[0]];
        let names = own.iter().map(|parameter| parameter.name.as_str());
        let known = self.values[..self.counts[0]].get_mut(parameter);
        *known.ok_or_else(|| Error::unknown("parameter", parameter.to_string(), names))? = value;
        Ok(())
    }

    /// Does so many steps of the scalars. Returns what varies in each stage of each step: the parameters of
    /// [`Program::varying`].
    pub fn varying(&mut self, steps: u64) -> Vec<f64> {
        let mut read = Vec::new();
        (0..steps).for_each(|_| self.step(&mut read));
        let numbers = self.plain.program.varying();
        let rows = read.chunks(self.values.len().max(1));
        rows.flat_map(|row| numbers.iter().map(|&number| row[number])).collect()
    }

    /// Does a step of the scalars. Adds to `read` what each stage of fields reads: all parameters of the plain problem.
    pub fn step(&mut self, read: &mut Vec<f64>) {
        let Clock { plain, stages, values, nodes, single, .. } = self;
        let is_read = plain.program.parameters.iter().any(|parameter| parameter.varies);
        for stage in stages {
            match stage {
                Timed::Scalar(dag, scalar) => values[*scalar] = evaluated(dag, nodes, values),
                Timed::Fields(parts) => {
                    for (dag, parameter) in parts {
                        values[*parameter] = match plain.dtype {
                            DType::F64 => evaluated(dag, nodes, values),
                            DType::F32 => evaluated(dag, single, values).to_f64(),
                        };
                    }
                    if is_read {
                        read.extend_from_slice(values);
                    }
                }
            }
        }
    }
}

/// Returns the value of a formula of parameters with these values.
fn evaluated<T: Real>(dag: &Dag, nodes: &mut Vec<T>, values: &[f64]) -> T {
    dag.evaluate_parameters(nodes, |number| T::from_f64(values[number]))
}

impl Program {
    /// Returns the numbers of the parameters that vary from stage to stage.
    pub fn varying(&self) -> Vec<usize> {
        let numbered = self.parameters.iter().enumerate();
        numbered.filter(|(_, parameter)| parameter.varies).map(|(number, _)| number).collect()
    }

    /// Returns the program without the stages that make the scalars `made`: scalars are parameters behind its own, and so are
    /// the parts of formulas that cells have in common while a scalar changes. `None` if it has reductions.
    fn timed(&self, made: &[usize]) -> Option<(Program, Vec<Timed>)> {
        let scalars = self.scalars.iter().map(|scalar| Parameter {
            default: scalar.initial.unwrap_or(0.0),
            ..Parameter::new(&scalar.name, 0.0, &scalar.about)
        });
        let mut parameters: Vec<Parameter> = self.parameters.iter().cloned().chain(scalars).collect();
        let (mut stages, mut timed) = (Vec::new(), Vec::new());
        for stage in &self.stages {
            let mut parts = Vec::new();
            match stage.does {
                StageKind::Reduce(..) => return None,
                StageKind::Scalar(scalar) => {
                    timed.push(Timed::Scalar(stage.dag.clone(), scalar));
                    continue;
                }
                StageKind::Update if stage.looped.is_some() => stages.push(stage.clone()),
                StageKind::Update => {
                    let mut put = |dag: Dag| {
                        let known = parts.iter().find(|(known, _)| *known == dag);
                        let number = known.map_or(parameters.len(), |(_, number)| *number);
                        if known.is_none() {
                            let name = format!("{} of {}", parts.len() + 1, stage.name);
                            parameters.push(Parameter::new(name, 0.0, "a part of its formulas"));
                            parts.push((dag, number));
                        }
                        Node::Param(number as u16)
                    };
                    let dag = parted(&stage.dag, made, &mut put);
                    let footprint = Footprint::of(&dag, self.fields.len());
                    stages.push(super::Stage { dag, footprint, ..stage.clone() });
                }
            }
            parts.iter().for_each(|(_, number)| parameters[*number].varies = true);
            timed.push(Timed::Fields(parts));
        }
        for (number, parameter) in parameters.iter_mut().enumerate() {
            let reads = |node: &Node| matches!(*node, Node::Param(own) if usize::from(own) == number);
            parameter.varies |= made.contains(&number)
                && stages.iter().any(|stage: &super::Stage| stage.dag.nodes.iter().any(reads));
        }
        let program = Program {
            parameters,
            scalars: Vec::new(),
            steps: std::iter::once(0..stages.len()).collect(),
            stages,
            until: None,
            ..self.clone()
        };
        Some((program, timed))
    }
}

/// Returns a formula in which `put` gives what stands for the largest parts that read no field and no coordinate, but one of
/// the scalars that change.
fn parted(dag: &Dag, changing: &[usize], put: &mut impl FnMut(Dag) -> Node) -> Dag {
    // Whether cells have a node in common, and whether it changes.
    let mut kinds: Vec<[bool; 2]> = Vec::with_capacity(dag.nodes.len());
    for &node in &dag.nodes {
        let of = |which: usize| node.operands().map(move |id| (id, which));
        kinds.push(match node {
            Node::Tap(_) | Node::Coord(_) => [false; 2],
            Node::Const(_) => [true, false],
            Node::Param(number) => [true, changing.contains(&usize::from(number))],
            _ => [
                of(0).all(|(id, which)| kinds[id as usize][which]),
                of(1).any(|(id, which)| kinds[id as usize][which]),
            ],
        });
    }
    let is_part =
        |id: Id| kinds[id as usize] == [true; 2] && dag.nodes[id as usize].operands().next().is_some();
    let mut wanted = vec![false; dag.nodes.len()];
    let readers = dag.nodes.iter().zip(&kinds).filter(|(_, kind)| !kind[0]);
    let read = readers.flat_map(|(node, _)| node.operands()).chain(dag.outputs.iter().copied());
    read.filter(|&id| is_part(id)).for_each(|id| wanted[id as usize] = true);
    let nodes: Vec<Node> = dag
        .nodes
        .iter()
        .enumerate()
        .map(|(id, &node)| match wanted[id] {
            true => put(Dag::pruned(&dag.nodes[..=id], &[id as Id])),
            false => node,
        })
        .collect();
    Dag::pruned(&nodes, &dag.outputs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Shape;
    use crate::program::{Centring, Definition, Reduction};
    use crate::real::DType;

    fn problem(define: impl FnOnce(&mut Definition)) -> Problem {
        let mut p = Definition::new("p", 1);
        p.field("u", Centring::CELL).parameter("dt", 0.5, "a step").scalar("time", Some(0.25), "time");
        define(&mut p);
        Problem::new(Arc::new(p.build().unwrap()), Shape::new(&[8]).unwrap(), DType::F32).unwrap()
    }

    /// A scalar that is made between two stages has its old value in the first and its new one in the second.
    #[test]
    fn each_stage_reads_the_scalars_of_its_place() {
        let problem = problem(|p| {
            let mut step = p.step();
            step.stage("a", |s| s.set("u", s.field("u").here() * s.param("time")));
            step.compute("time", |s| s.param("time") + s.param("dt"));
            step.stage("b", |s| s.set("u", s.field("u").here() - s.param("time")));
        });
        let mut clock = Clock::of(&problem).unwrap();
        assert!(clock.is_read() && clock.plain().is_plain() && clock.plain().check().is_ok());
        assert_eq!(clock.plain().program.stages().len(), 2);
        let mut read = Vec::new();
        clock.step(&mut read);
        clock.set_parameter(0, 1.0).unwrap();
        clock.step(&mut read);
        assert_eq!(read, [0.5, 0.25, 0.5, 0.75, 1.0, 0.75, 1.0, 1.75]);
        assert_eq!(clock.scalars(), [1.75]);
    }

    #[test]
    fn a_scalar_that_no_field_needs_is_not_handed_on() {
        let problem = problem(|p| {
            let mut step = p.step();
            step.stage("a", |s| s.set("u", s.field("u").here() * s.param("dt")));
            step.compute("time", |s| s.param("time") + s.param("dt"));
        });
        let mut clock = Clock::of(&problem).unwrap();
        let mut read = Vec::new();
        clock.step(&mut read);
        assert!(!clock.is_read() && read.is_empty() && clock.scalars() == [0.75]);
    }

    #[test]
    fn scalars_of_fields_and_programs_of_other_kinds_have_no_clock() {
        let reduced = problem(|p| {
            let mut step = p.step();
            step.reduce("time", Reduction::Max, Centring::CELL, |s| s.field("u").here());
            step.stage("a", |s| s.set("u", s.field("u").here() * s.param("time")));
        });
        assert!(Clock::of(&reduced).is_none());
        // The temporary is made of values that are no longer there where it is read.
        let other = problem(|p| {
            p.temporary("t", Centring::CELL);
            let mut step = p.step();
            step.stage("t", |s| s.set("t", s.field("u").here()));
            step.stage("a", |s| s.set("u", s.field("u").at([1])));
            step.stage("b", |s| s.set("u", s.field("u").here() + s.field("t").here()));
        });
        assert!(Clock::of(&other).is_none());
    }
}

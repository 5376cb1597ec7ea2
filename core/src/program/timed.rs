//! The stages of a step apart: those of fields, and what a clock makes between them.

use std::ops::Range;

use super::stage::StageKind;
use super::{Footprint, Parameter, Program, Stage};
use crate::expr::{Dag, Id, Node};

/// What a stage is for a clock.
#[derive(Debug, Clone, PartialEq)]
pub enum Timed {
    /// A formula makes the scalar of this number.
    Scalar(Dag, usize),
    /// A stage of fields: formulas, in the type of the fields, make the parameters of these numbers.
    Fields(Vec<(Dag, usize)>),
    /// The reduction of this number, whose value the scalar of that number becomes.
    Reduction(usize, usize),
}

/// A program as a clock has it.
pub(super) struct TimedSteps {
    /// The stages of fields, which each step has alike; scalars are parameters behind its own, and so are the parts of formulas
    /// that cells have in common while a scalar changes.
    pub program: Program,
    /// All that there is to do in each step, in order.
    pub steps: Vec<Vec<Timed>>,
    /// The reductions.
    pub reductions: Vec<Stage>,
}

impl Program {
    /// Returns the numbers of the parameters that vary from stage to stage.
    pub fn varying(&self) -> Vec<usize> {
        let numbered = self.parameters.iter().enumerate();
        numbered.filter(|(_, parameter)| parameter.varies).map(|(number, _)| number).collect()
    }

    /// Returns the program of other stages in one step, over the same fields, parameters and scalars.
    pub(super) fn of_stages(&self, stages: Vec<Stage>) -> Program {
        let steps = std::iter::once(0..stages.len()).collect();
        Program { steps, phases: Vec::new(), stages, until: None, ..self.clone() }
    }

    /// Returns the steps of the cycle apart. `made` are the scalars that stages make. `None` where steps have other stages of
    /// fields, or one reduces fields between two stages that set some.
    pub(super) fn timed(&self, made: &[usize]) -> Option<TimedSteps> {
        let mut reductions = Vec::new();
        let mut apart = self.steps.iter().map(|step| self.timed_step(step.clone(), made, &mut reductions));
        let (mut parameters, stages, first) = apart.next()??;
        let mut steps = vec![first];
        for step in apart {
            let (others, fields, timed) = step?;
            if (&others, &fields) != (&parameters, &stages) {
                return None;
            }
            steps.push(timed);
        }
        for (number, parameter) in parameters.iter_mut().enumerate() {
            let reads = |node: &Node| matches!(*node, Node::Param(own) if usize::from(own) == number);
            parameter.varies |= made.contains(&number)
                && stages.iter().any(|stage: &Stage| stage.dag.nodes.iter().any(reads));
        }
        let program = Program { parameters, scalars: Vec::new(), ..self.of_stages(stages) };
        Some(TimedSteps { program, steps, reductions })
    }

    /// Returns the parameters, the stages of fields, and all that there is to do in a step; adds its reductions to those known.
    fn timed_step(
        &self,
        step: Range<usize>,
        made: &[usize],
        reductions: &mut Vec<Stage>,
    ) -> Option<(Vec<Parameter>, Vec<Stage>, Vec<Timed>)> {
        let scalars = self.scalars.iter().map(|scalar| Parameter {
            default: scalar.initial.unwrap_or(0.0),
            ..Parameter::new(&scalar.name, 0.0, &scalar.about)
        });
        let mut parameters: Vec<Parameter> = self.parameters.iter().cloned().chain(scalars).collect();
        let own = &self.stages[step];
        let all = own.iter().filter(|stage| stage.does == StageKind::Update).count();
        let (mut stages, mut timed) = (Vec::new(), Vec::new());
        for stage in own {
            let mut parts = Vec::new();
            match stage.does {
                StageKind::Reduce(_, _, scalar) => {
                    if !stages.is_empty() && stages.len() < all {
                        return None;
                    }
                    let known = reductions.iter().position(|known| known == stage);
                    let number = known.unwrap_or(reductions.len());
                    if known.is_none() {
                        reductions.push(stage.clone());
                    }
                    timed.push(Timed::Reduction(number, scalar));
                    continue;
                }
                StageKind::Scalar(scalar) => {
                    timed.push(Timed::Scalar(stage.dag.clone(), scalar));
                    continue;
                }
                StageKind::Transform(_) => return None,
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
                    stages.push(Stage { dag, footprint, ..stage.clone() });
                }
            }
            parts.iter().for_each(|(_, number)| parameters[*number].varies = true);
            timed.push(Timed::Fields(parts));
        }
        Some((parameters, stages, timed))
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

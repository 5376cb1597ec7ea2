//! Conditions of coefficients alone, such as a mask: fields that no stage sets, read at the cell. They hold or not at a cell
//! for a whole pass. A kernel asks them once, when a plane of the input arrives, and keeps a bit of each cell; the coefficients
//! themselves need not go through the levels then.

use crate::expr::{Dag, Id, Node, Tap};
use crate::program::{Problem, Program, Stage};

/// The most conditions of a program that are kept as bits.
const MOST: usize = 4;

/// The stages of a program, whose conditions of coefficients alone are taps of fields that are none of the program's.
#[derive(Debug, Clone)]
pub struct Masked {
    /// The stages: a tap of field `fields + k` is not 0 where condition `k` holds.
    pub stages: Vec<Stage>,
    /// The conditions: formulas with a value that is not 0 where they hold.
    pub conditions: Vec<Dag>,
    /// Of each field, whether a stage sets or reads it, or its values are noted.
    pub passes: Vec<bool>,
}

impl Masked {
    /// Returns the operations per cell and step, as [`Program::operations`] counts them; conditions are asked once a pass.
    pub fn operations(&self) -> usize {
        self.stages.iter().map(|stage| stage.dag.operations()).sum()
    }

    /// Returns the stages of a problem, whose formulas `program` has in the form in which kernels evaluate them.
    pub fn of(problem: &Problem, program: &Program) -> Masked {
        let fields = program.fields().len();
        let mut masked =
            Masked { stages: program.stages().to_vec(), conditions: Vec::new(), passes: vec![true; fields] };
        let has_loops = program.stages().iter().any(|stage| stage.looped.is_some());
        if has_loops || problem.is_batch() {
            return masked;
        }
        // Fields that are read elsewhere, too, go through the levels anyway.
        let noted = |field: usize| problem.noted.iter().any(|probe| probe.field == field);
        let mut still: Vec<bool> =
            (0..fields).map(|field| !program.is_written(field) && !noted(field)).collect();
        loop {
            let (mut stages, mut conditions) = (program.stages().to_vec(), Vec::new());
            for stage in &mut stages {
                stage.dag = with_marks(&stage.dag, program, &still, &mut conditions);
            }
            let tapped = |field: usize| {
                stages.iter().any(|stage| stage.dag.taps().any(|tap| usize::from(tap.field) == field))
            };
            let is_asked = |field: usize| {
                conditions.iter().any(|dag| dag.taps().any(|tap| usize::from(tap.field) == field))
            };
            let wrong: Vec<usize> = (0..fields).filter(|&field| is_asked(field) && tapped(field)).collect();
            if conditions.len() > MOST {
                return masked;
            }
            if wrong.is_empty() {
                masked.passes = (0..fields).map(|field| !is_asked(field)).collect();
                (masked.stages, masked.conditions) = (stages, conditions);
                return masked;
            }
            wrong.into_iter().for_each(|field| still[field] = false);
        }
    }
}

/// Returns a formula with taps of marks for the conditions that only choices use; adds those that are not known.
fn with_marks(dag: &Dag, program: &Program, still: &[bool], conditions: &mut Vec<Dag>) -> Dag {
    // Whether a node has the same value in all steps of a pass, and whether it reads a field.
    let mut kinds: Vec<[bool; 2]> = Vec::with_capacity(dag.nodes.len());
    for &node in &dag.nodes {
        let of = |which: usize| node.operands().map(move |id| (id, which));
        kinds.push(match node {
            Node::Tap(Tap { field, offset }) => [offset == [0; 3] && still[usize::from(field)], true],
            Node::Const(_) => [true, false],
            Node::Param(number) => {
                [program.parameters().get(usize::from(number)).is_some_and(|own| !own.varies), false]
            }
            Node::Coord(_) => [false; 2],
            _ => [
                of(0).all(|(id, which)| kinds[id as usize][which]),
                of(1).any(|(id, which)| kinds[id as usize][which]),
            ],
        });
    }
    let chooses = |id: usize| {
        let is_own = |node: &Node| matches!(*node, Node::Select(condition, ..) if condition as usize == id);
        let mut users =
            dag.nodes.iter().filter(|node| node.operands().any(|operand| operand as usize == id)).peekable();
        // A value that is chosen, too, is one that formulas read.
        let asks = |node: &Node| {
            is_own(node) && node.operands().filter(|&operand| operand as usize == id).count() == 1
        };
        users.peek().is_some() && users.all(asks) && !dag.outputs.contains(&(id as Id))
    };
    let fields = program.fields().len();
    let nodes: Vec<Node> = dag
        .nodes
        .iter()
        .enumerate()
        .map(|(id, &node)| {
            if kinds[id] != [true; 2] || !chooses(id) {
                return node;
            }
            let own = Dag::pruned(&dag.nodes[..=id], &[id as Id]);
            let number = conditions.iter().position(|known| *known == own).unwrap_or_else(|| {
                conditions.push(own);
                conditions.len() - 1
            });
            Node::Tap(Tap { field: (fields + number) as u16, offset: [0; 3] })
        })
        .collect();
    Dag::pruned(&nodes, &dag.outputs)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::domain::Shape;
    use crate::program::{Centring, Definition, Probe, Scope};
    use crate::real::DType;

    fn problem(define: impl Fn(&Scope<'_>)) -> Problem {
        let mut p = Definition::new("p", 2);
        for name in ["u", "wall", "k"] {
            p.field(name, Centring::CELL);
        }
        p.parameter("least", 0.5, "a bound");
        p.step().stage("a", define);
        let program = Arc::new(p.build().unwrap());
        Problem::new(program, Shape::new(&[9, 9]).unwrap(), DType::F64).unwrap()
    }

    /// A mask is a mark, and does not go through the levels; a coefficient that is multiplied does.
    #[test]
    fn conditions_of_coefficients_are_marks() {
        let mut problem = problem(|s| {
            s.only_where(s.field("wall").here().gt(s.param("least")));
            s.set("u", s.field("k").here() * s.field("u").at([0, 1]));
        });
        let masked = Masked::of(&problem, &problem.program);
        assert_eq!((masked.conditions.len(), masked.passes), (1, vec![true, false, true]));
        assert!(masked.stages[0].dag.taps().any(|tap| tap.field == 3));
        problem.noted = vec![Probe { field: 1, index: [0, 1, 1] }];
        assert!(Masked::of(&problem, &problem.program).conditions.is_empty());
    }

    /// Fields that are read as values, too, or away from the cell, stay what they are; so do conditions of fields that change.
    #[test]
    fn other_conditions_stay() {
        let used = problem(|s| {
            let wall = s.field("wall").here();
            s.only_where(wall);
            s.set("u", wall * s.field("u").at([0, 1]));
        });
        let away = problem(|s| {
            s.only_where(s.field("wall").at([1, 0]));
            s.set("u", s.field("k").here());
        });
        let changing = problem(|s| {
            s.only_where(s.field("u").here());
            s.set("u", s.field("k").here());
        });
        for problem in [used, away, changing] {
            let masked = Masked::of(&problem, &problem.program);
            assert!(masked.conditions.is_empty() && masked.passes == [true; 3]);
        }
    }
}

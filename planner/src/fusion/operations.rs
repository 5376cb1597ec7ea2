//! The arithmetic of a formula, by what it costs.

use abide_core::expr::{Dag, Node};

use abide_core::expr::{Binary, Unary};

/// Operations of a formula for each cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Operations {
    /// Those of one place in an arithmetic pipe: sums, products, fused ones, choices.
    pub simple: usize,
    /// Divisions.
    pub divisions: usize,
    /// Square roots.
    pub roots: usize,
    /// Other functions.
    pub functions: usize,
    /// Floating-point operations as the papers count them: a fused multiply-add is two, a choice none, a division one.
    pub flops: usize,
}

impl Operations {
    /// Counts the operations of a formula.
    pub fn of(dag: &Dag) -> Operations {
        let mut all = Operations::default();
        for &node in &dag.nodes {
            match node {
                Node::Const(_) | Node::Param(_) | Node::Tap(_) | Node::Coord(_) => {}
                Node::Unary(Unary::Sqrt, _) => all.roots += 1,
                Node::Unary(op, _) if op.function().is_none() => all.simple += 1,
                Node::Unary(..) => all.functions += 1,
                Node::Binary(op, ..) if op.function().is_some() => all.functions += 1,
                Node::Binary(Binary::Div, ..) => all.divisions += 1,
                Node::Binary(..) | Node::Fma(..) | Node::Select(..) => all.simple += 1,
                Node::Draw(..) => all.functions += 1,
            }
            all.flops += match node {
                Node::Unary(op, _) => op.flops(),
                Node::Binary(op, ..) => op.flops(),
                Node::Fma(..) => 2,
                _ => 0,
            };
        }
        all
    }

    /// Returns the places in an arithmetic pipe that all take.
    pub fn slots(&self) -> f64 {
        let weighed = [
            (self.simple, 1.0),
            (self.divisions, DIVISION_SLOTS),
            (self.roots, ROOT_SLOTS),
            (self.functions, FUNCTION_SLOTS),
        ];
        weighed.iter().map(|&(count, slots)| count as f64 * slots).sum()
    }
}

/// Places in a pipe of a correctly rounded division: a first guess, two Newton steps, the residual, and its check.
const DIVISION_SLOTS: f64 = 10.0;

/// Places of a correctly rounded root.
const ROOT_SLOTS: f64 = 12.0;

/// Places of any other function.
const FUNCTION_SLOTS: f64 = 30.0;

//! A finished formula: nodes in evaluation order, and their values at a cell.

use super::{Id, Node, Tap, binary, unary};
use crate::real::Real;

/// A formula ready to be evaluated or lowered: every node's operands come before the node, and every node is
/// needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dag {
    /// The nodes, operands first.
    pub nodes: Vec<Node>,
    /// The numbers of the nodes that are the formula's values.
    pub outputs: Vec<Id>,
}

impl Dag {
    /// Returns the nodes of `all` that `outputs` need, renumbered in the same order.
    pub(crate) fn pruned(all: &[Node], outputs: &[Id]) -> Dag {
        let mut needed = vec![false; all.len()];
        for &id in outputs {
            needed[id as usize] = true;
        }
        for id in (0..all.len()).rev() {
            if needed[id] {
                for operand in all[id].operands() {
                    needed[operand as usize] = true;
                }
            }
        }
        let mut new = vec![0; all.len()];
        let mut nodes = Vec::new();
        for (id, node) in all.iter().enumerate() {
            if needed[id] {
                new[id] = nodes.len() as Id;
                nodes.push(node.map(|operand| new[operand as usize]));
            }
        }
        Dag { nodes, outputs: outputs.iter().map(|&id| new[id as usize]).collect() }
    }

    /// Returns the formula of some of the outputs alone, in this order.
    pub fn restricted(&self, outputs: &[usize]) -> Dag {
        let outputs: Vec<Id> = outputs.iter().map(|&output| self.outputs[output]).collect();
        Dag::pruned(&self.nodes, &outputs)
    }

    /// Returns the distinct taps, in the order in which the formula meets them.
    pub fn taps(&self) -> impl Iterator<Item = Tap> + '_ {
        self.nodes.iter().filter_map(|node| match node {
            Node::Tap(tap) => Some(*tap),
            _ => None,
        })
    }

    /// Returns the numbers of the parameters and scalars that the formula reads.
    pub fn parameters(&self) -> impl Iterator<Item = usize> + '_ {
        self.nodes.iter().filter_map(|node| match *node {
            Node::Param(number) => Some(usize::from(number)),
            _ => None,
        })
    }

    /// Returns whether the formula draws random numbers.
    pub fn draws(&self) -> bool {
        self.nodes.iter().any(|node| matches!(node, Node::Draw(..)))
    }

    /// Evaluates all nodes at one cell into `values`, which is resized to the number of nodes.
    ///
    /// `coord` is the index along the three axes, slowest first; for a temporary it may lie beyond the domain.
    pub fn evaluate<T: Real>(
        &self,
        values: &mut Vec<T>,
        params: &[T],
        coord: [isize; 3],
        mut tap: impl FnMut(Tap) -> T,
    ) {
        values.clear();
        for &node in &self.nodes {
            let value = value(node, |id| values[id as usize], params, coord, &mut tap);
            values.push(value);
        }
    }

    /// Returns the value of a formula of parameters alone, after evaluating all nodes into `values`.
    pub(crate) fn evaluate_parameters<T: Real>(
        &self,
        values: &mut Vec<T>,
        parameter: impl Fn(usize) -> T,
    ) -> T {
        values.clear();
        for &node in &self.nodes {
            let value = match node {
                Node::Param(number) => parameter(usize::from(number)),
                other => value(other, |id| values[id as usize], &[], [0; 3], &mut |_| T::from_f64(f64::NAN)),
            };
            values.push(value);
        }
        values[self.outputs[0] as usize]
    }
}

/// Returns the value of an operation at a cell; `at` has those of its operands.
#[inline(always)]
pub(super) fn value<T: Real>(
    node: Node,
    at: impl Fn(Id) -> T,
    params: &[T],
    coord: [isize; 3],
    tap: &mut impl FnMut(Tap) -> T,
) -> T {
    match node {
        Node::Const(c) => T::from_f64(c.value()),
        Node::Param(number) => params[number as usize],
        Node::Tap(t) => tap(t),
        Node::Coord(axis) => T::from_f64(coord[axis as usize] as f64),
        Node::Unary(op, a) => unary(op, at(a)),
        Node::Binary(op, a, b) => binary(op, at(a), at(b)),
        Node::Fma(a, b, c) => at(a).mul_add(at(b), at(c)),
        Node::Select(c, yes, no) => {
            if at(c) != T::ZERO {
                at(yes)
            } else {
                at(no)
            }
        }
        Node::Draw(draw, operands) => draw.value(operands.map(at)),
    }
}

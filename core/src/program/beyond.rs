//! Choices in formulas beside the sides of a domain, in the forms that kernels know as those of outermost cells.

use super::flat::Formula;
use crate::expr::{Binary, Constant, Id, Node};

/// The side of an axis beyond which a tap may reach, from how many of the outermost values, and how many there are.
#[derive(Clone, Copy)]
pub(super) struct Beyond {
    pub axis: usize,
    pub side: usize,
    pub distance: usize,
    pub extent: usize,
}

impl Beyond {
    /// Returns the value `instead` where a tap reaches beyond the side, and the other one elsewhere. `slowest` is the slowest of
    /// the domain's axes.
    pub fn choose(self, formula: &mut Formula, slowest: usize, instead: Id, other: Id) -> Id {
        let Beyond { axis, side, distance, extent } = self;
        if is_by_planes(axis, slowest) {
            // Kernels that go from plane to plane ask for single planes only there.
            return (0..distance.min(extent)).fold(other, |other, far| {
                let index = if side == 0 { far } else { extent - 1 - far };
                choose_at(formula, axis, index, instead, other)
            });
        }
        // Kernels know such conditions as those of outermost cells.
        let at = formula.put(Node::Coord(axis as u8));
        let from_side = match side {
            0 => at,
            _ => {
                let last = number(formula, extent as f64 - 1.0);
                formula.put(Node::Binary(Binary::Sub, last, at))
            }
        };
        let distance = number(formula, distance as f64);
        let is_beyond = formula.put(Node::Binary(Binary::Less, from_side, distance));
        formula.put(Node::Select(is_beyond, instead, other))
    }
}

/// Returns whether formulas choose by single planes along an axis.
pub(super) fn is_by_planes(axis: usize, slowest: usize) -> bool {
    axis == slowest && axis < 2
}

/// Returns the value `instead` in the cells of an index, and the other one elsewhere.
pub(super) fn choose_at(formula: &mut Formula, axis: usize, index: usize, instead: Id, other: Id) -> Id {
    let at = formula.put(Node::Coord(axis as u8));
    let index = number(formula, index as f64);
    let is_there = formula.put(Node::Binary(Binary::Equal, at, index));
    formula.put(Node::Select(is_there, instead, other))
}

/// Returns a literal.
pub(super) fn number(formula: &mut Formula, value: f64) -> Id {
    formula.put(Node::Const(Constant::new(value)))
}

//! The parts of a tape: steps, their operands, and the places of taps.

use abide_core::expr::{Binary, Unary};

/// The most terms of one [`Op::Sum`]; a longer sum is cut, and goes on from the stored sum.
pub const MAX_TERMS: usize = 32;

/// The place where a step finds the values of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// In a slot of the scratch.
    Slot(usize),
    /// In a field's old values, by the number of the tap.
    Tap(usize),
    /// One value for the whole row, by its number among the scalars.
    Scalar(usize),
}

/// The place where a step leaves its values. Never a slot that the step reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In a slot of the scratch.
    Slot(usize),
    /// In the new values of an output of the formula.
    Output(usize),
}

/// An operand and the number of the scalar that weighs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    /// The weight, by its number among the scalars.
    pub weight: usize,
    /// The operand; not a scalar.
    pub operand: Operand,
}

/// The operation of a step at each cell of a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// The operand itself.
    Copy(Operand),
    /// The cell's index along the row.
    Index,
    /// One operand.
    Unary(Unary, Operand),
    /// Two operands.
    Binary(Binary, Operand, Operand),
    /// A sum or a difference of two operands, times the scalar of this number.
    Scaled(usize, Binary, Operand, Operand),
    /// `a * (b * c)`.
    Product(Operand, Operand, Operand),
    /// `a * b + c`, rounded once.
    Fma(Operand, Operand, Operand),
    /// The second operand where the first is not zero, else the third.
    Select(Operand, Operand, Operand),
    /// The first term's product, then one fused multiply-add for each later term, in order; at most
    /// [`MAX_TERMS`]. Then the whole is multiplied by a scalar, if there is one.
    Sum(Vec<Term>, Option<usize>),
}

impl Op {
    /// Calls `f` with each operand.
    pub fn each_operand(&mut self, mut f: impl FnMut(&mut Operand)) {
        match self {
            Op::Index => {}
            Op::Copy(a) | Op::Unary(_, a) => f(a),
            Op::Binary(_, a, b) | Op::Scaled(_, _, a, b) => [a, b].into_iter().for_each(f),
            Op::Product(a, b, c) | Op::Fma(a, b, c) | Op::Select(a, b, c) => {
                [a, b, c].into_iter().for_each(f)
            }
            Op::Sum(terms, _) => terms.iter_mut().for_each(|term| f(&mut term.operand)),
        }
    }
}

/// One operation and the place of its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The place where the values go.
    pub place: Place,
    /// The operation.
    pub op: Op,
}

/// A row of a field that taps of the formula lie in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowAt {
    /// The field's number.
    pub field: usize,
    /// The number of the line.
    pub line: usize,
}

/// A tap of the formula.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TapAt {
    /// The number of its row.
    pub row: usize,
    /// Cells along the row.
    pub shift: isize,
}

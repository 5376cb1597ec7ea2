//! The parts of a bytecode: operands, terms of sums, and the places of taps.

/// The most terms of a bytecode's sum; a longer one is carried out by instructions.
pub const MAX_TERMS: usize = 32;

/// The place of an operand's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// There is no such operand.
    None,
    /// In a slot of the scratch.
    Slot(usize),
    /// In a field's old values, by the number of the tap.
    Tap(usize),
    /// One value for the whole row, by its number among the scalars.
    Scalar(usize),
    /// In the new values of an output of the formula, which are only written.
    Output(usize),
    /// The coordinate along the row of each cell.
    Along,
}

/// A tap and the number of the scalar that weighs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    /// The weight, by its number among the scalars.
    pub weight: usize,
    /// The tap, by its number.
    pub tap: usize,
}

/// A formula that is one sum: the first term's product, then one fused multiply-add for each later term, in
/// order; at most [`MAX_TERMS`]. Then the whole is multiplied by a scalar, if there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weighted {
    /// The terms.
    pub terms: Vec<Term>,
    /// The scalar that multiplies the sum, by its number.
    pub scale: Option<usize>,
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

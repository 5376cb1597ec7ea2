//! What entries of several numbers of axes share about the domain.

use crate::expr::Expr;
use crate::program::{Definition, Scope};

/// The names of the numbers of cells along z, y and x, of which a program has the last ones.
const EXTENTS: [&str; 3] = ["depth", "height", "width"];

/// Declares the number of cells along each axis as a scalar.
pub(super) fn declare_extents(p: &mut Definition) {
    let first = EXTENTS.len() - p.dimensions();
    for (axis, (name, letter)) in EXTENTS.into_iter().zip(["z", "y", "x"]).skip(first).enumerate() {
        p.extent(name, axis, &format!("cells along {letter}"));
    }
}

/// Returns the number of cells along an axis, counted from the slowest.
pub(super) fn extent<'g>(s: &Scope<'g>, axis: usize) -> Expr<'g> {
    s.param(EXTENTS[EXTENTS.len() - s.dimensions() + axis])
}

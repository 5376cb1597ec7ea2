//! What entries of several numbers of axes share about the domain.

use crate::expr::Expr;
use crate::program::{Definition, Scope};

/// The names of the numbers of cells along z, y and x, of which a program has the last ones.
const EXTENTS: [&str; 3] = ["depth", "height", "width"];

/// The names of the parameters that place a source along z, y and x.
const PLACES: [&str; 3] = ["source_z", "source_y", "source_x"];

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

/// Returns 1 in the cell of a source, else 0. Parameters place it as parts of the axes, but not in the outermost cells, as many
/// as a formula reaches, which keep their values.
pub(super) fn is_source<'g>(s: &Scope<'g>, reach: f64) -> Expr<'g> {
    let places = &PLACES[PLACES.len() - s.dimensions()..];
    let along = |axis: usize| {
        let part = s.param(places[axis]);
        let (low, high) = (reach, extent(s, axis) - 1.0 - reach);
        s.coord(axis).eq((part * extent(s, axis)).floor().max(low).min(high))
    };
    (1..places.len()).fold(along(0), |here, axis| here * along(axis))
}

/// Returns the mean of a velocity along one axis at a face normal to another one: of the four faces of its own around that.
pub(super) fn mean_at_face<'g>(s: &Scope<'g>, velocity: &str, face: usize, along: usize) -> Expr<'g> {
    let at = |back: i32, up: i32| {
        let mut offset = [0; 3];
        (offset[face], offset[along]) = (back, up);
        s.field(velocity).at_slice(&offset[..s.dimensions()])
    };
    0.25 * (at(-1, 0) + at(0, 0) + at(-1, 1) + at(0, 1))
}

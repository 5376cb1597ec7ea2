//! What finite-volume models share: limited slopes, values at the two sides of a face, and time steps.

use crate::expr::Expr;
use crate::program::{Centring, Definition, Field, Reduction, Scope, Step};

/// The velocity along each axis, slowest first.
pub(super) const VELOCITIES: [&str; 2] = ["v", "u"];

/// The letter of each axis, slowest first.
pub(super) const LETTERS: [&str; 2] = ["y", "x"];

/// A slope from the differences to the cell before and to the cell behind.
pub(super) type Limiter = for<'g> fn(Expr<'g>, Expr<'g>) -> Expr<'g>;

/// The smaller of two differences of one sign, else 0 (Roe, Annu. Rev. Fluid Mech. 18, 1986).
pub(super) fn minmod<'g>(before: Expr<'g>, behind: Expr<'g>) -> Expr<'g> {
    let smaller = before.abs().lt(behind.abs()).select(before, behind);
    (before * behind).gt(0.0).select(smaller, 0.0)
}

/// The harmonic mean of two differences of one sign, else 0 (van Leer, J. Comput. Phys. 14, 1974).
pub(super) fn van_leer<'g>(before: Expr<'g>, behind: Expr<'g>) -> Expr<'g> {
    let product = before * behind;
    let is_monotone = product.gt(0.0);
    let sum = is_monotone.select(before + behind, 1.0);
    is_monotone.select(2.0 * product / sum, 0.0)
}

/// Returns the limited slope of a field of cells, in a cell and along an axis.
pub(super) fn slope<'g>(field: Field<'_, 'g>, axis: usize, limiter: Limiter) -> Expr<'g> {
    let [before, here, behind] = [-1, 0, 1].map(|distance| field.along(axis, distance));
    limiter(here - before, behind - here)
}

/// Returns a field's values at both sides of a face normal to an axis, from the four cells around the face by limited
/// slopes (MUSCL; van Leer, J. Comput. Phys. 32, 1979): first that of the cell before the face.
pub(super) fn sides<'g>(field: Field<'_, 'g>, axis: usize, limiter: Limiter) -> [Expr<'g>; 2] {
    let [a, b, c, d] = [-2, -1, 0, 1].map(|distance| field.along(axis, distance));
    [b + 0.5 * limiter(b - a, c - b), c - 0.5 * limiter(c - b, d - c)]
}

/// Returns what a cell loses through its two faces along an axis, by the field of a flux.
pub(super) fn outflow<'g>(s: &Scope<'g>, flux: &str, axis: usize) -> Expr<'g> {
    let flux = s.field(flux);
    flux.along(axis, 1) - flux.along(axis, 0)
}

/// Returns what a cell loses through all of its faces, by the fields `NAME_x` and `NAME_y` of a flux.
pub(super) fn outflows<'g>(s: &Scope<'g>, name: &str) -> Expr<'g> {
    let [y, x] = [0, 1].map(|axis| outflow(s, &format!("{name}_{}", LETTERS[axis]), axis));
    x + y
}

/// Declares the width of cells, the Courant number, and the scalars of the time step.
pub(super) fn times(p: &mut Definition, courant: f64) {
    p.parameter("dx", 1.0, "width of a cell");
    p.parameter("cfl", courant, "fastest wave · step / width; stable up to 1/2");
    p.scalar("fastest", None, "largest speed of a wave");
    p.scalar("dt", None, "time step").scalar("time", Some(0.0), "time");
}

/// Computes the time step from the velocities and the speed of waves in each cell.
pub(super) fn time_step(step: &mut Step<'_>, speed: impl for<'g> Fn(&Scope<'g>) -> Expr<'g>) {
    step.reduce("fastest", Reduction::Max, Centring::CELL, |s| {
        let [v, u] = VELOCITIES.map(|name| s.field(name).here().abs());
        u.max(v) + speed(s)
    });
    // Where nothing moves, a finite step.
    step.compute("dt", |s| s.param("cfl") * s.param("dx") / s.param("fastest").max(1e-6));
}

/// Returns the time step over the width of a cell.
pub(super) fn ratio<'g>(s: &Scope<'g>) -> Expr<'g> {
    s.param("dt") / s.param("dx")
}

/// Advances the time.
pub(super) fn advance(step: &mut Step<'_>) {
    step.compute("time", |s| s.param("time") + s.param("dt"));
}

//! CloverLeaf in two dimensions.

use super::{SMALL, advec_velocities, cell_flux, cell_update, ideal_gas, named, next_dt, pdv_update, width};
use crate::domain::Boundary;
use crate::error::Result;
use crate::expr::Expr;
use crate::program::{Centring, Definition, Field, Program, Reduction, Scope, Step};

/// The reference's largest number, which it writes in single precision.
const BIG: f64 = 1.0e21_f32 as f64;

/// Axes of the domain, slowest first.
const Y: usize = 0;
const X: usize = 1;

/// Returns the program. Its cycle has two steps: one sweeps x first, the other y.
pub fn cloverleaf() -> Result<Program> {
    let mut p = Definition::new("cloverleaf", 2);
    p.boundary(Boundary::Mirror);
    super::cells(&mut p, [1.0, 0.2, 0.5]);
    super::flows(&mut p, 2, &[X, Y]);
    p.parameter("dx", 1.0, "width of a cell").parameter("dy", 1.0, "height of a cell");
    super::times(&mut p, 1.5);
    for order in [[X, Y], [Y, X]] {
        let mut step = p.step();
        timestep(&mut step);
        step.stage("PdV predict", |s| pdv(s, true));
        step.stage("ideal gas predict", |s| ideal_gas(s, "density1", "energy1"));
        step.stage("revert", super::revert);
        step.stage("accelerate", accelerate);
        step.stage("PdV correct", |s| pdv(s, false));
        step.stage("flux calc x", |s| flux_calc(s, X));
        step.stage("flux calc y", |s| flux_calc(s, Y));
        for (axis, first) in [(order[0], true), (order[1], false)] {
            advec_cell(&mut step, axis, first);
            advec_mom(&mut step, axis, first);
        }
        super::reset(&mut step, &["xvel1", "yvel1"]);
    }
    p.build()
}

fn volume<'g>(s: &Scope<'g>) -> Expr<'g> {
    s.param("dx") * s.param("dy")
}

/// Returns the area of the faces normal to an axis.
fn area<'g>(s: &Scope<'g>, axis: usize) -> Expr<'g> {
    width(s, 1 - axis)
}

/// Returns a field's value at an offset along a sweep's axis and across it.
fn at<'g>(field: Field<'_, 'g>, axis: usize, along: i32, across: i32) -> Expr<'g> {
    field.at(if axis == X { [across, along] } else { [along, across] })
}

fn viscosity(s: &Scope<'_>) {
    let (x, y, p) = (s.field("xvel0"), s.field("yvel0"), s.field("pressure"));
    let (dx, dy) = (s.param("dx"), s.param("dy"));
    let ug = (x.at([0, 1]) + x.at([1, 1])) - (x.at([0, 0]) + x.at([1, 0]));
    let vg = (y.at([1, 0]) + y.at([1, 1])) - (y.at([0, 0]) + y.at([0, 1]));
    let div = dx * ug + dy * vg;
    let strain2 = 0.5 * (x.at([1, 0]) + x.at([1, 1]) - x.at([0, 0]) - x.at([0, 1])) / dy
        + 0.5 * (y.at([0, 1]) + y.at([1, 1]) - y.at([0, 0]) - y.at([1, 0])) / dx;
    let px = (p.at([0, 1]) - p.at([0, -1])) / (dx + dx);
    let py = (p.at([1, 0]) - p.at([-1, 0])) / (dy + dy);
    let (px2, py2) = (px * px, py * py);
    let limiter =
        ((0.5 * ug / dx) * px2 + (0.5 * vg / dy) * py2 + strain2 * px * py) / (px2 + py2).max(1e-16);
    let px = px.lt(0.0).select(-1.0, 1.0) * s.constant(1e-16).max(px.abs());
    // The reference takes the sign of px here, which it has just replaced.
    let py = px.lt(0.0).select(-1.0, 1.0) * s.constant(1e-16).max(py.abs());
    let pg = (px * px + py * py).sqrt();
    let g = (dx * pg / px).abs().min((dy * pg / py).abs());
    let q = 2.0 * s.field("density0").here() * (g * g) * limiter * limiter;
    s.set("viscosity", limiter.gt(0.0).select(0.0, div.ge(0.0).select(0.0, q)));
}

/// Returns the largest stable time step of a cell.
fn calc_dt<'g>(s: &Scope<'g>) -> Expr<'g> {
    let (x, y, d) = (s.field("xvel0"), s.field("yvel0"), s.field("density0").here());
    let (ss, q, vol) = (s.field("soundspeed").here(), s.field("viscosity").here(), volume(s));
    let cc = ss * ss;
    let cc = cc + 2.0 * q / d;
    let cc = cc.sqrt().max(SMALL);
    let dtct = 0.7 * s.param("dx").min(s.param("dy")) / cc;
    let dv1 = (x.at([0, 0]) + x.at([1, 0])) * area(s, X);
    let dv2 = (x.at([0, 1]) + x.at([1, 1])) * area(s, X);
    let div = dv2 - dv1;
    let dtut = vol / dv1.abs().max(dv2.abs()).max(SMALL * vol);
    let dv1 = (y.at([0, 0]) + y.at([0, 1])) * area(s, Y);
    let dv2 = (y.at([1, 0]) + y.at([1, 1])) * area(s, Y);
    let div = div + dv2 - dv1;
    let dtvt = vol / dv1.abs().max(dv2.abs()).max(SMALL * vol);
    let div = div / (2.0 * vol);
    let dtdiv = div.lt(-SMALL).select(0.7 * (-1.0 / div), BIG);
    dtct.min(dtut).min(dtvt).min(dtdiv)
}

fn timestep(step: &mut Step<'_>) {
    step.stage("ideal gas", |s| ideal_gas(s, "density0", "energy0"));
    step.stage("viscosity", viscosity);
    step.reduce("dt_stable", Reduction::Min, Centring::CELL, calc_dt);
    step.compute("dt", next_dt);
}

/// Work of the pressure on the cells, by the velocities at the beginning of the step, or by the mean of both.
fn pdv<'g>(s: &Scope<'g>, predict: bool) {
    let dt = s.param("dt");
    let end = if predict { ["xvel0", "yvel0"] } else { ["xvel1", "yvel1"] };
    let (x, y) = ([s.field("xvel0"), s.field(end[0])], [s.field("yvel0"), s.field(end[1])]);
    let flux = |axis: usize, [v0, v1]: [Field<'_, 'g>; 2], one: [i32; 2], two: [i32; 2]| {
        let flux = area(s, axis) * (v0.at(one) + v0.at(two) + v1.at(one) + v1.at(two)) * 0.25 * dt;
        if predict { flux * 0.5 } else { flux }
    };
    let (left, right) = (flux(X, x, [0, 0], [1, 0]), flux(X, x, [0, 1], [1, 1]));
    let (bottom, top) = (flux(Y, y, [0, 0], [0, 1]), flux(Y, y, [1, 0], [1, 1]));
    let total = right - left + top - bottom;
    pdv_update(s, total, volume(s));
}

fn accelerate<'g>(s: &Scope<'g>) {
    let (d, vol) = (s.field("density0"), volume(s));
    let mass = d.at([-1, -1]) * vol + d.at([-1, 0]) * vol + d.at([0, 0]) * vol + d.at([0, -1]) * vol;
    let half = 0.5 * s.param("dt") / (mass * 0.25);
    let x = |v: Expr<'g>, p: Field<'_, 'g>| {
        let area = area(s, X);
        v - half * (area * (p.at([0, 0]) - p.at([0, -1])) + area * (p.at([-1, 0]) - p.at([-1, -1])))
    };
    let y = |v: Expr<'g>, p: Field<'_, 'g>| {
        let area = area(s, Y);
        v - half * (area * (p.at([0, 0]) - p.at([-1, 0])) + area * (p.at([0, -1]) - p.at([-1, -1])))
    };
    let (p, q) = (s.field("pressure"), s.field("viscosity"));
    s.set("xvel1", x(x(s.field("xvel0").here(), p), q));
    s.set("yvel1", y(y(s.field("yvel0").here(), p), q));
}

fn flux_calc(s: &Scope<'_>, axis: usize) {
    let (v0, v1) = if axis == X { ("xvel0", "xvel1") } else { ("yvel0", "yvel1") };
    let (v0, v1) = (s.field(v0), s.field(v1));
    let sum = at(v0, axis, 0, 0) + at(v0, axis, 0, 1) + at(v1, axis, 0, 0) + at(v1, axis, 0, 1);
    s.set(&named(s, "vol_flux", axis), 0.25 * s.param("dt") * area(s, axis) * sum);
}

/// Advects mass and energy along an axis.
fn advec_cell(step: &mut Step<'_>, axis: usize, first: bool) {
    step.stage("cell volume", |s| {
        let [a, b] = [axis, 1 - axis].map(|axis| s.field(&named(s, "vol_flux", axis)));
        let change = at(a, axis, 1, 0) - at(a, axis, 0, 0);
        s.set(
            "pre_vol",
            match first {
                true => volume(s) + (change + at(b, axis, 0, 1) - at(b, axis, 0, 0)),
                false => volume(s) + at(a, axis, 1, 0) - at(a, axis, 0, 0),
            },
        );
    });
    step.stage("cell flux", |s| {
        let [mass, energy] = cell_flux(s, axis, |field, distance| field.along(axis, distance));
        s.set(&named(s, "mass_flux", axis), mass);
        s.set(&named(s, "ener_flux", axis), energy);
    });
    step.stage("cell update", |s| cell_update(s, axis));
}

/// Advects the momentum of both velocities along an axis.
fn advec_mom(step: &mut Step<'_>, axis: usize, first: bool) {
    if first {
        step.stage("momentum volume", |s| {
            let b = s.field(&named(s, "vol_flux", 1 - axis));
            s.set("post_vol", volume(s) + at(b, axis, 0, 1) - at(b, axis, 0, 0));
        });
    }
    step.stage("node flux", |s| {
        let m = s.field(&named(s, "mass_flux", axis));
        let sum = at(m, axis, 0, -1) + at(m, axis, 0, 0) + at(m, axis, 1, -1) + at(m, axis, 1, 0);
        s.set(&named(s, "node_flux", axis), 0.25 * sum);
    });
    step.stage("node mass", |s| {
        let (d, flux) = (s.field("density1"), s.field(&named(s, "node_flux", axis)));
        let mass = |offset: [i32; 2]| match first {
            true => d.at(offset) * s.field("post_vol").at(offset),
            false => d.at(offset) * volume(s),
        };
        let post = 0.25 * (mass([-1, 0]) + mass([0, 0]) + mass([-1, -1]) + mass([0, -1]));
        s.set("node_mass_post", post);
        s.set("node_mass_pre", post - flux.along(axis, -1) + flux.along(axis, 0));
    });
    advec_velocities(step, &["xvel1", "yvel1"], axis);
}

//! CloverLeaf in two dimensions: compressible flow on a staggered grid, by a Lagrangian step and an advective
//! remap (Mallinson et al., "CloverLeaf: Preparing Hydrodynamics Codes for Exascale", CUG 2013).
//!
//! Each formula keeps the order of operations of the Fortran reference (UK-MAC/CloverLeaf_Serial), so that
//! every bit of every field is the same. The mesh is uniform: volumes and areas are numbers.

use crate::domain::Boundary;
use crate::error::Result;
use crate::expr::Expr;
use crate::program::{Centring, Definition, Field, Program, Reduction, Scope, Step};

/// The ratio of specific heats less one, as the reference subtracts it.
const GAMMA_1: f64 = 1.4 - 1.0;

/// The reference's smallest and largest numbers, which it writes in single precision.
const SMALL: f64 = 1.0e-16_f32 as f64;
const BIG: f64 = 1.0e21_f32 as f64;

/// Axes of the domain, slowest first.
const Y: usize = 0;
const X: usize = 1;

/// Returns the program. Its cycle has two steps: one sweeps x first, the other y.
pub fn cloverleaf() -> Result<Program> {
    let mut p = Definition::new("cloverleaf", 2);
    p.boundary(Boundary::Mirror);
    for cell in ["density0", "energy0", "pressure", "viscosity", "soundspeed", "density1", "energy1"] {
        p.field(cell, Centring::CELL);
    }
    for (name, centring, boundary) in [
        ("xvel0", Centring::NODE, "x=-reflect,y=reflect"),
        ("yvel0", Centring::NODE, "x=reflect,y=-reflect"),
        ("xvel1", Centring::NODE, "x=-reflect,y=reflect"),
        ("yvel1", Centring::NODE, "x=reflect,y=-reflect"),
        // Along the axis of its cells a flux mirrors about its last value, as the reference has it.
        ("vol_flux_x", Centring::face(2, X), "x=-reflect,y=reflect"),
        ("vol_flux_y", Centring::face(2, Y), "x=reflect,y=-reflect"),
        ("mass_flux_x", Centring::face(2, X), "x=-reflect,y=reflect"),
        ("mass_flux_y", Centring::face(2, Y), "x=reflect,y=-reflect"),
    ] {
        p.field(name, centring).boundary_of(name, boundary);
    }
    for cell in ["pre_vol", "post_vol"] {
        p.temporary(cell, Centring::CELL);
    }
    for axis in [X, Y] {
        p.temporary(along(axis, "ener_flux"), Centring::face(2, axis));
        // Between two nodes of the axis: on the faces across it.
        p.temporary(along(axis, "node_flux"), Centring::face(2, 1 - axis));
        p.temporary(along(axis, "mom_flux"), Centring::face(2, 1 - axis));
    }
    p.temporary("node_mass_post", Centring::NODE).temporary("node_mass_pre", Centring::NODE);
    p.parameter("dx", 1.0, "width of a cell").parameter("dy", 1.0, "height of a cell");
    p.parameter("dtrise", 1.5, "largest ratio of two time steps").parameter(
        "dtmax",
        1.0,
        "largest time step",
    );
    p.scalar("dt", Some(0.1), "time step").scalar("time", Some(0.0), "time").scalar(
        "dt_stable",
        None,
        "stable time step",
    );
    for order in [[X, Y], [Y, X]] {
        let mut step = p.step();
        timestep(&mut step);
        step.stage("PdV predict", |s| pdv(s, true));
        step.stage("ideal gas predict", |s| ideal_gas(s, "density1", "energy1"));
        step.stage("revert", |s| {
            s.set("density1", s.field("density0").here());
            s.set("energy1", s.field("energy0").here());
        });
        step.stage("accelerate", accelerate);
        step.stage("PdV correct", |s| pdv(s, false));
        step.stage("flux calc x", |s| flux_calc(s, X));
        step.stage("flux calc y", |s| flux_calc(s, Y));
        for (axis, first) in [(order[0], true), (order[1], false)] {
            advec_cell(&mut step, axis, first);
            advec_mom(&mut step, axis, first);
        }
        step.stage("reset cells", |s| {
            s.set("density0", s.field("density1").here());
            s.set("energy0", s.field("energy1").here());
        });
        step.stage("reset nodes", |s| {
            s.set("xvel0", s.field("xvel1").here());
            s.set("yvel0", s.field("yvel1").here());
        });
        step.compute("time", |s| s.param("time") + s.param("dt"));
    }
    p.build()
}

/// Returns the name of a quantity of a sweep along an axis.
fn along(axis: usize, name: &str) -> &'static str {
    match (name, axis) {
        ("ener_flux", X) => "ener_flux_x",
        ("ener_flux", _) => "ener_flux_y",
        ("node_flux", X) => "node_flux_x",
        ("node_flux", _) => "node_flux_y",
        ("mom_flux", X) => "mom_flux_x",
        ("mom_flux", _) => "mom_flux_y",
        ("vol_flux", X) => "vol_flux_x",
        ("vol_flux", _) => "vol_flux_y",
        (_, X) => "mass_flux_x",
        (_, _) => "mass_flux_y",
    }
}

fn volume<'g>(s: &Scope<'g>) -> Expr<'g> {
    s.param("dx") * s.param("dy")
}

/// Returns the area of the faces normal to an axis.
fn area<'g>(s: &Scope<'g>, axis: usize) -> Expr<'g> {
    s.param(if axis == X { "dy" } else { "dx" })
}

/// Returns the extent of a cell along an axis.
fn width<'g>(s: &Scope<'g>, axis: usize) -> Expr<'g> {
    s.param(if axis == X { "dx" } else { "dy" })
}

/// Returns a field's value at an offset along a sweep's axis and across it.
fn at<'g>(field: Field<'_, 'g>, axis: usize, along: i32, across: i32) -> Expr<'g> {
    field.at(if axis == X { [across, along] } else { [along, across] })
}

fn ideal_gas(s: &Scope<'_>, density: &str, energy: &str) {
    let (d, e) = (s.field(density).here(), s.field(energy).here());
    let v = 1.0 / d;
    let p = GAMMA_1 * d * e;
    let pe = GAMMA_1 * d;
    let pv = -d * p;
    s.set("pressure", p);
    s.set("soundspeed", (v * v * (p * pe - pv)).sqrt());
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
    step.compute("dt", |s| s.param("dt_stable").min(s.param("dt") * s.param("dtrise")).min(s.param("dtmax")));
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
    let (vol, d0) = (volume(s), s.field("density0").here());
    let change = vol / (vol + total);
    let (p, q) = (s.field("pressure").here(), s.field("viscosity").here());
    let de = (p / d0 + q / d0) * total * (1.0 / vol);
    s.set("energy1", s.field("energy0").here() - de);
    s.set("density1", d0 * change);
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
    s.set(along(axis, "vol_flux"), 0.25 * s.param("dt") * area(s, axis) * sum);
}

/// Van Leer's limited slope between a donor cell and its neighbours, in the reference's form.
fn limited<'g>(
    value: impl Fn(i32, i32) -> Expr<'g>,
    s3: Expr<'g>,
    s4: Expr<'g>,
    sigma: Expr<'g>,
) -> Expr<'g> {
    // Offsets along the sweep where the flux is positive, and where it is not.
    let (upwind, donor, downwind) = (value(-2, 1), value(-1, 0), value(0, -1));
    let (uw, dw) = (donor - upwind, downwind - donor);
    let wind = dw.le(0.0).select(-1.0, 1.0);
    let third = (1.0 / 6.0) * (s3 * uw.abs() + s4 * dw.abs());
    let slope = (1.0 - sigma) * wind * uw.abs().min(dw.abs()).min(third);
    donor + (uw * dw).gt(0.0).select(slope, 0.0)
}

/// Advects mass and energy along an axis.
fn advec_cell(step: &mut Step<'_>, axis: usize, first: bool) {
    step.stage("cell volume", |s| {
        let (a, b) = (s.field(along(axis, "vol_flux")), s.field(along(1 - axis, "vol_flux")));
        let change = at(a, axis, 1, 0) - at(a, axis, 0, 0);
        s.set(
            "pre_vol",
            match first {
                true => volume(s) + (change + at(b, axis, 0, 1) - at(b, axis, 0, 0)),
                false => volume(s) + at(a, axis, 1, 0) - at(a, axis, 0, 0),
            },
        );
    });
    step.stage("cell flux", |s| cell_flux(s, axis));
    step.stage("cell update", |s| {
        let (d, e, pre) = (s.field("density1").here(), s.field("energy1").here(), s.field("pre_vol").here());
        let [m, ef, f] = ["mass_flux", "ener_flux", "vol_flux"].map(|name| s.field(along(axis, name)));
        let pre_mass = d * pre;
        let post_mass = pre_mass + at(m, axis, 0, 0) - at(m, axis, 1, 0);
        s.set("energy1", (e * pre_mass + at(ef, axis, 0, 0) - at(ef, axis, 1, 0)) / post_mass);
        s.set("density1", post_mass / (pre + at(f, axis, 0, 0) - at(f, axis, 1, 0)));
    });
}

fn cell_flux<'g>(s: &Scope<'g>, axis: usize) {
    let (f, pre) = (s.field(along(axis, "vol_flux")).here(), s.field("pre_vol"));
    let (d, e) = (s.field("density1"), s.field("energy1"));
    let upwind = |field: Field<'_, 'g>, positive: i32, not: i32| {
        f.gt(0.0).select(at(field, axis, positive, 0), at(field, axis, not, 0))
    };
    let sigma = f.abs() / upwind(pre, -1, 0);
    let (s3, s4) = (1.0 + sigma, 2.0 - sigma);
    let mass = f * limited(|i, j| upwind(d, i, j), s3, s4, sigma);
    let sigma_m = mass.abs() / (upwind(d, -1, 0) * upwind(pre, -1, 0));
    s.set(along(axis, "mass_flux"), mass);
    s.set(along(axis, "ener_flux"), mass * limited(|i, j| upwind(e, i, j), s3, s4, sigma_m));
}

/// Advects the momentum of both velocities along an axis.
fn advec_mom(step: &mut Step<'_>, axis: usize, first: bool) {
    if first {
        step.stage("momentum volume", |s| {
            let b = s.field(along(1 - axis, "vol_flux"));
            s.set("post_vol", volume(s) + at(b, axis, 0, 1) - at(b, axis, 0, 0));
        });
    }
    step.stage("node flux", |s| {
        let m = s.field(along(axis, "mass_flux"));
        let sum = at(m, axis, 0, -1) + at(m, axis, 0, 0) + at(m, axis, 1, -1) + at(m, axis, 1, 0);
        s.set(along(axis, "node_flux"), 0.25 * sum);
    });
    step.stage("node mass", |s| {
        let (d, flux) = (s.field("density1"), s.field(along(axis, "node_flux")));
        let mass = |offset: [i32; 2]| match first {
            true => d.at(offset) * s.field("post_vol").at(offset),
            false => d.at(offset) * volume(s),
        };
        let post = 0.25 * (mass([-1, 0]) + mass([0, 0]) + mass([-1, -1]) + mass([0, -1]));
        s.set("node_mass_post", post);
        s.set("node_mass_pre", post - at(flux, axis, -1, 0) + at(flux, axis, 0, 0));
    });
    for velocity in ["xvel1", "yvel1"] {
        step.stage("momentum flux", |s| momentum_flux(s, velocity, axis));
        step.stage("velocity update", |s| {
            let (v, flux) = (s.field(velocity).here(), s.field(along(axis, "mom_flux")));
            let (pre, post) = (s.field("node_mass_pre").here(), s.field("node_mass_post").here());
            s.set(velocity, (v * pre + at(flux, axis, -1, 0) - at(flux, axis, 0, 0)) / post);
        });
    }
}

fn momentum_flux<'g>(s: &Scope<'g>, velocity: &str, axis: usize) {
    let (f, pre) = (s.field(along(axis, "node_flux")).at([0, 0]), s.field("node_mass_pre"));
    let (v, w) = (s.field(velocity), width(s, axis));
    let upwind = |field: Field<'_, 'g>, negative: i32, not: i32| {
        f.lt(0.0).select(at(field, axis, negative, 0), at(field, axis, not, 0))
    };
    let sigma = f.abs() / upwind(pre, 1, 0);
    let donor = upwind(v, 1, 0);
    let (uw, dw) = (donor - upwind(v, 2, -1), upwind(v, 0, 1) - donor);
    let wind = dw.le(0.0).select(-1.0, 1.0);
    let third = w * ((2.0 - sigma) * dw.abs() / w + (1.0 + sigma) * uw.abs() / w) / 6.0;
    let slope = wind * third.min(uw.abs()).min(dw.abs());
    let limiter = (uw * dw).gt(0.0).select(slope, 0.0);
    s.set(along(axis, "mom_flux"), (donor + (1.0 - sigma) * limiter) * f);
}

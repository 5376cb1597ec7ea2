//! CloverLeaf: compressible flow on a staggered grid, by a Lagrangian step and an advective remap (Mallinson
//! et al., "CloverLeaf: Preparing Hydrodynamics Codes for Exascale", CUG 2013).
//!
//! Each formula keeps the order of operations of the Fortran references (UK-MAC/CloverLeaf_Serial and
//! UK-MAC/CloverLeaf3D_ref), so that every bit of every field is the same. The mesh is uniform: volumes and
//! areas are numbers. What both numbers of axes share stands here.

mod three;
mod two;

use crate::error::Result;
use crate::expr::Expr;
use crate::program::{Centring, Definition, Field, Program, Scope, Start, Step};

use super::Entry;

pub use three::cloverleaf_3d;
pub use two::cloverleaf;

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "cloverleaf",
        about: "compressible flow of a gas, with a dense hot corner (CloverLeaf)",
        dimensions: 2..=2,
        make: |_| made(cloverleaf()),
    },
    Entry {
        name: "cloverleaf-3d",
        about: "compressible flow of a gas in three dimensions, with a dense hot corner (CloverLeaf 3D)",
        dimensions: 3..=3,
        make: |_| made(cloverleaf_3d()),
    },
];

fn made(program: Result<Program>) -> Result<super::Made> {
    program.map(|program| Box::new(program) as super::Made)
}

/// The ratio of specific heats less one, as the reference subtracts it.
const GAMMA_1: f64 = 1.4 - 1.0;

/// The reference's smallest number, which it writes in single precision.
const SMALL: f64 = 1.0e-16_f32 as f64;

/// Returns the letter of an axis, counted from the slowest.
fn letter(dimensions: usize, axis: usize) -> &'static str {
    ["z", "y", "x"][3 - dimensions + axis]
}

/// Returns the name of a quantity that belongs to an axis, as in `mass_flux_x`.
fn named(s: &Scope<'_>, name: &str, axis: usize) -> String {
    format!("{name}_{}", letter(s.dimensions(), axis))
}

/// Returns the extent of a cell along an axis.
fn width<'g>(s: &Scope<'g>, axis: usize) -> Expr<'g> {
    s.param(&format!("d{}", letter(s.dimensions(), axis)))
}

/// Returns the boundaries of a quantity that changes its sign at the sides of an axis. Along an axis of its
/// cells a flux mirrors about its last value, as the references have it.
fn normal_to(dimensions: usize, axis: usize) -> String {
    let side = |other: usize| {
        let sign = if other == axis { "-" } else { "" };
        format!("{}={sign}reflect", letter(dimensions, other))
    };
    (0..dimensions).map(side).collect::<Vec<_>>().join(",")
}

/// Declares the fields of the gas, with the references' built-in start: the gas is denser and hotter in half
/// of x and a fifth of the other axes.
fn cells(p: &mut Definition, parts: [f64; 3]) {
    for cell in ["density0", "energy0", "pressure", "viscosity", "soundspeed", "density1", "energy1"] {
        p.field(cell, Centring::CELL);
    }
    p.start("density0", Start::Corner { inside: 1.0, outside: 0.2, parts });
    p.start("energy0", Start::Corner { inside: 2.5, outside: 1.0, parts });
}

/// Declares velocities, fluxes and the temporaries of the advection along the axes in this order.
fn flows(p: &mut Definition, dimensions: usize, axes: &[usize]) {
    let letter = |axis: usize| letter(dimensions, axis);
    for time in [0, 1] {
        for &axis in axes {
            let name = format!("{}vel{time}", letter(axis));
            p.field(&name, Centring::NODE).boundary_of(&name, &normal_to(dimensions, axis));
        }
    }
    for flux in ["vol_flux", "mass_flux"] {
        for &axis in axes {
            let name = format!("{flux}_{}", letter(axis));
            p.field(&name, Centring::face(dimensions, axis));
            p.boundary_of(&name, &normal_to(dimensions, axis));
        }
    }
    p.temporary("pre_vol", Centring::CELL).temporary("post_vol", Centring::CELL);
    for &axis in axes {
        p.temporary(&format!("ener_flux_{}", letter(axis)), Centring::face(dimensions, axis));
        // Between two nodes of the axis.
        p.temporary(&format!("node_flux_{}", letter(axis)), Centring::edge(dimensions, axis));
        p.temporary(&format!("mom_flux_{}", letter(axis)), Centring::edge(dimensions, axis));
    }
    p.temporary("node_mass_post", Centring::NODE).temporary("node_mass_pre", Centring::NODE);
}

/// Declares time and time steps.
fn times(p: &mut Definition, largest_ratio: f64) {
    p.parameter("dtrise", largest_ratio, "largest ratio of two time steps");
    p.parameter("dtmax", 1.0, "largest time step");
    p.scalar("dt", Some(0.1), "time step").scalar("time", Some(0.0), "time");
    p.scalar("dt_stable", None, "stable time step");
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

/// Returns the next time step.
fn next_dt<'g>(s: &Scope<'g>) -> Expr<'g> {
    s.param("dt_stable").min(s.param("dt") * s.param("dtrise")).min(s.param("dtmax"))
}

/// Sets the gas after the work of the pressure, by the volume that flows out of a cell.
fn pdv_update<'g>(s: &Scope<'g>, total: Expr<'g>, vol: Expr<'g>) {
    let d0 = s.field("density0").here();
    let change = vol / (vol + total);
    let (p, q) = (s.field("pressure").here(), s.field("viscosity").here());
    let de = (p / d0 + q / d0) * total * (1.0 / vol);
    s.set("energy1", s.field("energy0").here() - de);
    s.set("density1", d0 * change);
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

/// Returns the fluxes of mass and energy along an axis; `at` reads a field at a distance along it.
fn cell_flux<'s, 'g>(
    s: &'s Scope<'g>,
    axis: usize,
    at: impl Fn(Field<'s, 'g>, i32) -> Expr<'g>,
) -> [Expr<'g>; 2] {
    let (f, pre) = (at(s.field(&named(s, "vol_flux", axis)), 0), s.field("pre_vol"));
    let (d, e) = (s.field("density1"), s.field("energy1"));
    let upwind =
        |field: Field<'s, 'g>, positive: i32, not: i32| f.gt(0.0).select(at(field, positive), at(field, not));
    let sigma = f.abs() / upwind(pre, -1, 0);
    let (s3, s4) = (1.0 + sigma, 2.0 - sigma);
    let mass = f * limited(|i, j| upwind(d, i, j), s3, s4, sigma);
    let sigma_m = mass.abs() / (upwind(d, -1, 0) * upwind(pre, -1, 0));
    [mass, mass * limited(|i, j| upwind(e, i, j), s3, s4, sigma_m)]
}

fn cell_update(s: &Scope<'_>, axis: usize) {
    let (d, e, pre) = (s.field("density1").here(), s.field("energy1").here(), s.field("pre_vol").here());
    let [m, ef, f] = ["mass_flux", "ener_flux", "vol_flux"].map(|name| s.field(&named(s, name, axis)));
    let pre_mass = d * pre;
    let post_mass = pre_mass + m.along(axis, 0) - m.along(axis, 1);
    s.set("energy1", (e * pre_mass + ef.along(axis, 0) - ef.along(axis, 1)) / post_mass);
    s.set("density1", post_mass / (pre + f.along(axis, 0) - f.along(axis, 1)));
}

/// Advects velocities along an axis.
fn advec_velocities(step: &mut Step<'_>, velocities: &[&str], axis: usize) {
    for velocity in velocities {
        step.stage("momentum flux", |s| momentum_flux(s, velocity, axis));
        step.stage("velocity update", |s| {
            let (v, flux) = (s.field(velocity).here(), s.field(&named(s, "mom_flux", axis)));
            let (pre, post) = (s.field("node_mass_pre").here(), s.field("node_mass_post").here());
            s.set(velocity, (v * pre + flux.along(axis, -1) - flux.along(axis, 0)) / post);
        });
    }
}

fn momentum_flux<'g>(s: &Scope<'g>, velocity: &str, axis: usize) {
    let (f, pre) = (s.field(&named(s, "node_flux", axis)).here(), s.field("node_mass_pre"));
    let (v, w) = (s.field(velocity), width(s, axis));
    let upwind = |field: Field<'_, 'g>, negative: i32, not: i32| {
        f.lt(0.0).select(field.along(axis, negative), field.along(axis, not))
    };
    let sigma = f.abs() / upwind(pre, 1, 0);
    let donor = upwind(v, 1, 0);
    let (uw, dw) = (donor - upwind(v, 2, -1), upwind(v, 0, 1) - donor);
    let wind = dw.le(0.0).select(-1.0, 1.0);
    let third = w * ((2.0 - sigma) * dw.abs() / w + (1.0 + sigma) * uw.abs() / w) / 6.0;
    let slope = wind * third.min(uw.abs()).min(dw.abs());
    let limiter = (uw * dw).gt(0.0).select(slope, 0.0);
    s.set(&named(s, "mom_flux", axis), (donor + (1.0 - sigma) * limiter) * f);
}

/// Makes the gas and the velocities at the end of a step those at the beginning of the next one.
fn reset(step: &mut Step<'_>, velocities: &[&str]) {
    step.stage("reset cells", |s| {
        s.set("density0", s.field("density1").here());
        s.set("energy0", s.field("energy1").here());
    });
    step.stage("reset nodes", |s| {
        for velocity in velocities {
            s.set(&velocity.replace('1', "0"), s.field(velocity).here());
        }
    });
    step.compute("time", |s| s.param("time") + s.param("dt"));
}

/// Takes back the predicted gas, of which only the pressure is kept.
fn revert(s: &Scope<'_>) {
    s.set("density1", s.field("density0").here());
    s.set("energy1", s.field("energy0").here());
}

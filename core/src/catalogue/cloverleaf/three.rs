//! CloverLeaf in three dimensions.

use super::{
    SMALL, advec_velocities, cell_flux, cell_update, ideal_gas, letter, named, next_dt, pdv_update, width,
};
use crate::domain::Boundary;
use crate::error::Result;
use crate::expr::Expr;
use crate::program::{Centring, Definition, Field, Program, Reduction, Scope, Step};

/// Axes of the domain, slowest first.
const Z: usize = 0;
const Y: usize = 1;
const X: usize = 2;

/// The axes in the order in which the formulas name them.
const AXES: [usize; 3] = [X, Y, Z];

/// The velocities that the advection changes.
const VELOCITIES: [&str; 3] = ["xvel1", "yvel1", "zvel1"];

/// Returns the program. Its cycle has two steps: one sweeps x, y, z, the other z, y, x.
///
/// At the sides of z, fluxes of mass along x and y have ghost values that no rule of a boundary gives: the
/// reference fills the sides of one axis after the other, and stops one line early where the ghost values of
/// x or y and of z meet. There it leaves what the sides of x or y showed before. The formulas keep three
/// fields of old or outer fluxes for that, and choose them there (see `seen`).
pub fn cloverleaf_3d() -> Result<Program> {
    let mut p = Definition::new("cloverleaf-3d", 3);
    p.boundary(Boundary::Mirror);
    super::cells(&mut p, [0.2, 0.2, 0.5]);
    super::flows(&mut p, 3, &AXES);
    for (name, axis) in [("mass_flux_x_old", X), ("mass_flux_y_old", Y), ("mass_flux_y_above", Y)] {
        p.field(name, Centring::face(3, axis)).boundary_of(name, &super::normal_to(3, axis));
    }
    for (axis, about) in [(X, "width of a cell along x"), (Y, "along y"), (Z, "along z")] {
        p.parameter(&format!("d{}", letter(3, axis)), 1.0, about);
    }
    for (axis, about) in [(X, "cells along x"), (Y, "cells along y"), (Z, "cells along z")] {
        p.extent(&format!("{}_cells", letter(3, axis)), axis, about);
    }
    super::times(&mut p, 1.05);
    for order in [[X, Y, Z], [Z, Y, X]] {
        let mut step = p.step();
        timestep(&mut step);
        step.stage("PdV predict", |s| pdv(s, true));
        step.stage("ideal gas predict", |s| ideal_gas(s, "density1", "energy1"));
        step.stage("revert", super::revert);
        step.stage("accelerate", accelerate);
        step.stage("PdV correct", |s| pdv(s, false));
        step.stage("flux calc x", |s| flux_calc(s, X));
        step.stage("flux calc y", |s| flux_calc(s, Y));
        step.stage("flux calc z", |s| flux_calc(s, Z));
        for sweep in 0..3 {
            advec_cell(&mut step, &order, sweep);
            advec_mom(&mut step, &order, sweep);
        }
        super::reset(&mut step, &VELOCITIES);
    }
    p.build()
}

/// Returns an offset of these distances along axes.
fn offset(distances: &[(usize, i32)]) -> [i32; 3] {
    let mut offset = [0; 3];
    distances.iter().for_each(|&(axis, distance)| offset[axis] += distance);
    offset
}

/// Returns the other two axes, in the order of [`AXES`].
fn across(axis: usize) -> [usize; 2] {
    match axis {
        X => [Y, Z],
        Y => [X, Z],
        _ => [X, Y],
    }
}

/// Returns the offsets of the four nodes of a cell's low (0) or high (1) face normal to an axis; the earlier
/// of the other axes changes first.
fn face(axis: usize, side: i32) -> [[i32; 3]; 4] {
    let [first, second] = across(axis);
    [[0, 0], [1, 0], [0, 1], [1, 1]].map(|[i, j]| offset(&[(axis, side), (first, i), (second, j)]))
}

/// Returns the sum of terms, added in order.
fn sum<'g>(terms: impl IntoIterator<Item = Expr<'g>>) -> Expr<'g> {
    let sum = terms.into_iter().reduce(|sum, term| sum + term);
    sum.expect("every sum of this file has terms")
}

fn volume<'g>(s: &Scope<'g>) -> Expr<'g> {
    s.param("dx") * s.param("dy") * s.param("dz")
}

/// Returns the area of the faces normal to an axis.
fn area<'g>(s: &Scope<'g>, axis: usize) -> Expr<'g> {
    let [first, second] = across(axis);
    width(s, first) * width(s, second)
}

/// Returns the velocity along an axis at the beginning (0) or the end (1) of the step.
fn velocity<'s, 'g>(s: &'s Scope<'g>, axis: usize, time: usize) -> Field<'s, 'g> {
    s.field(&format!("{}vel{time}", letter(3, axis)))
}

fn viscosity<'g>(s: &Scope<'g>) {
    let gradient = |component: usize, axis: usize| {
        let side = |side: i32| sum(face(axis, side).map(|node| velocity(s, component, 0).at(node)));
        side(1) - side(0)
    };
    let p = |axis: usize, distance: i32| s.field("pressure").along(axis, distance);
    let [dx, dy, dz] = AXES.map(|axis| width(s, axis));
    let [gx, gy, gz] = AXES.map(|axis| gradient(axis, axis));
    let div = (area(s, X) * gx + area(s, Y) * gy) + area(s, Z) * gz;
    let (xx, yy, zz) = (0.25 * gx / dx, 0.25 * gy / dy, 0.25 * gz / dz);
    let xy = 0.25 * gradient(X, Y) / dy + 0.25 * gradient(Y, X) / dx;
    let xz = 0.25 * gradient(X, Z) / dz + 0.25 * gradient(Z, X) / dx;
    let yz = 0.25 * gradient(Y, Z) / dz + 0.25 * gradient(Z, Y) / dy;
    let [px, py, pz] = AXES.map(|axis| (p(axis, 1) - p(axis, -1)) / (width(s, axis) + width(s, axis)));
    let (px2, py2, pz2) = (px * px, py * py, pz * pz);
    let strain = xx * px2 + yy * py2 + zz * pz2 + xy * px * py + xz * px * pz + yz * py * pz;
    let limiter = strain / (px2 + py2 + pz2).max(1e-16);
    // The reference keeps the signs here, but squares and absolute values follow.
    let [px, py, pz] = [px, py, pz].map(|p| s.constant(1e-16).max(p.abs()));
    let pg = (px * px + py * py + pz * pz).sqrt();
    let g = (dx * pg / px).abs().min((dy * pg / py).abs()).min((dz * pg / pz).abs());
    let q = 2.0 * s.field("density0").here() * (g * g) * limiter * limiter;
    s.set("viscosity", limiter.gt(0.0).select(0.0, div.ge(0.0).select(0.0, q)));
}

/// Returns the largest stable time step of a cell.
fn calc_dt<'g>(s: &Scope<'g>) -> Expr<'g> {
    let (ss, q, d) = (s.field("soundspeed").here(), s.field("viscosity").here(), s.field("density0").here());
    let (vol, least) = (volume(s), s.param("dx").min(s.param("dy")).min(s.param("dz")));
    let ds = 1.0 / (least * least);
    let cc = ss * ss;
    let cc = cc + 2.0 * q / d;
    let dtct = 0.75 / (ds * cc).sqrt().max(SMALL);
    let side = |axis: usize, side: i32| {
        let mut nodes = face(axis, side);
        if axis == Z {
            // The reference takes y before x here.
            nodes.swap(1, 2);
        }
        sum(nodes.map(|node| velocity(s, axis, 0).at(node))) * area(s, axis)
    };
    let [(x1, x2), (y1, y2), (z1, z2)] = AXES.map(|axis| (side(axis, 0), side(axis, 1)));
    let dt = |low: Expr<'g>, high: Expr<'g>| 2.0 * vol / low.abs().max(high.abs()).max(1e-5 * vol);
    let div = x2 - x1 + y2 - y1 + z2 - z1;
    let dtdiv = 2.0 * vol / (vol * 1e-5).max(div.abs());
    dtct.min(dt(x1, x2)).min(dt(y1, y2)).min(dt(z1, z2)).min(dtdiv)
}

fn timestep(step: &mut Step<'_>) {
    step.stage("ideal gas", |s| ideal_gas(s, "density0", "energy0"));
    step.stage("viscosity", viscosity);
    step.reduce("dt_stable", Reduction::Min, Centring::CELL, calc_dt);
    step.compute("dt", next_dt);
}

/// Work of the pressure on the cells, by the velocities at the beginning of the step, or by the mean of both.
fn pdv(s: &Scope<'_>, predict: bool) {
    let flux = |axis: usize, side: i32| {
        let nodes = |time: usize| face(axis, side).map(|node| velocity(s, axis, time).at(node));
        let eight = nodes(0).into_iter().chain(nodes(if predict { 0 } else { 1 }));
        let flux = area(s, axis) * sum(eight) * 0.125 * s.param("dt");
        if predict { flux * 0.5 } else { flux }
    };
    let (left, right) = (flux(X, 0), flux(X, 1));
    let (bottom, top) = (flux(Y, 0), flux(Y, 1));
    let (back, front) = (flux(Z, 0), flux(Z, 1));
    pdv_update(s, right - left + top - bottom + front - back, volume(s));
}

fn accelerate<'g>(s: &Scope<'g>) {
    let (d, vol) = (s.field("density0"), volume(s));
    let around = [[-1, -1], [-1, 0], [0, 0], [0, -1]];
    let eight = [0, -1].map(|z| around.map(|[y, x]| d.at([z, y, x]) * vol));
    let mass = sum(eight.into_iter().flatten());
    let quarter = 0.25 * s.param("dt") / (mass * 0.125);
    // The pressure on the four faces around a node, in the reference's order of the axes across.
    let push = |p: Field<'_, 'g>, axis: usize, [first, second]: [usize; 2]| {
        let force = [[0, 0], [-1, 0], [0, -1], [-1, -1]].map(|[i, j]| {
            let high = offset(&[(first, i), (second, j)]);
            let low = offset(&[(first, i), (second, j), (axis, -1)]);
            area(s, axis) * (p.at(high) - p.at(low))
        });
        quarter * sum(force)
    };
    let (p, q) = (s.field("pressure"), s.field("viscosity"));
    for (axis, across) in [(X, [Y, Z]), (Y, [X, Z]), (Z, [Y, X])] {
        let name = format!("{}vel1", letter(3, axis));
        s.set(&name, velocity(s, axis, 0).here() - push(p, axis, across) - push(q, axis, across));
    }
}

fn flux_calc(s: &Scope<'_>, axis: usize) {
    let mut nodes = [face(axis, 0), face(axis, 0)];
    if axis == Z {
        // The reference adds the node at x + 1 twice here, and the one at y + 1 never.
        nodes[0][2] = nodes[0][1];
    }
    let eight = (0..2).flat_map(|time| nodes[time].map(|node| velocity(s, axis, time).at(node)));
    s.set(&named(s, "vol_flux", axis), 0.125 * s.param("dt") * area(s, axis) * sum(eight));
}

/// Returns the volume with what flows out along axes added, in the order of the formula.
fn volume_after<'g>(s: &Scope<'g>, first: Expr<'g>, axes: &[usize]) -> Expr<'g> {
    axes.iter().fold(first, |volume, &axis| {
        let flux = s.field(&named(s, "vol_flux", axis));
        volume + flux.along(axis, 1) - flux.along(axis, 0)
    })
}

/// Advects mass and energy along the axis of a sweep.
fn advec_cell(step: &mut Step<'_>, order: &[usize; 3], sweep: usize) {
    let axis = order[sweep];
    step.stage("cell volume", |s| {
        let pre = match sweep {
            0 => {
                let flux = s.field("vol_flux_x");
                let change = flux.along(X, 1) - flux.along(X, 0);
                volume(s) + volume_after(s, change, &[Y, Z])
            }
            _ => volume_after(s, volume(s), &order[sweep..]),
        };
        s.set("pre_vol", pre);
    });
    if axis != Z {
        // `seen` needs them.
        step.stage("old fluxes", |s| {
            s.set(
                &format!("mass_flux_{}_old", letter(3, axis)),
                s.field(&named(s, "mass_flux", axis)).here(),
            );
        });
    }
    step.stage("cell flux", |s| {
        let [mass, energy] = cell_flux(s, axis, |field, distance| field.along(axis, distance));
        s.set(&named(s, "mass_flux", axis), mass);
        s.set(&named(s, "ener_flux", axis), energy);
        if axis == Y {
            let [mass, _] = cell_flux(s, Y, |field, distance| field.at([1, distance, 0]));
            s.set("mass_flux_y_above", mass);
        }
    });
    step.stage("cell update", |s| cell_update(s, axis));
}

/// Advects the momentum of all velocities along the axis of a sweep.
fn advec_mom(step: &mut Step<'_>, order: &[usize; 3], sweep: usize) {
    let axis = order[sweep];
    let mut later = order[sweep + 1..].to_vec();
    // x before y before z, also in the step that sweeps z first.
    later.sort_unstable_by(|a, b| b.cmp(a));
    if !later.is_empty() {
        step.stage("momentum volume", |s| s.set("post_vol", volume_after(s, volume(s), &later)));
    }
    step.stage("node flux", |s| {
        // The axes from the one that changes last to the one that changes first.
        let (axes, ends): ([usize; 3], [[i32; 2]; 3]) = match axis {
            X => ([Z, X, Y], [[0, -1], [0, 1], [-1, 0]]),
            Y => ([Z, Y, X], [[0, -1], [0, 1], [-1, 0]]),
            _ => ([Y, Z, X], [[0, -1], [0, 1], [-1, 0]]),
        };
        let eight = corners(axes, ends).into_iter().map(|offset| seen(s, axis, offset));
        s.set(&named(s, "node_flux", axis), 0.125 * sum(eight));
    });
    step.stage("node mass", |s| {
        let (d, flux) = (s.field("density1"), s.field(&named(s, "node_flux", axis)));
        let mass = |offset: [i32; 3]| match later.is_empty() {
            false => d.at(offset) * s.field("post_vol").at(offset),
            true => d.at(offset) * volume(s),
        };
        let post = 0.125 * sum(corners([Z, X, Y], [[0, -1], [0, -1], [-1, 0]]).map(mass));
        s.set("node_mass_post", post);
        s.set("node_mass_pre", post - flux.along(axis, -1) + flux.along(axis, 0));
    });
    advec_velocities(step, &VELOCITIES, axis);
}

/// Returns eight offsets, of which the last axis changes first.
fn corners(axes: [usize; 3], ends: [[i32; 2]; 3]) -> [[i32; 3]; 8] {
    [0, 1, 2, 3, 4, 5, 6, 7].map(|i| {
        let end = |place: usize| (axes[place], ends[place][i >> (2 - place) & 1]);
        offset(&[end(0), end(1), end(2)])
    })
}

/// Returns the flux of mass along an axis that the advection of momentum sees at an offset from a node.
///
/// It sees the new flux, by its boundary, but for two lines: beyond the high side of x or y, where they meet
/// the sides of z. There it sees the flux before this sweep; only beyond y and the high side of z does it see
/// the new flux of the plane above the domain, which the reference computes and shows before the mirror of z.
fn seen<'g>(s: &Scope<'g>, axis: usize, offset: [i32; 3]) -> Expr<'g> {
    let new = s.field(&named(s, "mass_flux", axis)).at(offset);
    let [z, ..] = offset;
    if axis == Z || offset[axis] != 1 {
        return new;
    }
    let cells = |axis: usize| s.param(&format!("{}_cells", letter(3, axis)));
    let old = || s.field(&format!("mass_flux_{}_old", letter(3, axis))).at(offset);
    let (side, instead) = match (z, axis) {
        (-1, _) => (s.constant(0.0), old()),
        (_, X) => (cells(Z), old()),
        // The plane above the domain stands where the last one does.
        (_, _) => (cells(Z), s.field("mass_flux_y_above").at([-1, offset[Y], offset[X]])),
    };
    let beyond = s.coord(axis).gt(cells(axis)) * s.coord(Z).eq(side);
    beyond.select(instead, new)
}

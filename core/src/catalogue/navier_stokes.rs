//! Incompressible flow by projection (Chorin, Math. Comput. 22, 1968) on a staggered grid (Harlow & Welch, Phys. Fluids 8, 1965).

use super::Entry;
use super::domain::{declare_extents, extent, mean_at_face};
use super::finite_volume::outflow;
use crate::domain::{Boundary, axis_name};
use crate::error::Result;
use crate::expr::Expr;
use crate::program::{Centring, Definition, Program, Reduction, Scope, Solve, SolveMethod, Step, Wall};

/// The velocities along z, y and x, of which a program has the last ones.
const VELOCITIES: [&str; 3] = ["w", "v", "u"];

/// The same as predicted without the pressure.
const PREDICTED: [&str; 3] = ["w_predicted", "v_predicted", "u_predicted"];

/// Returns the velocity's name along an axis, counted from the slowest.
fn named(names: [&'static str; 3], dimensions: usize, axis: usize) -> &'static str {
    names[3 - dimensions + axis]
}

/// Returns an incompressible flow in a box whose wall at the high side of y slides along x, on 2 or 3 axes: the velocities `u` on
/// the faces of x, `v` on those of y and `w` on those of z, the pressure `p` (over the density) and `solid` in the cells, which is
/// above 0 in obstacles. The box is 1 high; lengths are in its height.
///
/// A step predicts the velocities by differences of second order, solves for the pressure whose gradient removes their divergence,
/// and takes the longest time step that advection, viscosity and Euler's method allow.
///
/// ```
/// use abide_core::catalogue;
///
/// let program = catalogue::navier_stokes(2)?;
/// assert_eq!(program.fields()[..4], ["v", "u", "p", "solid"]);
/// assert!(program.scalar("p_iterations").is_ok());
/// # Ok::<(), abide_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Limit`](crate::Error::Limit) for other numbers of axes.
pub fn navier_stokes(dimensions: usize) -> Result<Program> {
    let mut p = Definition::new("navier-stokes", dimensions);
    p.boundary(Boundary::Mirror);
    declare_extents(&mut p);
    declare_velocities(&mut p, VELOCITIES);
    p.field("p", Centring::CELL).field("solid", Centring::CELL).shown("u");
    declare_velocities(&mut p, PREDICTED);
    p.parameter("lid", 1.0, "velocity of the sliding wall").parameter(
        "viscosity",
        0.01,
        "kinematic viscosity",
    );
    p.parameter("cfl", 0.5, "cells that the flow goes in a step at most");
    p.wall("u", "y+", |s| Wall::dirichlet(s.param("lid")));
    p.scalar("fastest", None, "largest velocity along an axis").scalar("h", None, "width of a cell");
    p.scalar("dt", None, "time step").scalar("time", Some(0.0), "time");
    let mut step = p.step();
    time_step(&mut step, dimensions);
    for axis in 0..dimensions {
        step.stage(&format!("predict {}", named(VELOCITIES, dimensions, axis)), |s| predict(s, axis));
    }
    let how = Solve { method: SolveMethod::Multigrid, tolerance: 1e-6, null_space: true, ..Solve::default() };
    step.solve("p", &how, &|s| around(s), &|s| {
        let divergence =
            (0..s.dimensions()).map(|axis| outflow(s, named(PREDICTED, s.dimensions(), axis), axis));
        let divergence = divergence.reduce(|sum, term| sum + term).unwrap_or_else(|| s.constant(0.0));
        is_open(s, 0, 0) * divergence * (s.param("h") / s.param("dt"))
    });
    for axis in 0..dimensions {
        step.stage(&format!("project {}", named(VELOCITIES, dimensions, axis)), |s| {
            let p = s.field("p");
            let predicted = s.field(named(PREDICTED, s.dimensions(), axis)).here();
            let pressed = (s.param("dt") / s.param("h")) * (p.along(axis, 0) - p.along(axis, -1));
            s.set(named(VELOCITIES, s.dimensions(), axis), flows(s, axis).select(predicted - pressed, 0.0));
        });
    }
    step.compute("time", |s| s.param("time") + s.param("dt"));
    p.build()
}

/// Declares a velocity along each axis, on the faces normal to it: 0 beyond the walls that it goes to, and of the opposite sign beyond
/// those that it goes along.
fn declare_velocities(p: &mut Definition, names: [&'static str; 3]) {
    let dimensions = p.dimensions();
    for axis in 0..dimensions {
        let side = |other: usize| {
            let rule = if other == axis { "constant=0" } else { "-mirror" };
            format!("{}={rule}", axis_name(3 - dimensions + other))
        };
        let name = named(names, dimensions, axis);
        let sides: Vec<String> = (0..dimensions).map(side).collect();
        p.field(name, Centring::face(dimensions, axis)).boundary_of(name, &sides.join(","));
    }
}

/// Finds the longest stable time step.
fn time_step(step: &mut Step<'_>, dimensions: usize) {
    step.reduce("fastest", Reduction::Max, Centring::CELL, |s| {
        let fastest = (0..s.dimensions()).map(|axis| {
            let velocity = s.field(named(VELOCITIES, s.dimensions(), axis));
            velocity.along(axis, 0).abs().max(velocity.along(axis, 1).abs())
        });
        fastest.reduce(|a, b| a.max(b)).unwrap_or_else(|| s.constant(0.0))
    });
    step.compute("h", |s| 1.0 / extent(s, dimensions - 2));
    step.compute("dt", |s| {
        let (h, viscosity) = (s.param("h"), s.param("viscosity"));
        let fastest = s.param("fastest").max(s.param("lid").abs()).max(1e-6);
        let axes = dimensions as f64;
        let by_viscosity = 0.4 / axes * h * h / viscosity;
        let by_euler = 2.0 / axes * viscosity / (fastest * fastest);
        (s.param("cfl") * h / fastest).min(by_viscosity).min(by_euler)
    });
}

/// Returns 1 in a cell so far away along an axis that is no obstacle, else 0.
fn is_open<'g>(s: &Scope<'g>, axis: usize, distance: i32) -> Expr<'g> {
    s.field("solid").along(axis, distance).gt(0.0).select(s.constant(0.0), s.constant(1.0))
}

/// Returns whether something flows through a face normal to an axis: it lies between two cells of the flow.
fn flows<'g>(s: &Scope<'g>, axis: usize) -> Expr<'g> {
    let index = s.coord(axis);
    let is_inside = index.gt(0.0) * index.lt(extent(s, axis));
    is_inside * is_open(s, axis, -1) * is_open(s, axis, 0)
}

/// Predicts the velocity along an axis by advection and viscosity.
fn predict(s: &Scope<'_>, axis: usize) {
    let dimensions = s.dimensions();
    let own = s.field(named(VELOCITIES, dimensions, axis));
    let h = s.param("h");
    let (mut advection, mut viscous) = (s.constant(0.0), s.constant(0.0));
    for other in 0..dimensions {
        let [low, high] = [-1, 1].map(|distance| own.along(other, distance));
        let through = match other == axis {
            true => own.here(),
            false => mean_at_face(s, named(VELOCITIES, dimensions, other), axis, other),
        };
        advection = advection + through * (high - low);
        viscous = viscous + (low - 2.0 * own.here() + high);
    }
    let change = s.param("viscosity") / (h * h) * viscous - 0.5 / h * advection;
    let predicted = own.here() + s.param("dt") * change;
    s.set(named(PREDICTED, dimensions, axis), flows(s, axis).select(predicted, 0.0));
}

/// Returns the differences of the pressure to the cells around that flow joins to this one, added up.
fn around<'g>(s: &Scope<'g>) -> Expr<'g> {
    let p = s.field("p");
    let mut sum = s.constant(0.0);
    for (axis, distance) in (0..s.dimensions()).flat_map(|axis| [(axis, -1), (axis, 1)]) {
        sum = sum + is_open(s, axis, distance) * (p.along(axis, distance) - p.here());
    }
    is_open(s, 0, 0) * sum
}

/// The model of incompressible flow.
pub(super) const ENTRIES: &[Entry] = &[Entry {
    name: "navier-stokes",
    about: "incompressible flow in a box with a sliding wall, around obstacles: a system for the pressure in each step",
    dimensions: 2..=3,
    make: |dimensions| Ok(Box::new(navier_stokes(dimensions)?)),
}];

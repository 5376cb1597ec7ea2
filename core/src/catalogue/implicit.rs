//! Models whose time steps solve linear systems, so that stability does not limit them.

use super::Entry;
use super::domain::{declare_extents, extent, mean_at_face};
use super::finite_volume::ratio;
use crate::domain::Boundary;
use crate::error::Result;
use crate::expr::Expr;
use crate::program::{Centring, Definition, Program, Scope, Solve, Start};

/// Returns heat in a material on 1 to 3 axes, by the implicit Euler method: the fields `u` (temperature) and `k` (conductivity over
/// heat capacity). The flux through a face is by the mean of both conductivities.
/// Nothing flows through the sides unless a run gives them other conditions.
///
/// ```
/// use abide_core::catalogue;
///
/// assert!(catalogue::heat_implicit(3)?.scalar("u_iterations").is_ok());
/// # Ok::<(), abide_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Limit`](crate::Error::Limit) for other numbers of axes.
pub fn heat_implicit(dimensions: usize) -> Result<Program> {
    let mut p = Definition::new("heat-implicit", dimensions);
    p.boundary(Boundary::Mirror).field("u", Centring::CELL).field("k", Centring::CELL);
    p.start("u", Start::Gaussian).start("k", Start::Constant(1.0));
    p.parameter("dx", 1.0, "width of a cell").parameter("dt", 10.0, "time step");
    p.scalar("time", Some(0.0), "time");
    let mut step = p.step();
    let how = Solve { tolerance: 1e-6, ..Solve::default() };
    step.solve(
        "u",
        &how,
        &|s| {
            let (u, k) = (s.field("u"), s.field("k"));
            let mut flux = s.constant(0.0);
            for (axis, distance) in (0..s.dimensions()).flat_map(|axis| [(axis, -1), (axis, 1)]) {
                let face = 0.5 * (k.here() + k.along(axis, distance));
                flux = flux + face * (u.along(axis, distance) - u.here());
            }
            u.here() - s.param("dt") / (s.param("dx") * s.param("dx")) * flux
        },
        &|s| s.field("u").here(),
    );
    step.compute("time", |s| s.param("time") + s.param("dt"));
    p.build()
}

/// Returns long waves on a sea that rotates, with an implicit free surface (backward Euler), so that a time step may be many times
/// as long as a wave takes for a cell: the fields `u` and `v` (velocities on faces), `level` (of the surface) and `depth` (of the sea
/// at rest; land where it is 0).
///
/// ```
/// use abide_core::catalogue;
///
/// assert!(catalogue::ocean_surface()?.scalar("level_iterations").is_ok());
/// # Ok::<(), abide_core::Error>(())
/// ```
///
/// # Errors
///
/// None: the definition is complete.
pub fn ocean_surface() -> Result<Program> {
    let mut p = Definition::new("ocean-surface", 2);
    p.boundary(Boundary::Mirror);
    declare_extents(&mut p);
    p.field("level", Centring::CELL).field("depth", Centring::CELL);
    for (axis, [name, turned], sides) in
        [(0, ["v", "v_turned"], "y=constant=0,x=mirror"), (1, ["u", "u_turned"], "x=constant=0,y=mirror")]
    {
        for name in [name, turned] {
            p.field(name, Centring::face(2, axis)).boundary_of(name, sides);
        }
    }
    p.start("level", Start::Gaussian).start("depth", Start::Constant(1.0));
    p.parameter("gravity", 9.81, "acceleration of gravity").parameter(
        "coriolis",
        0.0,
        "twice the rate of rotation",
    );
    p.parameter("dx", 1.0, "width of a cell").parameter("dt", 5.0, "time step");
    p.scalar("time", Some(0.0), "time");
    let mut step = p.step();
    for (axis, [name, turned, other], sign) in
        [(1, ["u", "u_turned", "v"], 1.0), (0, ["v", "v_turned", "u"], -1.0)]
    {
        step.stage(turned, |s| {
            let mean = mean_at_face(s, other, axis, 1 - axis);
            let moved = s.field(name).here() + sign * s.param("dt") * s.param("coriolis") * mean;
            s.set(turned, depth(s, axis).gt(0.0).select(moved, 0.0));
        });
    }
    let how = Solve { tolerance: 1e-6, ..Solve::default() };
    step.solve(
        "level",
        &how,
        &|s| {
            let (level, ratio) = (s.field("level"), ratio(s));
            let mut flux = s.constant(0.0);
            for axis in 0..2 {
                let [low, high] = [-1, 1].map(|distance| level.along(axis, distance) - level.here());
                flux = flux + depth(s, axis) * low + s.shifted(depth(s, axis), axis, 1) * high;
            }
            level.here() - s.param("gravity") * ratio * ratio * flux
        },
        &|s| {
            let mut outflow = s.constant(0.0);
            for (axis, turned) in [(0, "v_turned"), (1, "u_turned")] {
                let through = depth(s, axis) * s.field(turned).along(axis, 0);
                outflow = outflow + (s.shifted(through, axis, 1) - through);
            }
            s.field("level").here() - ratio(s) * outflow
        },
    );
    for (axis, name, turned) in [(1, "u", "u_turned"), (0, "v", "v_turned")] {
        step.stage(name, |s| {
            let level = s.field("level");
            let fall = s.param("gravity") * ratio(s) * (level.along(axis, 0) - level.along(axis, -1));
            s.set(name, depth(s, axis).gt(0.0).select(s.field(turned).here() - fall, 0.0));
        });
    }
    step.compute("time", |s| s.param("time") + s.param("dt"));
    p.build()
}

/// Returns the depth at a face normal to an axis: the mean of both cells', and 0 beside land and at the sides.
fn depth<'g>(s: &Scope<'g>, axis: usize) -> Expr<'g> {
    let [before, behind] = [-1, 0].map(|distance| s.field("depth").along(axis, distance));
    let index = s.coord(axis);
    let is_sea = index.gt(0.0) * index.lt(extent(s, axis)) * before.gt(0.0) * behind.gt(0.0);
    is_sea.select(0.5 * (before + behind), 0.0)
}

/// The models with implicit steps.
pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "heat-implicit",
        about: "heat in a material by implicit steps: a system for the temperature in each",
        dimensions: 1..=3,
        make: |dimensions| Ok(Box::new(heat_implicit(dimensions)?)),
    },
    Entry {
        name: "ocean-surface",
        about: "long waves on a rotating sea, with steps far longer than a wave takes for a cell",
        dimensions: 2..=2,
        make: |_| Ok(Box::new(ocean_surface()?)),
    },
];

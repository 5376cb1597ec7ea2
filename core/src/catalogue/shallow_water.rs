//! The shallow-water equations over an uneven bed, with shores.
//!
//! The scheme is of second order in space and time: limited slopes, the HLL flux (Harten, Lax & van Leer, SIAM Rev. 25,
//! 1983), and Heun's method. The bed enters by the hydrostatic reconstruction of Audusse et al. (SIAM J. Sci. Comput. 25,
//! 2004): water at rest stays at rest, to the last bit, and no depth becomes negative.

use super::Entry;
use super::finite_volume::{
    LETTERS, VELOCITIES, advance, minmod, outflows, ratio, sides, slope, time_step, times,
};
use crate::domain::Boundary;
use crate::error::Result;
use crate::expr::Expr;
use crate::program::{Centring, Definition, Program, Scope, Start, Step};

/// The depth in m below which water does not flow.
const DRY: f64 = 1e-5;

/// The state: the water's level, and the discharge along each axis.
const STATE: [&str; 3] = ["level", "hu", "hv"];

/// The state after the first stage of Heun's method.
const PREDICTED: [&str; 3] = ["level1", "hu1", "hv1"];

/// Returns the shallow-water equations in a basin with walls: the fields `level` (of the water's surface), `hu` and `hv`
/// (depth times velocity) and `bed` (the ground's height).
///
/// Land is where `bed` is above the water: its `level` becomes that of the bed. The default start is a dam that breaks
/// beside an island. Lengths are in m, times in s.
///
/// ```
/// use abide_core::catalogue;
///
/// let program = catalogue::shallow_water()?;
/// assert_eq!(program.fields(), ["level", "hu", "hv", "bed"]);
/// # Ok::<(), abide_core::Error>(())
/// ```
///
/// # Errors
///
/// None: the definition is complete.
pub fn shallow_water() -> Result<Program> {
    let mut p = Definition::new("shallow-water", 2);
    p.boundary(Boundary::Mirror);
    for name in STATE.into_iter().chain(["bed"]) {
        p.field(name, Centring::CELL);
    }
    p.boundary_of("hu", "x=-mirror").boundary_of("hv", "y=-mirror");
    p.start("level", Start::Corner { inside: 1.2, outside: 0.6, parts: [1.0, 1.0, 0.25] });
    p.start("hu", Start::Constant(0.0)).start("hv", Start::Constant(0.0)).start("bed", Start::Gaussian);
    for name in ["surface", "depth", "u", "v"].into_iter().chain(PREDICTED) {
        p.temporary(name, Centring::CELL);
    }
    for (axis, letter) in LETTERS.into_iter().enumerate() {
        for name in ["mass", "before", "behind", "across"] {
            p.temporary(&format!("{name}_{letter}"), Centring::face(2, axis));
        }
    }
    p.parameter("gravity", 9.81, "acceleration of gravity in m/s²");
    times(&mut p, 0.25);
    let mut step = p.step();
    water(&mut step, STATE);
    time_step(&mut step, |s| celerity(s, s.field("depth").here()));
    fluxes(&mut step);
    step.stage("predict", |s| {
        for (name, value) in PREDICTED.into_iter().zip(advanced(s, STATE)) {
            s.set(name, value);
        }
    });
    water(&mut step, PREDICTED);
    fluxes(&mut step);
    step.stage("correct", |s| {
        let before =
            [s.field("level").here().max(s.field("bed").here()), s.field("hu").here(), s.field("hv").here()];
        for ((name, before), value) in STATE.into_iter().zip(before).zip(advanced(s, PREDICTED)) {
            s.set(name, 0.5 * (before + value));
        }
    });
    advance(&mut step);
    p.build()
}

/// Finds the water of a state: the height of its surface, or of the land; its depth and velocities.
fn water(step: &mut Step<'_>, [level, hu, hv]: [&str; 3]) {
    step.stage("water", |s| {
        let bed = s.field("bed").here();
        let surface = s.field(level).here().max(bed);
        let depth = surface - bed;
        s.set("surface", surface);
        s.set("depth", depth);
        for (name, discharge) in ["u", "v"].into_iter().zip([hu, hv]) {
            let velocity = s.field(discharge).here() / depth.max(DRY);
            s.set(name, depth.gt(DRY).select(velocity, 0.0));
        }
    });
}

fn fluxes(step: &mut Step<'_>) {
    step.stage("fluxes x", |s| flux(s, 1)).stage("fluxes y", |s| flux(s, 0));
}

/// Returns the speed of waves on water of a depth.
fn celerity<'g>(s: &Scope<'g>, depth: Expr<'g>) -> Expr<'g> {
    (s.param("gravity") * depth).sqrt()
}

/// Sets the fluxes through the faces normal to an axis: of mass, of the momentum along the axis less the pressure of the
/// cell before the face and less that of the cell behind it, and of the momentum across.
fn flux<'g>(s: &Scope<'g>, axis: usize) {
    let of = |name: &str| sides(s.field(name), axis, minmod);
    let (surface, depth, [ul, ur]) = (of("surface"), of("depth"), of(VELOCITIES[axis]));
    // Water flows where its surface is above the bed at both sides.
    let bed = (surface[0] - depth[0]).max(surface[1] - depth[1]);
    let [hl, hr] = surface.map(|surface| (surface - bed).max(0.0));
    let [cl, cr] = [hl, hr].map(|depth| celerity(s, depth));
    let [pl, pr] = [hl, hr].map(|depth| 0.5 * s.param("gravity") * depth * depth);
    let sl = (ul - cl).min(ur - cr).min(0.0);
    let sr = (ul + cl).max(ur + cr).max(0.0);
    let width = (sr - sl).max(1e-12);
    // HLL's flux from the fluxes of both sides, and from both sides' densities.
    let hll = |fl: Expr<'g>, fr: Expr<'g>, dl: Expr<'g>, dr: Expr<'g>| {
        (sr * fl - sl * fr + sl * sr * (dr - dl)) / width
    };
    let [ql, qr] = [hl * ul, hr * ur];
    let mass = hll(ql, qr, hl, hr);
    let before = hll(ql * ul, qr * ur + (pr - pl), ql, qr);
    let [tl, tr] = of(VELOCITIES[1 - axis]);
    for (name, value) in [
        ("mass", mass),
        ("before", before),
        ("behind", before - (pr - pl)),
        ("across", mass * mass.gt(0.0).select(tl, tr)),
    ] {
        s.set(&format!("{name}_{}", LETTERS[axis]), value);
    }
}

/// Returns the state after a step of Euler's method.
fn advanced<'g>(s: &Scope<'g>, [_, hu, hv]: [&str; 3]) -> [Expr<'g>; 3] {
    let momentum = |name: &str, axis: usize| {
        let [along, across] = [axis, 1 - axis].map(|axis| LETTERS[axis]);
        // The cell lies before its high face and behind its low one.
        let normal = s.field(&format!("before_{along}")).along(axis, 1)
            - s.field(&format!("behind_{along}")).along(axis, 0);
        let tangential = super::finite_volume::outflow(s, &format!("across_{across}"), 1 - axis);
        let fall = s.param("gravity") * s.field("depth").here() * slope(s.field("surface"), axis, minmod);
        s.field(name).here() - ratio(s) * (normal + tangential + fall)
    };
    [s.field("surface").here() - ratio(s) * outflows(s, "mass"), momentum(hu, 1), momentum(hv, 0)]
}

/// The model of shallow water.
pub(super) const ENTRIES: &[Entry] = &[Entry {
    name: "shallow-water",
    about: "shallow water in a basin: a dam that breaks beside an island, with wet and dry ground",
    dimensions: 2..=2,
    make: |_| Ok(Box::new(shallow_water()?)),
}];

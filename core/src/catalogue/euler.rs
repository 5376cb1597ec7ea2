//! The Euler equations of a gas in two dimensions.
//!
//! The scheme is of second order in space and third in time: limited slopes of density, velocities and pressure, the HLLC
//! flux (Toro, Spruce & Speares, Shock Waves 4, 1994), and the Runge–Kutta method of Shu and Osher (J. Comput. Phys. 77,
//! 1988).

use super::Entry;
use super::finite_volume::{
    LETTERS, VELOCITIES, advance, outflows, ratio, sides, time_step, times, van_leer,
};
use crate::domain::Boundary;
use crate::error::Result;
use crate::expr::Expr;
use crate::program::{Centring, Definition, Program, Scope, Start, Step};

/// The state: density, momentum along each axis, and total energy, all per volume.
const STATE: [&str; 4] = ["rho", "mx", "my", "energy"];

/// The state after a stage of the Runge–Kutta method.
const STAGE: [&str; 4] = ["rho1", "mx1", "my1", "energy1"];

/// Returns the Euler equations: the fields `rho`, `mx`, `my` (density times velocity) and `energy` (per volume, inner and
/// kinetic).
///
/// The default start has two streams of unequal density that pass each other, at a pressure of 2.5, with a small random
/// velocity across: the layers between them roll up (Kelvin–Helmholtz).
///
/// ```
/// use abide_core::catalogue;
///
/// let program = catalogue::euler()?;
/// assert_eq!(program.fields(), ["rho", "mx", "my", "energy"]);
/// # Ok::<(), abide_core::Error>(())
/// ```
///
/// # Errors
///
/// None: the definition is complete.
pub fn euler() -> Result<Program> {
    let mut p = Definition::new("euler", 2);
    p.boundary(Boundary::Periodic);
    for name in STATE {
        p.field(name, Centring::CELL);
    }
    // Velocities of 0.5 and -0.5 in halves of y.
    let halves = |inside, outside| Start::Corner { inside, outside, parts: [1.0, 0.5, 1.0] };
    p.start("rho", halves(2.0, 1.0)).start("mx", halves(1.0, -0.5));
    p.start("my", Start::Random { seed: 6, low: -0.1, high: 0.1 });
    p.start("energy", halves(6.5, 6.375));
    for name in STAGE.into_iter().chain(["u", "v", "pressure"]) {
        p.temporary(name, Centring::CELL);
    }
    for (axis, letter) in LETTERS.into_iter().enumerate() {
        for name in STATE {
            p.temporary(&format!("{name}_{letter}"), Centring::face(2, axis));
        }
    }
    p.parameter("gamma", 1.4, "ratio of specific heats");
    times(&mut p, 0.4);
    let mut step = p.step();
    gas(&mut step, STATE);
    time_step(&mut step, |s| sound(s, s.field("rho").here(), s.field("pressure").here()));
    for (number, name) in ["first", "second", "third"].into_iter().enumerate() {
        let from = if number == 0 { STATE } else { STAGE };
        if number > 0 {
            gas(&mut step, from);
        }
        step.stage("fluxes x", |s| flux(s, from[0], 1)).stage("fluxes y", |s| flux(s, from[0], 0));
        step.stage(name, |s| {
            for (part, state) in STATE.into_iter().enumerate() {
                let (before, now) = (s.field(state).here(), s.field(from[part]).here());
                let next = now - ratio(s) * outflows(s, state);
                match number {
                    0 => s.set(STAGE[part], next),
                    1 => s.set(STAGE[part], 0.75 * before + 0.25 * next),
                    _ => s.set(state, (before + 2.0 * next) / 3.0),
                }
            }
        });
    }
    advance(&mut step);
    p.build()
}

/// Finds the velocities and the pressure of a state.
fn gas(step: &mut Step<'_>, state: [&str; 4]) {
    step.stage("gas", |s| {
        let [density, mx, my, energy] = state.map(|name| s.field(name).here());
        let (u, v) = (mx / density, my / density);
        s.set("u", u);
        s.set("v", v);
        s.set("pressure", (s.param("gamma") - 1.0) * (energy - 0.5 * density * (u * u + v * v)));
    });
}

/// Returns the speed of sound.
fn sound<'g>(s: &Scope<'g>, density: Expr<'g>, pressure: Expr<'g>) -> Expr<'g> {
    (s.param("gamma") * pressure / density).sqrt()
}

/// One side of a face: density, velocities along the axis and across it, and pressure.
#[derive(Clone, Copy)]
struct Side<'g> {
    density: Expr<'g>,
    along: Expr<'g>,
    across: Expr<'g>,
    pressure: Expr<'g>,
}

impl<'g> Side<'g> {
    /// Returns the flux of mass, of momentum along and across, and of energy: that of the side, and the same behind the
    /// wave of speed `wave` that runs into the side, where the gas moves with speed `contact`.
    fn fluxes(self, s: &Scope<'g>, wave: Expr<'g>, contact: Expr<'g>) -> [[Expr<'g>; 2]; 4] {
        let Side { density, along, across, pressure } = self;
        let kinetic = 0.5 * density * (along * along + across * across);
        let energy = pressure / (s.param("gamma") - 1.0) + kinetic;
        let mass = density * along;
        let flux = [mass, mass * along + pressure, mass * across, along * (energy + pressure)];
        let squeezed = density * (wave - along) / (wave - contact);
        let work = (contact - along) * (contact + pressure / (density * (wave - along)));
        let inner = [squeezed, squeezed * contact, squeezed * across, squeezed * (energy / density + work)];
        let own = [density, mass, density * across, energy];
        std::array::from_fn(|part| [flux[part], flux[part] + wave * (inner[part] - own[part])])
    }
}

/// Sets the fluxes through the faces normal to an axis.
fn flux(s: &Scope<'_>, density: &str, axis: usize) {
    let [densities, along, across, pressures] = [density, VELOCITIES[axis], VELOCITIES[1 - axis], "pressure"]
        .map(|name| sides(s.field(name), axis, van_leer));
    let [l, r] = [0, 1].map(|side| Side {
        density: densities[side],
        along: along[side],
        across: across[side],
        pressure: pressures[side],
    });
    let [cl, cr] = [l, r].map(|side| sound(s, side.density, side.pressure));
    let sl = (l.along - cl).min(r.along - cr);
    let sr = (l.along + cl).max(r.along + cr);
    // The mass per time and area that each wave takes in.
    let (ml, mr) = (l.density * (sl - l.along), r.density * (sr - r.along));
    let contact = (r.pressure - l.pressure + ml * l.along - mr * r.along) / (ml - mr);
    let (left, right) = (l.fluxes(s, sl, contact), r.fluxes(s, sr, contact));
    // Along x, the momentum along is `mx`.
    let names = if axis == 1 { STATE } else { ["rho", "my", "mx", "energy"] };
    for (part, name) in names.into_iter().enumerate() {
        let ([fl, inner_l], [fr, inner_r]) = (left[part], right[part]);
        let inner = contact.ge(0.0).select(inner_l, sr.gt(0.0).select(inner_r, fr));
        s.set(&format!("{name}_{}", LETTERS[axis]), sl.ge(0.0).select(fl, inner));
    }
}

/// The model of a gas.
pub(super) const ENTRIES: &[Entry] = &[Entry {
    name: "euler",
    about: "the Euler equations of a gas: two streams whose layers roll up (Kelvin–Helmholtz)",
    dimensions: 2..=2,
    make: |_| Ok(Box::new(euler()?)),
}];

//! The flow in a cavity below a moving lid, by the lattice Boltzmann method on nine velocities (D2Q9).
//!
//! Collisions follow Bhatnagar, Gross and Krook, with the equilibrium of Qian, d'Humières & Lallemand (Europhys. Lett. 17,
//! 1992). Walls stand half a cell beyond the outermost cells and bounce populations back; the lid adds its momentum (Ladd,
//! J. Fluid Mech. 271, 1994).

use super::Entry;
use crate::error::Result;
use crate::expr::Expr;
use crate::program::{Centring, Definition, Program, Scope, Start};

/// The velocities of the populations, in cells a step: along y, which points down, and along x.
const VELOCITIES: [[i32; 2]; 9] =
    [[0, 0], [0, 1], [1, 0], [0, -1], [-1, 0], [1, 1], [1, -1], [-1, -1], [-1, 1]];

/// Returns the weight of a population at rest.
fn weight(velocity: [i32; 2]) -> f64 {
    match velocity[0].abs() + velocity[1].abs() {
        0 => 4.0 / 9.0,
        1 => 1.0 / 9.0,
        _ => 1.0 / 36.0,
    }
}

/// Returns the number of the population with the opposite velocity.
fn opposite([y, x]: [i32; 2]) -> usize {
    VELOCITIES.iter().position(|&velocity| velocity == [-y, -x]).unwrap_or(0)
}

/// Returns the lid-driven cavity: the nine populations `f`, and the `speed` of the flow.
///
/// The lid closes the low side of y, the upper one in pictures, and moves along x. All is in units of cells and steps.
/// Reynolds' number is `lid` · cells / `nu`.
///
/// ```
/// use abide_core::catalogue;
///
/// let program = catalogue::lbm_cavity()?;
/// assert_eq!(program.fields().len(), 10);
/// # Ok::<(), abide_core::Error>(())
/// ```
///
/// # Errors
///
/// None: the definition is complete.
pub fn lbm_cavity() -> Result<Program> {
    let mut p = Definition::new("lbm-cavity", 2);
    p.boundaries("clamp");
    p.components("f", VELOCITIES.len(), Centring::CELL);
    for (number, velocity) in VELOCITIES.into_iter().enumerate() {
        p.start(&format!("f[{number}]"), Start::Constant(weight(velocity)));
    }
    p.field("speed", Centring::CELL).start("speed", Start::Constant(0.0)).shown("speed");
    p.parameter("nu", 0.02, "viscosity in cells² a step; stable above 0");
    p.parameter("lid", 0.1, "speed of the lid in cells a step, well below the speed of sound, 0.58");
    p.derived("omega", "part of the way to equilibrium of a collision", |s| {
        1.0 / (3.0 * s.param("nu") + 0.5)
    });
    p.extent("height", 0, "cells along y").extent("width", 1, "cells along x");
    p.step().stage("stream and collide", |s| {
        let f: Vec<Expr<'_>> = (0..VELOCITIES.len()).map(|number| streamed(s, number)).collect();
        collide(s, &f);
    });
    p.build()
}

/// Returns whether a population came from beyond the walls along an axis, as 1 or 0; `None` if it never does.
fn is_beyond<'g>(s: &Scope<'g>, axis: usize, velocity: i32) -> Option<Expr<'g>> {
    let at = s.coord(axis);
    match velocity {
        0 => None,
        1 => Some(at.eq(0.0)),
        _ => Some(at.eq(s.param(["height", "width"][axis]) - 1.0)),
    }
}

/// Returns a population that arrives in the cell: its neighbour's, or what a wall bounced back.
fn streamed<'g>(s: &Scope<'g>, number: usize) -> Expr<'g> {
    let [y, x] = VELOCITIES[number];
    let walls = [is_beyond(s, 0, y), is_beyond(s, 1, x)];
    let mut back = s.component("f", opposite([y, x])).here();
    if let ([Some(lid), _], 1, 1 | -1) = (walls, y, x) {
        back = back + lid * (6.0 * weight([y, x]) * f64::from(x)) * s.param("lid");
    }
    let arrived = s.component("f", number).at([-y, -x]);
    match walls.into_iter().flatten().reduce(Expr::max) {
        Some(wall) => wall.select(back, arrived),
        None => arrived,
    }
}

/// Sets the populations after a collision, and the speed.
fn collide<'g>(s: &Scope<'g>, f: &[Expr<'g>]) {
    let density = s.sum(0..f.len(), |number| f[number]);
    let velocity = [0, 1].map(|axis| {
        let moving = |sign: i32| {
            let those = (0..f.len()).filter(move |&number| VELOCITIES[number][axis] == sign);
            those.map(|number| f[number]).reduce(|sum, next| sum + next).unwrap_or_else(|| s.constant(0.0))
        };
        (moving(1) - moving(-1)) / density
    });
    let squared = velocity[0] * velocity[0] + velocity[1] * velocity[1];
    let base = 1.0 - 1.5 * squared;
    for (number, own) in VELOCITIES.into_iter().enumerate() {
        let along = (0..2).filter(|&axis| own[axis] != 0);
        let along = along.map(|axis| if own[axis] > 0 { velocity[axis] } else { -velocity[axis] });
        let polynomial = match along.reduce(|sum, next| sum + next) {
            Some(along) => base + 3.0 * along + 4.5 * along * along,
            None => base,
        };
        let equilibrium = weight(own) * density * polynomial;
        s.set_component("f", number, f[number] + s.param("omega") * (equilibrium - f[number]));
    }
    s.set("speed", squared.sqrt());
}

/// The model of the cavity.
pub(super) const ENTRIES: &[Entry] = &[Entry {
    name: "lbm-cavity",
    about: "flow in a cavity below a moving lid, by the lattice Boltzmann method (D2Q9)",
    dimensions: 2..=2,
    make: |_| Ok(Box::new(lbm_cavity()?)),
}];

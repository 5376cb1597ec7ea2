//! The flow in a cavity below a moving lid, by the lattice Boltzmann method on nine velocities in two dimensions (D2Q9) and
//! on nineteen in three (D3Q19).
//!
//! Collisions follow Bhatnagar, Gross and Krook, with the equilibria of Qian, d'Humières & Lallemand (Europhys. Lett. 17,
//! 1992). Walls stand half a cell beyond the outermost cells and bounce populations back; the lid adds its momentum (Ladd,
//! J. Fluid Mech. 271, 1994).

use super::Entry;
use super::domain::{declare_extents, extent};
use crate::error::Result;
use crate::expr::Expr;
use crate::program::{Centring, Definition, Program, Scope, Start};

/// A lattice: the velocities of its populations, and their weights.
#[derive(Clone, Copy)]
struct Lattice<const D: usize> {
    /// In cells a step, slowest axis first; at rest first.
    velocities: &'static [[i32; D]],
    /// Of a population at rest, and of those that move along one axis and along two.
    weights: [f64; 3],
}

const D2Q9: Lattice<2> = Lattice {
    velocities: &[[0, 0], [0, 1], [1, 0], [0, -1], [-1, 0], [1, 1], [1, -1], [-1, -1], [-1, 1]],
    weights: [4.0 / 9.0, 1.0 / 9.0, 1.0 / 36.0],
};

#[rustfmt::skip]
const D3Q19: Lattice<3> = Lattice {
    velocities: &[
        [0, 0, 0],
        [0, 0, 1], [0, 0, -1], [0, 1, 0], [0, -1, 0], [1, 0, 0], [-1, 0, 0],
        [0, 1, 1], [0, 1, -1], [0, -1, 1], [0, -1, -1],
        [1, 0, 1], [1, 0, -1], [-1, 0, 1], [-1, 0, -1],
        [1, 1, 0], [1, -1, 0], [-1, 1, 0], [-1, -1, 0],
    ],
    weights: [1.0 / 3.0, 1.0 / 18.0, 1.0 / 36.0],
};

/// Returns the lid-driven cavity in two dimensions: the nine populations `f`, and the `speed` of the flow.
///
/// The lid closes the low side of y, the upper one in pictures, and moves along x. All is in units of cells and steps.
/// Reynolds' number is `lid` · cells / `nu`.
///
/// ```
/// use abide_core::catalogue;
///
/// let program = catalogue::lbm_d2q9()?;
/// assert_eq!(program.fields().len(), 10);
/// # Ok::<(), abide_core::Error>(())
/// ```
///
/// # Errors
///
/// None: the definition is complete.
pub fn lbm_d2q9() -> Result<Program> {
    D2Q9.cavity("lbm-d2q9")
}

/// Returns the lid-driven cavity in three dimensions: the nineteen populations `f`, and the `speed` of the flow.
///
/// As in [`lbm_d2q9`], the lid closes the low side of y and moves along x. The other five sides are walls at rest.
///
/// ```
/// use abide_core::catalogue;
///
/// let program = catalogue::lbm_d3q19()?;
/// assert_eq!(program.fields().len(), 20);
/// # Ok::<(), abide_core::Error>(())
/// ```
///
/// # Errors
///
/// None: the definition is complete.
pub fn lbm_d3q19() -> Result<Program> {
    D3Q19.cavity("lbm-d3q19")
}

impl<const D: usize> Lattice<D> {
    /// The axis across the lid.
    const Y: usize = D - 2;
    /// The axis along which the lid moves.
    const X: usize = D - 1;

    fn cavity(self, name: &str) -> Result<Program> {
        let mut p = Definition::new(name, D);
        p.boundaries("clamp");
        p.components("f", self.velocities.len(), Centring::CELL);
        for (number, &velocity) in self.velocities.iter().enumerate() {
            p.start(&format!("f[{number}]"), Start::Constant(self.weight(velocity)));
        }
        p.field("speed", Centring::CELL).start("speed", Start::Constant(0.0)).shown("speed");
        p.parameter("nu", 0.02, "viscosity in cells² a step; stable above 0");
        p.parameter("lid", 0.1, "speed of the lid in cells a step, well below the speed of sound, 0.58");
        p.derived("omega", "part of the way to equilibrium of a collision", |s| {
            1.0 / (3.0 * s.param("nu") + 0.5)
        });
        declare_extents(&mut p);
        p.step().stage("stream and collide", |s| {
            let f: Vec<Expr<'_>> =
                (0..self.velocities.len()).map(|number| self.streamed(s, number)).collect();
            self.collide(s, &f);
        });
        p.build()
    }

    /// Returns the weight of a population.
    fn weight(self, velocity: [i32; D]) -> f64 {
        self.weights[velocity.into_iter().filter(|&along| along != 0).count()]
    }

    /// Returns the number of the population with the opposite velocity.
    fn opposite(self, velocity: [i32; D]) -> usize {
        let opposite = velocity.map(|along| -along);
        self.velocities.iter().position(|&velocity| velocity == opposite).unwrap_or(0)
    }

    /// Returns a population that arrives in the cell: its neighbour's, or what a wall bounced back.
    fn streamed<'g>(self, s: &Scope<'g>, number: usize) -> Expr<'g> {
        let velocity = self.velocities[number];
        let walls: [_; D] = std::array::from_fn(|axis| is_beyond(s, axis, velocity[axis]));
        let mut back = s.component("f", self.opposite(velocity)).here();
        if let (Some(lid), 1, 1 | -1) = (walls[Self::Y], velocity[Self::Y], velocity[Self::X]) {
            let momentum = 6.0 * self.weight(velocity) * f64::from(velocity[Self::X]);
            back = back + lid * momentum * s.param("lid");
        }
        let arrived = s.component("f", number).at(velocity.map(|along| -along));
        match walls.into_iter().flatten().reduce(Expr::max) {
            Some(wall) => wall.select(back, arrived),
            None => arrived,
        }
    }

    /// Sets the populations after a collision, and the speed.
    fn collide<'g>(self, s: &Scope<'g>, f: &[Expr<'g>]) {
        let density = s.sum(0..f.len(), |number| f[number]);
        let velocity: [_; D] = std::array::from_fn(|axis| {
            let moving = |sign: i32| {
                let those = (0..f.len()).filter(move |&number| self.velocities[number][axis] == sign);
                those
                    .map(|number| f[number])
                    .reduce(|sum, next| sum + next)
                    .unwrap_or_else(|| s.constant(0.0))
            };
            (moving(1) - moving(-1)) / density
        });
        let squared = s.sum(0..D, |axis| velocity[axis] * velocity[axis]);
        let base = 1.0 - 1.5 * squared;
        for (number, &own) in self.velocities.iter().enumerate() {
            let along = (0..D).filter(|&axis| own[axis] != 0);
            let along = along.map(|axis| if own[axis] > 0 { velocity[axis] } else { -velocity[axis] });
            let polynomial = match along.reduce(|sum, next| sum + next) {
                Some(along) => base + 3.0 * along + 4.5 * along * along,
                None => base,
            };
            let equilibrium = self.weight(own) * density * polynomial;
            s.set_component("f", number, f[number] + s.param("omega") * (equilibrium - f[number]));
        }
        s.set("speed", squared.sqrt());
    }
}

/// Returns whether a population came from beyond the walls along an axis, as 1 or 0; `None` if it never does.
fn is_beyond<'g>(s: &Scope<'g>, axis: usize, velocity: i32) -> Option<Expr<'g>> {
    let at = s.coord(axis);
    match velocity {
        0 => None,
        1 => Some(at.eq(0.0)),
        _ => Some(at.eq(extent(s, axis) - 1.0)),
    }
}

/// The models of the cavity.
pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "lbm-d2q9",
        about: "flow in a cavity below a moving lid, by the lattice Boltzmann method (D2Q9)",
        dimensions: 2..=2,
        make: |_| Ok(Box::new(lbm_d2q9()?)),
    },
    Entry {
        name: "lbm-d3q19",
        about: "the same flow in three dimensions, on 19 velocities (D3Q19)",
        dimensions: 3..=3,
        make: |_| Ok(Box::new(lbm_d3q19()?)),
    },
];

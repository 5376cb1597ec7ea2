//! Waves through media: the wave equation and Maxwell's equations with a material in each cell.

use super::Entry;
use super::fdtd::{Magnetic, courant};
use crate::error::Result;
use crate::program::Program;
use crate::program::Start;
use crate::program::{Parameter, Scope, Stencil};

/// The wave equation with a speed of its own in each cell: `u' = 2u − w + (courant·c)²·lap(u)`, where `w` is
/// the level before `u`, and `c` the speed relative to that of `courant`.
///
/// It is stable while `courant·max(c) ≤ 1/√dimensions`. Where `c` is 0 and `u` starts at 0, `u` stays 0: such
/// cells are a wall that reflects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaveMedium {
    /// The number of axes, 1 to 3.
    pub dimensions: usize,
}

impl Stencil for WaveMedium {
    fn name(&self) -> &str {
        "wave-medium"
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn fields(&self) -> Vec<String> {
        ["u", "w", "c"].map(str::to_owned).to_vec()
    }

    fn parameters(&self) -> Vec<Parameter> {
        vec![Parameter::new("courant", 0.5, "speed where c is 1 · step / width; stable up to 1/√axes")]
    }

    fn start(&self, field: &str) -> Start {
        if field == "c" { Start::Seeds { inside: 0.5, outside: 1.0, seed: 11 } } else { Start::Gaussian }
    }

    fn define(&self, s: &Scope<'_>) {
        let (u, w, c) = (s.field("u"), s.field("w"), s.field("c"));
        let inertia = u.here().mul_add(2.0, -w.here());
        s.set("u", (s.param("courant") * c.here()).squared().mul_add(u.laplacian(), inertia));
        s.set("w", u.here());
    }
}

/// The second half of a step in a dielectric: the electric field from the curl of the new magnetic field,
/// weakened where the material is denser.
struct ElectricInDielectric;

fn fields() -> Vec<String> {
    ["ez", "hx", "hy", "eta"].map(str::to_owned).to_vec()
}

fn start(field: &str) -> Start {
    match field {
        "ez" => Start::Gaussian,
        "eta" => Start::Seeds { inside: 0.25, outside: 1.0, seed: 11 },
        _ => Start::Constant(0.0),
    }
}

impl Stencil for ElectricInDielectric {
    fn name(&self) -> &str {
        "electric-in-dielectric"
    }

    fn dimensions(&self) -> usize {
        2
    }

    fn fields(&self) -> Vec<String> {
        fields()
    }

    fn parameters(&self) -> Vec<Parameter> {
        courant()
    }

    fn start(&self, field: &str) -> Start {
        start(field)
    }

    fn define(&self, s: &Scope<'_>) {
        let (ez, hx, hy, eta) = (s.field("ez"), s.field("hx"), s.field("hy"), s.field("eta"));
        let curl = (hy.here() - hy.at([0, -1])) - (hx.here() - hx.at([-1, 0]));
        s.set("ez", ez.here() + s.param("courant") * eta.here() * curl);
    }
}

/// Returns Maxwell 2D, transverse magnetic, as [`super::fdtd_tm`], through a dielectric. The field `eta` is
/// the vacuum's permittivity over the material's: 1 in vacuum and less elsewhere.
pub fn fdtd_dielectric() -> Result<Program> {
    Program::sequence("fdtd-dielectric", &[&Magnetic::among(fields, start), &ElectricInDielectric])
}

/// The models of waves through media.
pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "wave-medium",
        about: "the wave equation with a speed for each cell: walls, slits, lenses",
        dimensions: 1..=3,
        make: |dimensions| Ok(Box::new(WaveMedium { dimensions })),
    },
    Entry {
        name: "fdtd-dielectric",
        about: "Maxwell's equations in 2D with a permittivity for each cell",
        dimensions: 2..=2,
        make: |_| Ok(Box::new(fdtd_dielectric()?)),
    },
];

//! Well-known models: one stencil per step, with parameters.

use super::Entry;
use crate::domain::Boundary;
use crate::expr::Expr;
use crate::program::Start;
use crate::program::{Parameter, Scope, Stencil};

/// Heat conduction, explicit Euler in time, second order in space, in units of the cell's width and the step:
/// `u' = u + kappa·lap(u)`. With a conductivity field `kappa` it is in flux form, `u' = u + Σ (k₊·(u₊ − u) −
/// k₋·(u − u₋))`, where `k±` is the mean of the two cells' `kappa`.
///
/// It is stable for `kappa ≤ 1/(2·dimensions)`, and conserves the sum under periodic and mirror boundaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heat {
    /// The number of axes, 1 to 3.
    pub dimensions: usize,
    /// Whether `kappa` is a field instead of a parameter.
    pub conductivity: bool,
}

impl Stencil for Heat {
    fn name(&self) -> &str {
        if self.conductivity { "heat-conductivity" } else { "heat" }
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn fields(&self) -> Vec<String> {
        let names: &[&str] = if self.conductivity { &["u", "kappa"] } else { &["u"] };
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn parameters(&self) -> Vec<Parameter> {
        if self.conductivity {
            return Vec::new();
        }
        vec![Parameter::new("kappa", 0.1, "diffusivity · step / width²; stable up to 1/(2·axes)")]
    }

    fn boundary(&self) -> Boundary {
        Boundary::Mirror
    }

    fn start(&self, field: &str) -> Start {
        if field == "kappa" { Start::Seeds { inside: 0.01, outside: 0.12, seed: 5 } } else { Start::Gaussian }
    }

    fn define(&self, s: &Scope<'_>) {
        let u = s.field("u");
        if !self.conductivity {
            s.set("u", s.param("kappa").mul_add(u.laplacian(), u.here()));
            return;
        }
        let kappa = s.field("kappa");
        let flux = |axis: usize, side: i32| {
            let mean = 0.5 * (kappa.here() + kappa.along(axis, side));
            mean * (u.along(axis, side) - u.here())
        };
        s.set("u", u.here() + s.sum(0..self.dimensions, |axis| flux(axis, -1) + flux(axis, 1)));
    }
}

/// The wave equation, second order in time and space: `u' = 2u − w + courant²·lap(u)`, where `w` is the level
/// before `u`.
///
/// `courant` is speed · step / width; the model is stable up to 1/√dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wave {
    /// The number of axes, 1 to 3.
    pub dimensions: usize,
}

impl Stencil for Wave {
    fn name(&self) -> &str {
        "wave"
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn fields(&self) -> Vec<String> {
        vec!["u".to_owned(), "w".to_owned()]
    }

    fn parameters(&self) -> Vec<Parameter> {
        vec![Parameter::new("courant", 0.5, "speed · step / width; stable up to 1/√axes")]
    }

    fn start(&self, _field: &str) -> Start {
        Start::Gaussian
    }

    fn define(&self, s: &Scope<'_>) {
        let (u, w) = (s.field("u"), s.field("w"));
        let inertia = u.here().mul_add(2.0, -w.here());
        s.set("u", s.param("courant").squared().mul_add(u.laplacian(), inertia));
        s.set("w", u.here());
    }
}

/// The Gray–Scott reaction and diffusion of two species (Pearson, Science 261, 1993), explicit Euler:
/// `u' = u + du·lap(u) − u·v² + feed·(1−u)`, `v' = v + dv·lap(v) + u·v² − (feed+kill)·v`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrayScott {
    /// The number of axes, 1 to 3.
    pub dimensions: usize,
}

impl Stencil for GrayScott {
    fn name(&self) -> &str {
        "gray-scott"
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn fields(&self) -> Vec<String> {
        vec!["u".to_owned(), "v".to_owned()]
    }

    fn parameters(&self) -> Vec<Parameter> {
        vec![
            Parameter::new("du", 0.16, "diffusivity of u · step / width²"),
            Parameter::new("dv", 0.08, "diffusivity of v · step / width²"),
            Parameter::new("feed", 0.03, "rate at which u is fed, per step"),
            Parameter::new("kill", 0.062, "rate at which v is removed beyond the feed, per step"),
        ]
    }

    fn boundary(&self) -> Boundary {
        Boundary::Periodic
    }

    fn shown(&self) -> usize {
        1
    }

    fn start(&self, field: &str) -> Start {
        match field {
            "u" => Start::Seeds { inside: 0.5, outside: 1.0, seed: 8 },
            _ => Start::Seeds { inside: 0.25, outside: 0.0, seed: 8 },
        }
    }

    fn define(&self, s: &Scope<'_>) {
        let (u, v) = (s.field("u"), s.field("v"));
        let (feed, kill) = (s.param("feed"), s.param("kill"));
        let reaction = u.here() * v.here().squared();
        s.set("u", u.here() + s.param("du") * u.laplacian() - reaction + feed * (1.0 - u.here()));
        s.set("v", v.here() + s.param("dv") * v.laplacian() + reaction - (feed + kill) * v.here());
    }
}

/// The viscous Burgers equation in two components, upwind in the advection, central in the viscosity:
/// `u' = u − dt·(u·∂u/∂x + v·∂u/∂y) + nu·lap(u)`, and the same for `v`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Burgers;

impl Stencil for Burgers {
    fn name(&self) -> &str {
        "burgers"
    }

    fn dimensions(&self) -> usize {
        2
    }

    fn fields(&self) -> Vec<String> {
        vec!["u".to_owned(), "v".to_owned()]
    }

    fn parameters(&self) -> Vec<Parameter> {
        vec![
            Parameter::new("dt", 0.2, "step / width; stable while (|u| + |v|)·dt + 4·nu ≤ 1"),
            Parameter::new("nu", 0.02, "viscosity · step / width²"),
        ]
    }

    fn boundary(&self) -> Boundary {
        Boundary::Periodic
    }

    fn start(&self, field: &str) -> Start {
        if field == "u" { Start::Gaussian } else { Start::Seeds { inside: 0.8, outside: 0.2, seed: 3 } }
    }

    fn define<'g>(&self, s: &Scope<'g>) {
        let (u, v, dt) = (s.field("u"), s.field("v"), s.param("dt"));
        for name in ["u", "v"] {
            let q = s.field(name);
            // The difference against the wind, along an axis along which the wind blows with `speed`.
            let upwind = |axis: usize, speed: Expr<'g>| {
                speed * speed.gt(0.0).select(q.here() - q.along(axis, -1), q.along(axis, 1) - q.here())
            };
            let advection = upwind(1, u.here()) + upwind(0, v.here());
            s.set(name, q.here() - dt * advection + s.param("nu") * q.laplacian());
        }
    }
}

/// Transport by a constant wind with diffusion: first-order upwind in the advection, central in the
/// diffusion.
///
/// `c' = c − Σ cₐ·∂c/∂a + kappa·lap(c)` with one Courant number per axis (`cx`, `cy`, `cz`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdvectionDiffusion {
    /// The number of axes, 1 to 3.
    pub dimensions: usize,
}

const WIND: [&str; 3] = ["cz", "cy", "cx"];

impl Stencil for AdvectionDiffusion {
    fn name(&self) -> &str {
        "advection-diffusion"
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn parameters(&self) -> Vec<Parameter> {
        let wind = WIND[3 - self.dimensions..].iter().rev();
        let mut list: Vec<Parameter> = wind
            .zip([0.3, 0.1, 0.05])
            .map(|(name, value)| Parameter::new(*name, value, "wind · step / width along the axis"))
            .collect();
        list.push(Parameter::new(
            "kappa",
            0.05,
            "diffusivity · step / width²; stable while Σ|c| + 2·axes·kappa ≤ 1",
        ));
        list
    }

    fn boundary(&self) -> Boundary {
        Boundary::Periodic
    }

    fn start(&self, _field: &str) -> Start {
        Start::Gaussian
    }

    fn define(&self, s: &Scope<'_>) {
        let u = s.field("u");
        let advection = s.sum(0..self.dimensions, |axis| {
            let wind = s.param(WIND[3 - self.dimensions + axis]);
            wind * wind.gt(0.0).select(u.here() - u.along(axis, -1), u.along(axis, 1) - u.here())
        });
        s.set("u", u.here() - advection + s.param("kappa") * u.laplacian());
    }
}

/// Conway's game of life: a cell is 1 (alive) or 0. It lives on with two or three living neighbours of eight,
/// and is born with three.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life;

impl Stencil for Life {
    fn name(&self) -> &str {
        "life"
    }

    fn dimensions(&self) -> usize {
        2
    }

    fn boundary(&self) -> Boundary {
        Boundary::Periodic
    }

    fn start(&self, _field: &str) -> Start {
        Start::Coin { seed: 1, probability: 0.3 }
    }

    fn define(&self, s: &Scope<'_>) {
        let u = s.field("u");
        let around = (0..9).filter(|&i| i != 4);
        let neighbours = around.map(|i| u.at([i / 3 - 1, i % 3 - 1])).reduce(|sum, tap| sum + tap);
        let neighbours = neighbours.unwrap_or_else(|| s.constant(0.0));
        let stays = neighbours.eq(2.0).select(u.here(), 0.0);
        s.set("u", neighbours.eq(3.0).select(1.0, stays));
    }
}

/// The models of one stage.
pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "heat",
        about: "heat conduction, constant conductivity",
        dimensions: 1..=3,
        make: |dimensions| Ok(Box::new(Heat { dimensions, conductivity: false })),
    },
    Entry {
        name: "heat-conductivity",
        about: "heat conduction through a conductivity field, in flux form",
        dimensions: 1..=3,
        make: |dimensions| Ok(Box::new(Heat { dimensions, conductivity: true })),
    },
    Entry {
        name: "wave",
        about: "the wave equation, second order in time",
        dimensions: 1..=3,
        make: |dimensions| Ok(Box::new(Wave { dimensions })),
    },
    Entry {
        name: "gray-scott",
        about: "reaction and diffusion of two species: spots, stripes, waves",
        dimensions: 1..=3,
        make: |dimensions| Ok(Box::new(GrayScott { dimensions })),
    },
    Entry {
        name: "burgers",
        about: "viscous Burgers flow of two components",
        dimensions: 2..=2,
        make: |_| Ok(Box::new(Burgers)),
    },
    Entry {
        name: "advection-diffusion",
        about: "transport by a constant wind, with diffusion",
        dimensions: 1..=3,
        make: |dimensions| Ok(Box::new(AdvectionDiffusion { dimensions })),
    },
    Entry { name: "life", about: "Conway's game of life", dimensions: 2..=2, make: |_| Ok(Box::new(Life)) },
];

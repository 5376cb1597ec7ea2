//! What flows, and its state by density and energy.

use abide_core::program::{Definition, Scope};

use super::Flow;
use super::names::{FRACTIONS, PARTS};
use crate::{Composition, Mixture};

/// What flows.
#[derive(Debug, Clone)]
pub enum Fluid {
    /// A mixture of real gases.
    Real(Box<Mixture>),
    /// An ideal gas of constant heat capacities.
    Ideal {
        /// The ratio of specific heats.
        gamma: f64,
        /// The gas constant in J/(kg K).
        constant: f64,
    },
}

/// From so many species on, sums over them are loops.
const LOOPS: usize = 13;

impl Fluid {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Fluid::Real(_) => "real-gas",
            Fluid::Ideal { .. } => "ideal-gas",
        }
    }

    pub(super) fn declare(&self, p: &mut Definition, is_viscous: bool) {
        if let (Fluid::Ideal { .. }, true) = (self, is_viscous) {
            p.parameter("viscosity", 1.8e-5, "viscosity in Pa s").parameter("Pr", 0.71, "Prandtl's number");
        }
    }

    /// Sets what follows from the conserved quantities.
    pub(super) fn state(&self, s: &Scope<'_>, flow: &Flow) {
        let names = flow.names();
        let here = |name: &str| s.field(name).here();
        let parts = names.masses();
        let density = match (names.species, self.is_looped()) {
            (1, _) => here("rho"),
            (many, true) => s.graph().sum(0..many, |i| s.components(PARTS).at(i)),
            _ => {
                parts.iter().map(|name| here(name)).reduce(|sum, part| sum + part).unwrap_or(s.constant(0.0))
            }
        };
        if names.species > 1 {
            s.set("rho", density);
        }
        if names.keeps_fractions() {
            for (number, part) in parts.iter().enumerate() {
                s.set(&format!("{FRACTIONS}[{number}]"), here(part) / density);
            }
        }
        let mut squares = s.constant(0.0);
        for axis in 0..names.axes {
            let velocity = here(&names.momentum(axis)) / density;
            s.set(names.velocity(axis), velocity);
            squares = if axis == 0 { velocity * velocity } else { velocity.mul_add(velocity, squares) };
        }
        let energy = here("energy") / density - 0.5 * squares;
        s.set("e", energy);
        match self {
            Fluid::Ideal { gamma, constant } => {
                let per_density = energy * (gamma - 1.0);
                s.set("T", per_density * (1.0 / constant));
                s.set("p", per_density * density);
                if flow.has_sound() {
                    s.set("c", (per_density * *gamma).sqrt());
                }
            }
            Fluid::Real(gas) => {
                let composition = self.composition(gas, s);
                let t = composition.temperature_of_energy(density, energy, here("T"), flow.newton);
                let state = composition.at_density(t, density);
                s.set("T", t);
                s.set("p", state.pressure());
                if flow.has_sound() {
                    s.set("c", state.speed_of_sound());
                }
                if flow.is_viscous {
                    s.set("mu", state.viscosity());
                    s.set("lambda", state.conductivity());
                }
                if flow.diffuses() {
                    let each = state.diffusivities().into_iter().zip(state.partial_enthalpies());
                    for (number, (diffusivity, enthalpy)) in each.enumerate() {
                        s.set(&format!("D[{number}]"), diffusivity);
                        s.set(&format!("h[{number}]"), enthalpy);
                    }
                }
            }
        }
    }

    fn is_looped(&self) -> bool {
        matches!(self, Fluid::Real(gas) if gas.len() >= LOOPS)
    }

    /// Returns the composition by the partial densities, which are mass fractions times the density.
    fn composition<'m, 'g>(&self, gas: &'m Mixture, s: &Scope<'g>) -> Composition<'m, 'g> {
        let part = |number: usize| s.component(PARTS, number).here();
        match gas.len() {
            1 => gas.mole_fractions(|_| s.constant(1.0)),
            _ if self.is_looped() => match gas.mass_fractions_in(s.components(PARTS)) {
                Ok(composition) => composition,
                // Declared as many as there are species.
                Err(_) => gas.mass_fractions(part),
            },
            _ => gas.mass_fractions(part),
        }
    }
}

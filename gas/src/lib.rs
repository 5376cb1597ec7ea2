//! Properties of real-gas mixtures as formulas: Peng–Robinson's equation of state, NASA's polynomials of seven
//! coefficients, Chung's viscosity and thermal conductivity of dense gases.
//!
//! A [`Mixture`] is made of the species of a [`Table`]. Inside a stencil its [`Composition`] is given at a cell,
//! by mole or mass fractions, and its [`State`] by two of temperature, pressure, density, energy and enthalpy.
//! Each property of a state is an expression like any other: operators, `select`, and iterations of a fixed
//! count, so that its bits depend on nothing but the cell's own values.
//!
//! ```
//! use abide_core::program::{Centring, Definition};
//! use abide_gas::{Mixture, Table};
//!
//! // Density and speed of sound of methane and oxygen at each cell.
//! let gas = Mixture::of(&Table::builtin()?, &["CH4", "O2"])?;
//! let mut p = Definition::new("injector", 1);
//! for name in ["T", "p", "rho", "c"] {
//!     p.field(name, Centring::CELL);
//! }
//! p.components("x", gas.len(), Centring::CELL);
//! p.step().stage("properties", |s| {
//!     let x = gas.mole_fractions(|i| s.component("x", i).here());
//!     let state = x.at(s.field("T").here(), s.field("p").here());
//!     s.set("rho", state.density());
//!     s.set("c", state.speed_of_sound());
//! });
//! assert_eq!(p.build()?.radius(), [0, 0, 0]);
//! # Ok::<(), abide_core::Error>(())
//! ```
//!
//! All quantities are in SI units. Those of a state are per kilogram where they have a mass in them.

#![deny(missing_docs)]

mod cantera;
mod chung;
mod coefficients;
mod collisions;
mod composition;
mod diffusion;
mod flow;
mod given;
mod ideal;
mod interactions;
mod inverse;
mod mixture;
mod partial;
mod property;
mod species;
mod state;
mod sum;
mod table;
mod yaml;

pub use coefficients::{Chung, CriticalVolume, DiluteViscosity, HeatCapacity, MolarDensity};
pub use composition::Composition;
pub use flow::{ENTRIES, Flow, Fluid, Scheme, Side, Uniform};
pub use given::{Basis, Given};
pub use interactions::Interactions;
pub use inverse::NEWTON_STEPS;
pub use mixture::{Mixture, Pairs};
pub use property::{Property, States};
pub use species::{Critical, Nasa7, Species};
pub use state::State;
pub use sum::Sums;
pub use table::Table;

/// The molar gas constant in J/(mol K), exact by the SI of 2019.
pub const GAS_CONSTANT: f64 = 8.31446261815324;

/// The pressure in Pa to which the entropies of NASA's polynomials refer.
pub const STANDARD_PRESSURE: f64 = 101325.0;

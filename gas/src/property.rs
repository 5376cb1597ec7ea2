//! The properties that tables and commands name, and the program that computes them at many points.

use abide_core::program::{Centring, Definition, Program};
use abide_core::{Error, Expr, Result};

use crate::{Basis, Given, Mixture, State, Sums};

/// A property of a state: one value, or one of each species or pair of species.
#[derive(Clone, Copy)]
pub struct Property {
    /// The name in tables, as `rho`.
    pub name: &'static str,
    /// The unit.
    pub unit: &'static str,
    /// The meaning, in a few words.
    pub about: &'static str,
    formula: Formula,
}

/// The formula of a property.
#[derive(Clone, Copy)]
enum Formula {
    One(for<'m, 'g> fn(&State<'m, 'g>) -> Expr<'g>),
    Species(for<'m, 'g> fn(&State<'m, 'g>) -> Vec<Expr<'g>>),
    /// Of species i < j, by i and then by j.
    Pairs(for<'m, 'g> fn(&State<'m, 'g>) -> Vec<Expr<'g>>),
}

use Formula::{One, Pairs, Species};

impl std::fmt::Debug for Property {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Property({})", self.name)
    }
}

impl Property {
    /// All properties.
    #[rustfmt::skip]
    pub const ALL: &'static [Property] = &[
        Property { name: "rho", unit: "kg/m³", about: "density", formula: One(|s| s.density()) },
        Property { name: "h", unit: "J/kg", about: "enthalpy", formula: One(|s| s.enthalpy()) },
        Property { name: "s", unit: "J/(kg K)", about: "entropy", formula: One(|s| s.entropy()) },
        Property { name: "cp", unit: "J/(kg K)", about: "heat capacity at constant pressure", formula: One(|s| s.heat_capacity_at_pressure()) },
        Property { name: "cv", unit: "J/(kg K)", about: "heat capacity at constant volume", formula: One(|s| s.heat_capacity_at_volume()) },
        Property { name: "c", unit: "m/s", about: "speed of sound", formula: One(|s| s.speed_of_sound()) },
        Property { name: "mu", unit: "Pa s", about: "viscosity", formula: One(|s| s.viscosity()) },
        Property { name: "lambda", unit: "W/(m K)", about: "thermal conductivity", formula: One(|s| s.conductivity()) },
        Property { name: "e", unit: "J/kg", about: "internal energy", formula: One(|s| s.internal_energy()) },
        Property { name: "T", unit: "K", about: "temperature", formula: One(|s| s.temperature()) },
        Property { name: "p", unit: "Pa", about: "pressure", formula: One(|s| s.pressure()) },
        Property { name: "M", unit: "kg/mol", about: "molar mass", formula: One(|s| s.composition.molar_mass()) },
        Property { name: "Z", unit: "1", about: "compressibility", formula: One(|s| s.compressibility()) },
        Property { name: "roots", unit: "1", about: "molar volumes at this temperature and pressure, 1 or 3", formula: One(|s| s.roots()) },
        Property { name: "p_T", unit: "Pa/K", about: "∂p/∂T at constant density", formula: One(|s| s.pressure_by_temperature()) },
        Property { name: "p_rho", unit: "m²/s²", about: "∂p/∂ρ at constant temperature", formula: One(|s| s.pressure_by_density()) },
        Property { name: "e_rho", unit: "J m³/kg²", about: "∂e/∂ρ at constant temperature", formula: One(|s| s.energy_by_density()) },
        Property { name: "rho_T", unit: "kg/(m³ K)", about: "∂ρ/∂T at constant pressure", formula: One(|s| s.density_by_temperature()) },
        Property { name: "rho_p", unit: "s²/m²", about: "∂ρ/∂p at constant temperature", formula: One(|s| s.density_by_pressure()) },
        Property { name: "h_p", unit: "m³/kg", about: "∂h/∂p at constant temperature", formula: One(|s| s.enthalpy_by_pressure()) },
        Property { name: "beta", unit: "1/K", about: "thermal expansion", formula: One(|s| s.thermal_expansion()) },
        Property { name: "kappa", unit: "1/Pa", about: "isothermal compressibility", formula: One(|s| s.isothermal_compressibility()) },
        Property { name: "rho_Y", unit: "kg/m³", about: "∂ρ/∂Y of each species at constant temperature and pressure", formula: Species(|s| s.density_by_fractions()) },
        Property { name: "h_Y", unit: "J/kg", about: "partial enthalpy of each species, ∂h/∂Y at constant temperature and pressure", formula: Species(|s| s.partial_enthalpies()) },
        Property { name: "v_Y", unit: "m³/kg", about: "partial volume of each species", formula: Species(|s| s.partial_volumes()) },
        Property { name: "D", unit: "m²/s", about: "diffusivity of each species into the mixture, of dilute gas", formula: Species(|s| s.diffusivities()) },
        Property { name: "Dij", unit: "m²/s", about: "binary diffusivity of each pair of species, of dilute gas", formula: Pairs(|s| s.binary_diffusivities()) },
    ];

    /// Returns properties by their names.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] for a name that is none of theirs.
    pub fn named(names: &[&str]) -> Result<Vec<Property>> {
        let known = || Property::ALL.iter().map(|property| property.name);
        let find = |name: &&str| {
            let found = Property::ALL.iter().find(|property| property.name == *name);
            found.copied().ok_or_else(|| Error::unknown("property", *name, known()))
        };
        names.iter().map(find).collect()
    }

    /// Returns the formulas of a state: one, or one of each species or pair, in the order of [`Property::columns`].
    pub fn values<'g>(&self, state: &State<'_, 'g>) -> Vec<Expr<'g>> {
        match self.formula {
            One(value) => vec![value(state)],
            Species(values) | Pairs(values) => values(state),
        }
    }

    /// Returns the names of its columns in tables: `rho`, `D_CH4`, `Dij_CH4_O2`.
    pub fn columns(&self, gas: &Mixture) -> Vec<String> {
        let names: Vec<&str> = gas.species().iter().map(|species| &*species.name).collect();
        match self.formula {
            One(_) => vec![self.name.to_owned()],
            Species(_) => names.iter().map(|name| format!("{}_{name}", self.name)).collect(),
            Pairs(_) => {
                let pair = |i: usize| names[i + 1..].iter().map(move |other| (i, *other));
                let pairs = (0..names.len()).flat_map(pair);
                pairs.map(|(i, other)| format!("{}_{}_{other}", self.name, names[i])).collect()
            }
        }
    }

    /// Returns the names of its fields in [`States::program`]: `rho`, or `D[0]`, `D[1]`, ….
    pub fn fields(&self, gas: &Mixture) -> Vec<String> {
        match (self.formula, self.columns(gas).len()) {
            (One(_), _) => vec![self.name.to_owned()],
            (_, count) => (0..count).map(|number| format!("{}[{number}]", self.name)).collect(),
        }
    }
}

/// How the states of a program are given, and how its sums over species are written.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct States {
    /// The two quantities; temperature and pressure unless given.
    pub given: Given,
    /// What the fractions are of; moles unless given.
    pub basis: Basis,
    /// The form of sums.
    pub sums: Sums,
}

impl States {
    /// States by temperature, pressure and mole fractions, with sums as loops, which the plan keeps where that is faster.
    pub const LOOPS: States = States { given: Given::ALL[0], basis: Basis::Mole, sums: Sums::Loops };

    /// Returns the program of one axis, one stage and radius 0 that computes properties at every point of its domain: from
    /// fields of the two given quantities' names and components `x[0]`, `x[1]`, … (or `Y[0]`, …; fractions in the order of
    /// the species) a field of each property's name. A property of each species has a component for each.
    ///
    /// ```
    /// use abide_gas::{Given, Mixture, Property, States, Table};
    ///
    /// let gas = Mixture::of(&Table::builtin()?, &["CH4", "O2"])?;
    /// let states = States { given: "hp".parse::<Given>()?, ..States::LOOPS };
    /// let program = states.program(&gas, &Property::named(&["T", "rho", "D"])?)?;
    /// assert_eq!(program.fields(), ["h", "p", "x[0]", "x[1]", "T", "rho", "D[0]", "D[1]"]);
    /// # Ok::<(), abide_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] for more fields than a program may have, [`Error::Invalid`] for a property that is given
    /// twice, or is one of the two given quantities.
    pub fn program(&self, gas: &Mixture, properties: &[Property]) -> Result<Program> {
        let (mut p, symbol) = (Definition::new("gas", 1), self.basis.symbol());
        for name in self.given.quantities {
            p.field(name, Centring::CELL);
        }
        p.components(symbol, gas.len(), Centring::CELL);
        for property in properties {
            match property.formula {
                One(_) => p.field(property.name, Centring::CELL),
                Species(_) | Pairs(_) => {
                    p.components(property.name, property.columns(gas).len(), Centring::CELL)
                }
            };
        }
        p.step().stage("properties", |s| {
            let parts = |i: usize| s.component(symbol, i).here();
            let all = s.components(symbol);
            let composition = match (self.sums, self.basis) {
                (Sums::Terms, Basis::Mole) => Ok(gas.mole_fractions(parts)),
                (Sums::Terms, Basis::Mass) => Ok(gas.mass_fractions(parts)),
                (Sums::Loops, Basis::Mole) => gas.mole_fractions_in(all),
                (Sums::Loops, Basis::Mass) => gas.mass_fractions_in(all),
                (Sums::Trees(lanes), Basis::Mole) => gas.mole_fractions_in_lanes(lanes, all),
                (Sums::Trees(lanes), Basis::Mass) => gas.mass_fractions_in_lanes(lanes, all),
            };
            // Declared above, as many as there are species.
            let Ok(composition) = composition else { return };
            let state =
                self.given.state(&composition, self.given.quantities.map(|name| s.field(name).here()));
            for property in properties {
                for (name, value) in property.fields(gas).iter().zip(property.values(&state)) {
                    s.set(name, value);
                }
            }
        });
        p.build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Table;

    #[test]
    fn all_species_fit_one_program() {
        let table = Table::builtin().unwrap();
        let names: Vec<&str> = table.species().iter().map(|species| &*species.name).collect();
        let gas = Mixture::of(&table, &names).unwrap().fewest_operations();
        let own =
            Property::ALL.iter().filter(|p| matches!(p.formula, One(_)) && !["T", "p"].contains(&p.name));
        let own: Vec<Property> = own.copied().collect();
        let program = States::LOOPS.program(&gas, &own).unwrap();
        assert!(program.is_plain() && program.radius() == [0; 3]);
        assert_eq!(program.fields().len(), 2 + 53 + own.len());
        assert!(Property::named(&["rho", "rh"]).is_err());
        let twice = Property::named(&["rho", "rho"]).unwrap();
        assert!(States::LOOPS.program(&gas, &twice).is_err());
    }

    /// Factoring pays for many species, and interactions cost what they are.
    #[test]
    fn operations_are_as_few_as_the_sums_allow() {
        let table = Table::builtin().unwrap();
        let six = Property::named(&["rho", "h", "cp", "c", "mu", "lambda"]).unwrap();
        let names: Vec<&str> = table.species().iter().map(|species| &*species.name).collect();
        for (count, most) in [(10, 650), (33, 1450), (53, 2200)] {
            let gas = Mixture::of(&table, &names[..count]).unwrap().fewest_operations();
            let program = States::default().program(&gas, &six).unwrap();
            let operations = program.simplified(abide_core::DType::F64).operations();
            assert!(operations < most, "{count} species: {operations}");
        }
    }
}

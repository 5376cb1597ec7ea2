//! The properties that tables and commands name, and the program that computes them at many points.

use abide_core::program::{Centring, Definition, Program};
use abide_core::{Error, Expr, Result};

use crate::{Mixture, State, Sums};

/// A property of a state.
#[derive(Clone, Copy)]
pub struct Property {
    /// The name in tables, as `rho`.
    pub name: &'static str,
    /// The unit.
    pub unit: &'static str,
    /// The meaning, in a few words.
    pub about: &'static str,
    /// The formula.
    pub formula: for<'m, 'g> fn(&State<'m, 'g>) -> Expr<'g>,
}

impl std::fmt::Debug for Property {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Property({})", self.name)
    }
}

impl Property {
    /// All properties.
    #[rustfmt::skip]
    pub const ALL: &'static [Property] = &[
        Property { name: "rho", unit: "kg/m³", about: "density", formula: |s| s.density() },
        Property { name: "h", unit: "J/kg", about: "enthalpy", formula: |s| s.enthalpy() },
        Property { name: "s", unit: "J/(kg K)", about: "entropy", formula: |s| s.entropy() },
        Property { name: "cp", unit: "J/(kg K)", about: "heat capacity at constant pressure", formula: |s| s.heat_capacity_at_pressure() },
        Property { name: "cv", unit: "J/(kg K)", about: "heat capacity at constant volume", formula: |s| s.heat_capacity_at_volume() },
        Property { name: "c", unit: "m/s", about: "speed of sound", formula: |s| s.speed_of_sound() },
        Property { name: "mu", unit: "Pa s", about: "viscosity", formula: |s| s.viscosity() },
        Property { name: "lambda", unit: "W/(m K)", about: "thermal conductivity", formula: |s| s.conductivity() },
        Property { name: "e", unit: "J/kg", about: "internal energy", formula: |s| s.internal_energy() },
        Property { name: "Z", unit: "1", about: "compressibility", formula: |s| s.compressibility() },
        Property { name: "roots", unit: "1", about: "molar volumes at this temperature and pressure, 1 or 3", formula: |s| s.roots() },
    ];

    /// Returns properties by their names.
    pub fn named(names: &[&str]) -> Result<Vec<Property>> {
        let known = || Property::ALL.iter().map(|property| property.name);
        let find = |name: &&str| {
            let found = Property::ALL.iter().find(|property| property.name == *name);
            found.copied().ok_or_else(|| Error::unknown("property", *name, known()))
        };
        names.iter().map(find).collect()
    }
}

impl Mixture {
    /// Returns the program of one axis, one stage and radius 0 that computes properties at every point of its domain:
    /// from fields `T` in K, `p` in Pa and components `x[0]`, `x[1]`, … (mole fractions in the order of the species)
    /// a field of each property's name. Sums over species are loops, which the plan keeps where that is faster.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] for more fields than a program may have, [`Error::Invalid`] for a property that is given
    /// twice.
    pub fn program(&self, properties: &[Property]) -> Result<Program> {
        self.program_of(properties, Sums::Loops)
    }

    /// Returns the same program with its sums over species as terms, as loops or as trees.
    pub fn program_of(&self, properties: &[Property], sums: Sums) -> Result<Program> {
        let mut p = Definition::new("gas", 1);
        p.field("T", Centring::CELL).field("p", Centring::CELL).components("x", self.len(), Centring::CELL);
        for property in properties {
            p.field(property.name, Centring::CELL);
        }
        p.step().stage("properties", |s| {
            let x = match sums {
                Sums::Terms => Ok(self.mole_fractions(|i| s.component("x", i).here())),
                Sums::Loops => self.mole_fractions_in(s.components("x")),
                Sums::Trees(lanes) => self.mole_fractions_in_lanes(lanes, s.components("x")),
            };
            // Declared above, as many as there are species.
            let Ok(x) = x else { return };
            let state = x.at(s.field("T").here(), s.field("p").here());
            for property in properties {
                s.set(property.name, (property.formula)(&state));
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
        let program = gas.program(Property::ALL).unwrap();
        assert!(program.is_plain() && program.radius() == [0; 3]);
        assert_eq!(program.fields().len(), 2 + 53 + Property::ALL.len());
        assert!(Property::named(&["rho", "rh"]).is_err());
        let twice = Property::named(&["rho", "rho"]).unwrap();
        assert!(gas.program(&twice).is_err());
    }

    /// Factoring pays for many species, and interactions cost what they are.
    #[test]
    fn operations_are_as_few_as_the_sums_allow() {
        let table = Table::builtin().unwrap();
        let six = Property::named(&["rho", "h", "cp", "c", "mu", "lambda"]).unwrap();
        let names: Vec<&str> = table.species().iter().map(|species| &*species.name).collect();
        for (count, most) in [(10, 650), (33, 1450), (53, 2200)] {
            let gas = Mixture::of(&table, &names[..count]).unwrap().fewest_operations();
            let program = gas.program_of(&six, Sums::Terms).unwrap();
            let operations = program.simplified(abide_core::DType::F64).operations();
            assert!(operations < most, "{count} species: {operations}");
        }
    }
}

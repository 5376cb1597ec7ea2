//! What a state is given by: two quantities, and fractions of moles or of mass.

use abide_core::{Error, Expr, Result};

use crate::{Composition, State};

/// A pair of quantities that give a state.
#[derive(Clone, Copy)]
pub struct Given {
    /// The name of the pair, as `hp`.
    pub name: &'static str,
    /// The quantities' names, as `h` and `p`.
    pub quantities: [&'static str; 2],
    /// Their units.
    pub units: [&'static str; 2],
    /// Whether each must be above 0.
    pub are_positive: [bool; 2],
    state: for<'m, 'g> fn(&Composition<'m, 'g>, [Expr<'g>; 2]) -> State<'m, 'g>,
}

impl std::fmt::Debug for Given {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Given({})", self.name)
    }
}

impl PartialEq for Given {
    fn eq(&self, other: &Given) -> bool {
        self.name == other.name
    }
}

impl Default for Given {
    /// Temperature and pressure.
    fn default() -> Given {
        Given::ALL[0]
    }
}

impl Given {
    /// All pairs: temperature and pressure, temperature and density, enthalpy and pressure, density and internal energy. The
    /// last two need no guess of the temperature, which lies between 20 and 8000 K.
    #[rustfmt::skip]
    pub const ALL: &'static [Given] = &[
        Given { name: "Tp", quantities: ["T", "p"], units: ["K", "Pa"], are_positive: [true, true], state: |x, [t, p]| x.at(t, p) },
        Given { name: "Trho", quantities: ["T", "rho"], units: ["K", "kg/m³"], are_positive: [true, true], state: |x, [t, rho]| x.at_density(t, rho) },
        Given { name: "hp", quantities: ["h", "p"], units: ["J/kg", "Pa"], are_positive: [false, true], state: |x, [h, p]| x.at_enthalpy(h, p) },
        Given { name: "rhoe", quantities: ["rho", "e"], units: ["kg/m³", "J/kg"], are_positive: [true, false], state: |x, [rho, e]| x.at_energy(rho, e) },
    ];

    /// Returns the pair whose quantities are all among some names; of several, the first of [`Given::ALL`].
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] where there is none.
    pub fn among<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Given> {
        let names: Vec<&str> = names.into_iter().collect();
        let is_there = |given: &&Given| given.quantities.iter().all(|name| names.contains(name));
        let pairs = || Given::ALL.iter().map(|given| given.quantities.join(" and "));
        let found = Given::ALL.iter().find(is_there).copied();
        found.ok_or_else(|| Error::unknown("pair of quantities", names.join(", "), pairs()))
    }

    /// Returns the state of a composition by the values of the two quantities.
    pub fn state<'m, 'g>(&self, composition: &Composition<'m, 'g>, values: [Expr<'g>; 2]) -> State<'m, 'g> {
        (self.state)(composition, values)
    }
}

impl std::str::FromStr for Given {
    type Err = Error;

    fn from_str(name: &str) -> Result<Given> {
        let names = || Given::ALL.iter().map(|given| given.name);
        let found = Given::ALL.iter().find(|given| given.name == name).copied();
        found.ok_or_else(|| Error::unknown("pair of quantities", name, names()))
    }
}

/// What fractions are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Basis {
    /// Mole fractions x_i.
    #[default]
    Mole,
    /// Mass fractions Y_i.
    Mass,
}

impl Basis {
    /// Returns the name of a table's or a program's fractions: `x` or `Y`.
    pub fn symbol(self) -> &'static str {
        match self {
            Basis::Mole => "x",
            Basis::Mass => "Y",
        }
    }
}

impl std::fmt::Display for Basis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Basis::Mole => "mole",
            Basis::Mass => "mass",
        })
    }
}

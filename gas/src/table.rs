//! Tables of species: the one that is built in, and files of the same columns.

use std::collections::{HashMap, HashSet};

use abide_core::{Error, Result};

use crate::species::{Critical, Nasa7, Species};

/// The species of GRI-Mech 3.0. Polynomials and potentials are those of Cantera's `gri30.yaml`; the last column
/// of the file says where each line's critical data come from.
const BUILTIN: &str = include_str!("../data/species.csv");

/// Association factors κ of hydrogen-bonding species (Chung et al., Ind. Eng. Chem. Res. 27 (1988) 671, table 2),
/// for tables that have no column `kappa`.
const ASSOCIATION: &[(&str, f64)] = &[("H2O", 0.075908), ("CH3OH", 0.215175)];

/// The columns that a file must have besides the coefficients `lo0` to `lo6` and `hi0` to `hi6`.
const REQUIRED: [&str; 5] = ["name", "W", "Tlow", "Tmid", "Thigh"];

/// Species, found by their names.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    species: Vec<Species>,
}

impl Table {
    /// Makes a table.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for a name that stands twice, [`Error::Limit`] for a value that no species has.
    pub fn new(species: Vec<Species>) -> Result<Table> {
        species.iter().try_for_each(Species::check)?;
        let mut names = HashSet::new();
        for one in &species {
            if !names.insert(&one.name) {
                let what = format!("species {}", one.name);
                return Err(Error::invalid(what, "it stands twice in the table", "leave one out"));
            }
        }
        Ok(Table { species })
    }

    /// Returns the 53 species of GRI-Mech 3.0.
    pub fn builtin() -> Result<Table> {
        Table::from_csv(BUILTIN)
    }

    /// Reads a table of comma-separated values; lines that begin with `#` are comments.
    ///
    /// Columns, in any order: `name`, `W` (kg/kmol), `Tc` (K), `pc` (Pa), `Vc` (m³/kmol), `omega`, `dipole`
    /// (debye), `kappa`, `sigma` (Å), `eps_k` (K), `Tlow`, `Tmid`, `Thigh` (K), the coefficients `lo0` to `lo6`
    /// up to Tmid and `hi0` to `hi6` above. Critical data and potentials may be missing or empty, a dipole is
    /// then 0; `kappa` is then that of the literature for H2O and CH3OH and 0 for others. Other columns are
    /// ignored.
    pub fn from_csv(text: &str) -> Result<Table> {
        let fault = |message: String| Error::invalid("the table of species", message, "correct the table");
        let mut reader = csv::ReaderBuilder::new()
            .comment(Some(b'#'))
            .trim(csv::Trim::All)
            .from_reader(text.trim_start_matches('\u{feff}').as_bytes());
        let names = reader.headers().map_err(|e| fault(e.to_string()))?.clone();
        // Of two columns of a name the first counts.
        let mut places: HashMap<&str, usize> = HashMap::new();
        for (at, name) in names.iter().enumerate() {
            places.entry(name).or_insert(at);
        }
        let column = |name: &str| places.get(name).copied();
        let coefficients = ["lo", "hi"].map(|part| [0, 1, 2, 3, 4, 5, 6].map(|k| format!("{part}{k}")));
        let all = REQUIRED.into_iter().chain(coefficients.iter().flatten().map(String::as_str));
        if let Some(missing) = all.into_iter().find(|name| column(name).is_none()) {
            return Err(fault(format!("it has no column {missing}")));
        }
        let mut species = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|e| fault(e.to_string()))?;
            let text = |name: &str| column(name).and_then(|c| record.get(c)).filter(|text| !text.is_empty());
            let name = text("name").ok_or_else(|| fault("a species has no name".to_owned()))?.to_owned();
            let optional = |column: &str| -> Result<Option<f64>> {
                let number = |text: &str| {
                    let wrong = |_| fault(format!("{column} of species {name}: `{text}` is no number"));
                    text.parse::<f64>().map_err(wrong)
                };
                text(column).map(number).transpose()
            };
            let required = |column: &str| {
                optional(column)?.ok_or_else(|| fault(format!("species {name} has no {column}")))
            };
            let polynomial = |columns: &[String; 7]| -> Result<[f64; 7]> {
                let mut values = [0.0; 7];
                for (value, column) in values.iter_mut().zip(columns) {
                    *value = required(column)?;
                }
                Ok(values)
            };
            let critical = match [optional("Tc")?, optional("pc")?, optional("Vc")?, optional("omega")?] {
                [Some(temperature), Some(pressure), Some(volume), Some(acentric)] => {
                    Some(Critical { temperature, pressure, volume: volume / 1000.0, acentric })
                }
                [None, None, None, None] => None,
                _ => {
                    let message = format!("species {name} has only some of Tc, pc, Vc and omega");
                    return Err(Error::invalid("the table of species", message, "give all four or none"));
                }
            };
            species.push(Species {
                molar_mass: required("W")? / 1000.0,
                critical,
                dipole: optional("dipole")?.unwrap_or(0.0),
                association: optional("kappa")?.unwrap_or_else(|| association(&name)),
                lennard_jones: optional("sigma")?
                    .zip(optional("eps_k")?)
                    .map(|(sigma, depth)| [sigma, depth]),
                thermo: Nasa7 {
                    lowest: required("Tlow")?,
                    middle: required("Tmid")?,
                    highest: required("Thigh")?,
                    low: polynomial(&coefficients[0])?,
                    high: polynomial(&coefficients[1])?,
                },
                name,
            });
        }
        Table::new(species)
    }

    /// Returns the species, in order.
    pub fn species(&self) -> &[Species] {
        &self.species
    }

    /// Returns a species by its name.
    pub fn find(&self, name: &str) -> Result<&Species> {
        let known = || self.species.iter().map(|species| species.name.as_str());
        self.species
            .iter()
            .find(|species| species.name == name)
            .ok_or_else(|| Error::unknown("species", name, known()))
    }

    /// Returns the table in which species without critical data have those of [`Species::closed`].
    pub fn closed(self) -> Result<Table> {
        Ok(Table { species: self.species.into_iter().map(Species::closed).collect::<Result<_>>()? })
    }
}

/// Returns the association factor of a species in the literature.
pub(crate) fn association(name: &str) -> f64 {
    ASSOCIATION.iter().find(|(known, _)| *known == name).map_or(0.0, |(_, kappa)| *kappa)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_table_is_whole() {
        let table = Table::builtin().unwrap();
        assert_eq!(table.species().len(), 53);
        let methane = table.find("CH4").unwrap();
        assert_eq!(methane.critical.unwrap().temperature, 190.7);
        assert_eq!(table.find("H2O").unwrap().association, 0.075908);
        assert_eq!(methane.association, 0.0);
        // The molecules' elements: a molar mass off by more than rounding is a slip.
        let oxygen = table.find("O2").unwrap().molar_mass;
        assert!((table.find("CO2").unwrap().molar_mass - oxygen - 0.012011).abs() < 1e-9);
        assert!(table.find("XE").unwrap_err().to_string().contains("CH4"));
    }

    /// The closure makes the built-in data of a radical again: they were made by it.
    #[test]
    fn the_closure_is_that_of_the_table() {
        let table = Table::builtin().unwrap();
        for name in ["H", "OH", "CH3", "CH2CHO"] {
            let own = table.find(name).unwrap().clone();
            let closed = Species { critical: None, ..own.clone() }.closed().unwrap();
            let (own, closed) = (own.critical.unwrap(), closed.critical.unwrap());
            for (a, b) in [
                (own.temperature, closed.temperature),
                (own.pressure, closed.pressure),
                (own.volume, closed.volume),
            ] {
                assert!((a / b - 1.0).abs() < 1e-12, "{name}: {a} {b}");
            }
        }
    }

    #[test]
    fn faults_name_species_and_column() {
        let with = |from: &str, to: &str| Table::from_csv(&BUILTIN.replacen(from, to, 1));
        let words = |table: Result<Table>| table.unwrap_err().to_string();
        assert!(words(with("name,W,", "name,mass,")).contains("no column W"));
        assert!(words(with("H2,2.016,", "H2,two,")).contains("W of species H2"));
        assert!(words(with("H2,2.016,", "H2,-2.016,")).contains("molar mass of species H2"));
        assert!(words(with("H2,2.016,32.98,", "H2,2.016,,")).contains("only some"));
        assert!(words(with("\nH,1.008", "\nH2,1.008")).contains("twice"));
        let bare = with("H2,2.016,32.98,1293000.0,0.0642,-0.217,", "H2,2.016,,,,,").unwrap();
        let error = bare.find("H2").unwrap().critical().unwrap_err().to_string();
        assert!(error.contains("H2") && error.contains("1.2593 eps/k"), "{error}");
        assert!(bare.closed().unwrap().find("H2").unwrap().critical().is_ok());
    }
}

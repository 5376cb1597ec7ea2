//! Species and interactions from Cantera's YAML files, of the keys that a gas with Peng–Robinson's equation has.

use std::collections::{HashMap, HashSet};

use abide_core::{Error, Result};
use yaml_rust2::Yaml;

use crate::mixture::{OMEGA_A, OMEGA_B};
use crate::species::{CRITICAL_COMPRESSIBILITY, Critical, Nasa7, Species};
use crate::table::association;
use crate::{GAS_CONSTANT, Interactions, Table, yaml};

/// The standard atomic weights that Cantera 3 has, in g/mol, of the elements of combustion and air.
const ELEMENTS: &[(&str, f64)] = &[
    ("H", 1.008),
    ("He", 4.002602),
    ("C", 12.011),
    ("N", 14.007),
    ("O", 15.999),
    ("F", 18.998403162),
    ("Ne", 20.1797),
    ("Si", 28.085),
    ("P", 30.973761998),
    ("S", 32.06),
    ("Cl", 35.45),
    ("Ar", 39.95),
    ("Br", 79.904),
    ("Kr", 83.798),
    ("I", 126.90447),
    ("Xe", 131.293),
];

/// The units in which quantities without a unit are, in SI.
#[derive(Clone, Copy)]
struct Units {
    length: f64,
    quantity: f64,
    pressure: f64,
}

impl Table {
    /// Reads the species of a Cantera YAML file, and the interactions that their equations of state have.
    ///
    /// Of each entry of `species`: `name`; `composition`, of which the molar mass follows; `thermo` of the model
    /// NASA7 with one or two ranges; `critical-parameters` (`critical-temperature`, `critical-pressure`,
    /// `critical-molar-volume`, `acentric-factor`), else `a`, `b` and `acentric-factor` or `w_ac` of an
    /// `equation-of-state` of the model Peng-Robinson; `diameter`, `well-depth`, `dipole` of `transport`. A critical
    /// volume that is not given is that of the equation of state, 0.3074 R Tc/pc. `binary-a` of an equation of state
    /// makes k_ij = 1 − a_ij/√(a_i a_j). Numbers may have a unit; those without are in the file's `units`.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for a file that is no YAML, or a species that lacks what it must have, or has it in another
    /// form; those of [`Table::new`] and [`Interactions::new`].
    pub fn from_cantera(text: &str) -> Result<(Table, Interactions)> {
        let fault = |message: String| Error::invalid("the file of species", message, "correct the file");
        let document = yaml::read(text).map_err(fault)?.ok_or_else(|| fault("it is empty".to_owned()))?;
        let units = Units::of(&document["units"])?;
        let entries = document["species"].as_vec();
        let entries = entries.ok_or_else(|| fault("it has no list of species".to_owned()))?;
        let read = entries.iter().map(|entry| Entry::of(entry, units)).collect::<Result<Vec<_>>>()?;
        let mut pairs: Vec<(String, String, f64)> = Vec::new();
        let names = || read.iter().map(|one| &one.species.name);
        let mut known: HashMap<&str, f64> = HashMap::new();
        for entry in &read {
            // Of a name that stands twice the first counts; the table then refuses it.
            known.entry(&entry.species.name).or_insert_with(|| entry.attraction());
        }
        let mut stand: HashSet<[&str; 2]> = HashSet::new();
        for entry in &read {
            let (name, own) = (entry.species.name.as_str(), entry.attraction());
            for (other, value) in &entry.binary {
                let Some(others) = known.get(other.as_str()) else {
                    return Err(Error::unknown("species", other, names()));
                };
                if !stand.contains(&[other, name]) && stand.insert([name, other]) {
                    pairs.push((name.to_owned(), other.clone(), 1.0 - value / (own * others).sqrt()));
                }
            }
        }
        let table = Table::new(read.into_iter().map(|entry| entry.species).collect())?;
        let interactions = Interactions::new(&table, pairs)?;
        Ok((table, interactions))
    }
}

/// One species of a file.
struct Entry {
    species: Species,
    /// a in Pa m⁶/mol² of pairs with others.
    binary: Vec<(String, f64)>,
}

impl Entry {
    fn of(entry: &Yaml, units: Units) -> Result<Entry> {
        let name = text(&entry["name"]).ok_or_else(|| {
            Error::invalid("the file of species", "a species has no name", "correct the file")
        })?;
        let fault = |message: &str| Error::invalid(format!("species {name}"), message, "correct the file");
        let given = |of: &Yaml, key: &str, unit: Unit| -> Result<Option<f64>> {
            match &of[key] {
                Yaml::BadValue | Yaml::Null => Ok(None),
                value => units.quantity_of(value, unit).map(Some).ok_or_else(|| {
                    fault(&format!("{key} is no number, or has a unit that is not known: {}", shown(value)))
                }),
            }
        };
        let equation = match &entry["equation-of-state"] {
            Yaml::Array(all) => all.iter().find(|one| one["model"].as_str() == Some("Peng-Robinson")),
            one if one["model"].as_str() == Some("Peng-Robinson") => Some(one),
            _ => None,
        };
        let parameters = &entry["critical-parameters"];
        let acentric = given(parameters, "acentric-factor", Unit::None)?;
        let critical = match [
            given(parameters, "critical-temperature", Unit::Temperature)?,
            given(parameters, "critical-pressure", Unit::Pressure)?,
        ] {
            [Some(temperature), Some(pressure)] => {
                let missing = || fault("critical-parameters have no acentric-factor");
                let volume = given(parameters, "critical-molar-volume", Unit::MolarVolume)?;
                Some((temperature, pressure, acentric.ok_or_else(missing)?, volume))
            }
            [None, None] => None,
            _ => return Err(fault("critical-parameters have only one of temperature and pressure")),
        };
        let critical = match (critical, equation) {
            (Some(critical), _) => Some(critical),
            (None, Some(equation)) => {
                let first = match &equation["a"] {
                    Yaml::Array(terms) if terms.len() == 2 && number(&terms[1]) != Some(0.0) => {
                        return Err(fault("a of its equation of state depends on the temperature"));
                    }
                    Yaml::Array(terms) => terms.first().unwrap_or(&Yaml::BadValue),
                    one => one,
                };
                let a = match first {
                    Yaml::BadValue | Yaml::Null => None,
                    first => Some(
                        units
                            .quantity_of(first, Unit::Attraction)
                            .ok_or_else(|| fault("a of its equation of state is no number"))?,
                    ),
                };
                let w = match given(equation, "acentric-factor", Unit::None)? {
                    Some(w) => Some(w),
                    None => given(equation, "w_ac", Unit::None)?,
                };
                match (a, given(equation, "b", Unit::MolarVolume)?, w) {
                    (Some(a), Some(b), Some(w)) => {
                        let temperature = a / b * (OMEGA_B / OMEGA_A) / GAS_CONSTANT;
                        Some((temperature, OMEGA_B * GAS_CONSTANT * temperature / b, w, None))
                    }
                    _ => None,
                }
            }
            (None, None) => None,
        };
        let critical = critical.map(|(temperature, pressure, acentric, volume)| {
            let own = CRITICAL_COMPRESSIBILITY * GAS_CONSTANT * temperature / pressure;
            Critical { temperature, pressure, volume: volume.unwrap_or(own), acentric }
        });
        let transport = &entry["transport"];
        let lennard_jones = [
            given(transport, "diameter", Unit::Angstrom)?,
            given(transport, "well-depth", Unit::Temperature)?,
        ];
        let lennard_jones = match lennard_jones {
            // An atom of no size stands for one that is not known.
            [Some(diameter), Some(depth)] if diameter > 0.0 && depth > 0.0 => Some([diameter, depth]),
            _ => None,
        };
        let mut binary = Vec::new();
        if let Some(pairs) = equation.and_then(|equation| equation["binary-a"].as_hash()) {
            for (other, value) in pairs {
                let first = value.as_vec().and_then(|terms| terms.first()).unwrap_or(value);
                let value = units.quantity_of(first, Unit::Attraction);
                let (Some(other), Some(value)) = (text(other), value) else {
                    return Err(fault("binary-a has an entry that is no name with a number"));
                };
                binary.push((other, value));
            }
        }
        let species = Species {
            molar_mass: molar_mass(&entry["composition"]).map_err(|message| fault(&message))?,
            critical,
            dipole: given(transport, "dipole", Unit::None)?.unwrap_or(0.0),
            association: association(&name),
            lennard_jones,
            thermo: thermo(&entry["thermo"]).map_err(|message| fault(&message))?,
            name,
        };
        Ok(Entry { species, binary })
    }

    /// Returns a in Pa m⁶/mol²; NaN where there are no critical data, whose pairs have no k_ij.
    fn attraction(&self) -> f64 {
        self.species.critical.map_or(f64::NAN, |critical| {
            let thermal = GAS_CONSTANT * critical.temperature;
            OMEGA_A * thermal * thermal / critical.pressure
        })
    }
}

/// Returns a scalar as text. A name like `NO` is a text in YAML 1.2.
fn text(value: &Yaml) -> Option<String> {
    match value {
        Yaml::String(text) | Yaml::Real(text) => Some(text.clone()),
        Yaml::Integer(number) => Some(number.to_string()),
        Yaml::Boolean(is) => Some(is.to_string()),
        _ => None,
    }
}

fn shown(value: &Yaml) -> String {
    text(value).unwrap_or_else(|| "no scalar".to_owned())
}

fn number(value: &Yaml) -> Option<f64> {
    text(value)?.parse().ok()
}

/// Returns the molar mass in kg/mol of a composition of elements.
fn molar_mass(composition: &Yaml) -> Result<f64, String> {
    let elements = composition.as_hash().ok_or("it has no composition")?;
    let mut sum = 0.0;
    for (element, count) in elements {
        let (name, count) = (shown(element), number(count).ok_or("its composition has no numbers")?);
        // An electron has next to no mass.
        if name == "E" {
            continue;
        }
        let known = ELEMENTS.iter().find(|(known, _)| known.eq_ignore_ascii_case(&name));
        let (_, weight) = known.ok_or_else(|| {
            let known: Vec<&str> = ELEMENTS.iter().map(|(known, _)| *known).collect();
            format!("its composition has an element {name}; those known are {}", known.join(", "))
        })?;
        sum += weight * count;
    }
    Ok(sum / 1000.0)
}

/// Returns polynomials; those of one range hold on both sides of it.
fn thermo(thermo: &Yaml) -> Result<Nasa7, String> {
    if thermo["model"].as_str() != Some("NASA7") {
        return Err("its thermo is not of the model NASA7".to_owned());
    }
    let numbers = |list: &Yaml| -> Option<Vec<f64>> { list.as_vec()?.iter().map(number).collect() };
    let ranges = numbers(&thermo["temperature-ranges"]).ok_or("it has no temperature-ranges")?;
    let data = thermo["data"].as_vec().ok_or("it has no data of polynomials")?;
    let polynomials: Option<Vec<[f64; 7]>> =
        data.iter().map(|one| numbers(one).and_then(|one| one.try_into().ok())).collect();
    let polynomials = polynomials.ok_or("a polynomial does not have seven numbers")?;
    match (&ranges[..], &polynomials[..]) {
        (&[lowest, middle, highest], &[low, high]) => Ok(Nasa7 { lowest, middle, highest, low, high }),
        (&[lowest, highest], &[one]) => Ok(Nasa7 { lowest, middle: highest, highest, low: one, high: one }),
        _ => Err("it has other than one or two ranges with a polynomial each".to_owned()),
    }
}

/// Kinds of quantities, which say what units they may have.
#[derive(Clone, Copy)]
enum Unit {
    None,
    Temperature,
    Pressure,
    MolarVolume,
    Attraction,
    Angstrom,
}

const PRESSURES: &[(&str, f64)] = &[("Pa", 1.0), ("kPa", 1e3), ("MPa", 1e6), ("bar", 1e5), ("atm", 101325.0)];
const LENGTHS: &[(&str, f64)] = &[("m", 1.0), ("dm", 0.1), ("cm", 0.01), ("mm", 1e-3)];
const QUANTITIES: &[(&str, f64)] = &[("mol", 1.0), ("kmol", 1e3), ("gmol", 1.0)];

impl Units {
    fn of(units: &Yaml) -> Result<Units> {
        let known = |key: &'static str, default: &str, table: &[(&str, f64)]| {
            let unit = units[key].as_str().unwrap_or(default);
            let found = table.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
            found.ok_or_else(|| {
                Error::unknown("unit", format!("{key}: {unit}"), table.iter().map(|(name, _)| name))
            })
        };
        Ok(Units {
            length: known("length", "m", LENGTHS)?,
            quantity: known("quantity", "kmol", QUANTITIES)?,
            pressure: known("pressure", "Pa", PRESSURES)?,
        })
    }

    /// Returns a quantity in SI, per mole (a diameter in Å): a number in the file's units, or with a unit.
    fn quantity_of(self, value: &Yaml, unit: Unit) -> Option<f64> {
        let text = text(value)?;
        let mut words = text.split_whitespace();
        let (number, unit_given) = (words.next()?.parse::<f64>().ok()?, words.collect::<String>());
        let factor = match (unit, unit_given.as_str()) {
            (Unit::None | Unit::Temperature | Unit::Angstrom, "") | (Unit::Temperature, "K") => 1.0,
            (Unit::Angstrom, "angstrom") => 1.0,
            (Unit::Pressure, "") => self.pressure,
            (Unit::Pressure, unit) => PRESSURES.iter().find(|(name, _)| *name == unit)?.1,
            (Unit::MolarVolume, "") => self.length.powi(3) / self.quantity,
            (Unit::MolarVolume, unit) => volume(unit)?,
            (Unit::Attraction, "") => self.pressure * (self.length.powi(3) / self.quantity).powi(2),
            (Unit::Attraction, unit) => attraction(unit)?,
            _ => return None,
        };
        Some(number * factor)
    }
}

/// Returns a unit like `cm^3/mol` in m³/mol.
fn volume(unit: &str) -> Option<f64> {
    let (length, quantity) = unit.split_once('/')?;
    let length = LENGTHS.iter().find(|(name, _)| Some(*name) == length.strip_suffix("^3"))?.1;
    Some(length.powi(3) / QUANTITIES.iter().find(|(name, _)| *name == quantity)?.1)
}

/// Returns a unit like `Pa*m^6/kmol^2` in Pa m⁶/mol².
fn attraction(unit: &str) -> Option<f64> {
    let (pressure, rest) = unit.split_once('*')?;
    let pressure = PRESSURES.iter().find(|(name, _)| *name == pressure)?.1;
    let (length, quantity) = rest.split_once('/')?;
    let length = LENGTHS.iter().find(|(name, _)| Some(*name) == length.strip_suffix("^6"))?.1;
    let quantity = QUANTITIES.iter().find(|(name, _)| Some(*name) == quantity.strip_suffix("^2"))?.1;
    Some(pressure * length.powi(6) / (quantity * quantity))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
units: {length: cm, quantity: mol, activation-energy: cal/mol}
species:
- name: NO
  composition: {N: 1, O: 1}
  thermo:
    model: NASA7
    temperature-ranges: [200.0, 1000.0, 6000.0]
    data:
    - [4.21859896, -4.63988124e-03, 1.10443049e-05, -9.34055507e-09, 2.80554874e-12, 9845.09964, 2.28061001]
    - [3.26071234, 1.19101135e-03, -4.29122646e-07, 6.94481463e-11, -4.03295681e-15, 9921.43132, 6.36900518]
  critical-parameters:
    critical-temperature: 180.0 K
    critical-pressure: 64.848 bar
    critical-molar-volume: 58
    acentric-factor: 0.588
  transport: {model: gas, diameter: 3.621, well-depth: 97.53, dipole: 0.0}
- name: CO2
  composition: {C: 1, O: 2}
  thermo:
    model: NASA7
    temperature-ranges: [200.0, 1000.0, 3500.0]
    data:
    - [2.35677352, 8.98459677e-03, -7.12356269e-06, 2.45919022e-09, -1.43699548e-13, -4.83719697e+04, 9.90105222]
    - [3.85746029, 4.41437026e-03, -2.21481404e-06, 5.23490188e-10, -4.72084164e-14, -4.8759166e+04, 2.27163806]
  equation-of-state:
    model: Peng-Robinson
    a: [3.958134E+11, 0]
    b: 26.6275
    w_ac: 0.228
    binary-a: {NO: 2.0e+11}
- name: X
  composition: {H: 1}
  thermo:
    model: NASA7
    temperature-ranges: [200.0, 1000.0]
    data:
    - [2.5, 0, 0, 0, 0, 25473.66, -0.44]
";

    #[test]
    fn species_are_read_in_their_units() {
        let (table, interactions) = Table::from_cantera(FILE).unwrap();
        let no = table.find("NO").unwrap();
        let critical = no.critical().unwrap();
        assert!((no.molar_mass - 0.030006).abs() < 1e-15);
        assert!((critical.pressure - 6484800.0).abs() < 1e-8 && (critical.volume - 58e-6).abs() < 1e-18);
        let built = Table::builtin().unwrap();
        assert_eq!(no.thermo.high[5], 9921.43132);
        assert_eq!(table.find("CO2").unwrap().thermo, built.find("CO2").unwrap().thermo);
        // The file's a and b are of rounded critical data.
        let co2 = table.find("CO2").unwrap().critical().unwrap();
        assert!(
            (co2.temperature - 304.2).abs() < 0.5 && (co2.pressure / 7.39e6 - 1.0).abs() < 2e-3,
            "{co2:?}"
        );
        let [(i, j, value)] = interactions.pairs() else { panic!("{interactions:?}") };
        assert_eq!((i.as_str(), j.as_str()), ("CO2", "NO"));
        // 2e11 cm⁶ Pa/mol² is 0.2 in SI.
        let thermal = GAS_CONSTANT * 180.0;
        let a = 0.3958134 * OMEGA_A * thermal * thermal / 6484800.0;
        assert!((value - (1.0 - 0.2 / a.sqrt())).abs() < 1e-9, "{value}");
        let bare = table.find("X").unwrap();
        assert_eq!((bare.thermo.middle, bare.critical), (1000.0, None));
        assert!(bare.critical().unwrap_err().to_string().contains("closure"));
    }

    #[test]
    fn faults_name_the_species() {
        let words =
            |from: &str, to: &str| Table::from_cantera(&FILE.replace(from, to)).unwrap_err().to_string();
        assert!(words("64.848 bar", "64.848 psi").contains("critical-pressure"));
        assert!(words("{C: 1, O: 2}", "{C: 1, Uo: 2}").contains("element Uo"));
        assert!(words("model: NASA7", "model: Shomate").contains("NASA7"));
        assert!(words("species:", "spices:").contains("list of species"));
        assert!(words("[3.958134E+11, 0]", "[3.958134E+11, 2]").contains("temperature"));
        assert!(words("binary-a: {NO:", "binary-a: {HE:").contains("HE"));
        assert!(words("length: cm", "length: inch").contains("inch"));
    }
}

//! Binary interaction parameters k_ij of Peng–Robinson's mixing rule.

use std::collections::{HashMap, HashSet};

use abide_core::{Error, Result};

use crate::Table;

/// The interaction parameters of pairs of species; those of pairs that are not listed are 0.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Interactions {
    pairs: Vec<(String, String, f64)>,
}

impl Interactions {
    /// Makes interactions of pairs of names with their k_ij. A pair may stand in either order.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] for a name that is not in the table, [`Error::Invalid`] for a pair of one species with
    /// itself or for a pair that has two values, [`Error::Limit`] for a value that is not finite.
    pub fn new(
        table: &Table,
        pairs: impl IntoIterator<Item = (String, String, f64)>,
    ) -> Result<Interactions> {
        let mut known: Vec<(String, String, f64)> = Vec::new();
        let names: HashSet<&str> = table.species().iter().map(|species| species.name.as_str()).collect();
        let mut values: HashMap<[String; 2], f64> = HashMap::new();
        for (i, j, value) in pairs {
            if let Some(unknown) = [&i, &j].into_iter().find(|name| !names.contains(name.as_str())) {
                table.find(unknown)?;
            }
            let what = format!("k_ij of {i} and {j}");
            if !value.is_finite() {
                return Err(Error::limit(what, value, "a finite number", "correct the list"));
            }
            if i == j && value != 0.0 {
                let reason = "it is of a species with itself, which is 0 by definition";
                return Err(Error::invalid(what, reason, "leave it out"));
            }
            let mut both = [i.clone(), j.clone()];
            both.sort_unstable();
            match values.insert(both, value) {
                Some(other) if other != value => {
                    let reason = format!("it is given twice, as {other} and as {value}");
                    return Err(Error::invalid(what, reason, "leave one out"));
                }
                Some(_) => {}
                None => known.push((i, j, value)),
            }
        }
        Ok(Interactions { pairs: known })
    }

    /// Reads a list of comma-separated values with columns `i`, `j` (names) and `kij`; lines that begin with `#`
    /// are comments. The errors are those of [`Interactions::new`], and [`Error::Invalid`] for a list that
    /// cannot be read.
    pub fn from_csv(table: &Table, text: &str) -> Result<Interactions> {
        let fault = |message: String| Error::invalid("the list of k_ij", message, "correct the list");
        let mut reader = csv::ReaderBuilder::new()
            .comment(Some(b'#'))
            .trim(csv::Trim::All)
            .from_reader(text.trim_start_matches('\u{feff}').as_bytes());
        let names = reader.headers().map_err(|e| fault(e.to_string()))?.clone();
        let column = |name: &str| {
            let found = names.iter().position(|known| known == name);
            found.ok_or_else(|| fault(format!("it has no column {name}; its columns are i, j and kij")))
        };
        let columns = [column("i")?, column("j")?, column("kij")?];
        let mut pairs = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|e| fault(e.to_string()))?;
            let [i, j, value] = columns.map(|column| record.get(column).unwrap_or_default().to_owned());
            let wrong = |_| fault(format!("kij of {i} and {j}: `{value}` is no number"));
            let value = value.parse::<f64>().map_err(wrong)?;
            pairs.push((i, j, value));
        }
        Interactions::new(table, pairs)
    }

    /// Returns the pairs with their values.
    pub fn pairs(&self) -> &[(String, String, f64)] {
        &self.pairs
    }

    /// Returns the values that are not 0 between the named species, as numbers `i < j` of names with the value,
    /// in order. Pairs with other species are left out.
    pub(crate) fn among(&self, names: &[&str]) -> Vec<(usize, usize, f64)> {
        let number = |name: &str| names.iter().position(|known| *known == name);
        let mut found: Vec<(usize, usize, f64)> = self
            .pairs
            .iter()
            .filter(|(.., value)| *value != 0.0)
            .filter_map(|(i, j, value)| {
                let (i, j) = (number(i)?, number(j)?);
                Some((i.min(j), i.max(j), *value))
            })
            .collect();
        found.sort_by_key(|&(i, j, _)| (i, j));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_and_restricted() {
        let table = Table::builtin().unwrap();
        let read = |text: &str| Interactions::from_csv(&table, text);
        let text = "# of somewhere\ni,j,kij\nCH4,CO2,0.0978\nH2,CO2,-0.1622\nCO2,CH4,0.0978\nN2,O2,0\n";
        let interactions = read(text).unwrap();
        assert_eq!(interactions.pairs().len(), 3);
        assert_eq!(interactions.among(&["CO2", "N2", "CH4", "O2"]), [(0, 2, 0.0978)]);
        let words = |text: &str| read(text).unwrap_err().to_string();
        assert!(words("i,j,kij\nCH4,XE,0.1\n").contains("`XE`"));
        assert!(words("i,j,kij\nCH4,CO2,0.1\nCO2,CH4,0.2\n").contains("given twice"));
        assert!(words("i,j,kij\nCH4,CH4,0.1\n").contains("itself"));
        assert!(words("i,j,kij\nCH4,CO2,x\n").contains("`x` is no number"));
        assert!(words("i,j\nCH4,CO2\n").contains("no column kij"));
        assert!(words("i,j,kij\nCH4,CO2,inf\n").contains("finite"));
    }
}

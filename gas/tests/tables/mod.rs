//! The tables of states beside the tests: 34-digit values of the formulas, computed with mpmath.

use std::collections::HashMap;

/// The tables: pure methane, and a part of those of ten species.
pub const STATES: [&str; 2] =
    [include_str!("../data/states_CH4.csv"), include_str!("../data/states_lox10_part.csv")];

/// A row of a table.
pub struct Row {
    values: HashMap<String, f64>,
    /// The mole fractions, in the order of the species.
    pub fractions: Vec<f64>,
}

impl Row {
    /// Returns whether there is a value in a column.
    pub fn has(&self, column: &str) -> bool {
        self.values.contains_key(column)
    }

    /// Returns the value in a column.
    pub fn of(&self, column: &str) -> f64 {
        self.values[column]
    }
}

/// Returns the species and the rows of a table.
pub fn read(text: &str) -> (Vec<&str>, Vec<Row>) {
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let species: Vec<(usize, &str)> =
        names.iter().enumerate().filter_map(|(i, name)| Some((i, name.strip_prefix("x_")?))).collect();
    let rows = lines.map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        let numbers =
            names.iter().zip(&cells).filter_map(|(name, cell)| Some((name.to_string(), cell.parse().ok()?)));
        Row {
            values: numbers.collect(),
            fractions: species.iter().map(|(i, _)| cells[*i].parse().unwrap()).collect(),
        }
    });
    (species.iter().map(|(_, name)| *name).collect(), rows.collect())
}

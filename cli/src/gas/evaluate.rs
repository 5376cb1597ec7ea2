//! States in, properties out: checks, the program on a backend, and lines of the table.

use std::io::Write as _;

use abide::gas::{Columns, Mixture, Points, Property, States, check_state};
use abide::{Array, Choice, Error, Result};
use rayon::prelude::*;

use super::notes::Remarks;

/// The properties in a table, unless others are asked for; those that are given are left out.
const NAMES: [&str; 10] = ["T", "p", "rho", "h", "s", "cp", "cv", "c", "mu", "lambda"];

/// The property by which rows with three molar volumes are found.
const ROOTS: &str = "roots";

/// What is computed of each state.
pub struct Wanted {
    pub states: States,
    /// The columns of the table after the two given quantities: the property and the name.
    pub columns: Vec<(Property, String)>,
    properties: Vec<Property>,
}

impl Wanted {
    /// Takes properties by their names, or those of [`NAMES`].
    pub fn new(gas: &Mixture, states: States, names: &[String]) -> Result<Wanted> {
        let given = states.given.quantities;
        if let Some(name) = names.iter().find(|name| given.contains(&name.as_str())) {
            let reason = format!("{} give the states", given.join(" and "));
            return Err(Error::invalid(format!("property {name}"), reason, "leave it out"));
        }
        let own = |name: &&str| !given.contains(name);
        let names: Vec<&str> = match names {
            [] => NAMES.into_iter().filter(own).collect(),
            names => names.iter().map(String::as_str).collect(),
        };
        let properties = Property::named(&names)?;
        let columns = |property: &Property| {
            let property = *property;
            property.columns(gas).into_iter().map(move |name| (property, name))
        };
        Ok(Wanted { states, columns: properties.iter().flat_map(columns).collect(), properties })
    }

    /// Returns the names of all columns.
    pub fn names(&self) -> Vec<&str> {
        let own = self.columns.iter().map(|(_, name)| name.as_str());
        self.states.given.quantities.into_iter().chain(own).collect()
    }

    /// Returns the line of names of a table.
    pub fn header(&self) -> String {
        format!("{}\n", self.names().join(","))
    }
}

/// Lines that a thread writes at a time.
const LINES: usize = 4096;

/// States of rows one after another, and where they stand.
#[derive(Default)]
pub struct Batch {
    /// The two given quantities.
    pub given: [Vec<f64>; 2],
    /// Of each species.
    pub fractions: Vec<Vec<f64>>,
}

impl Batch {
    /// Makes an empty batch of states of some species.
    pub fn new(species: usize) -> Batch {
        Batch { fractions: vec![Vec::new(); species], ..Batch::default() }
    }

    pub fn len(&self) -> usize {
        self.given[0].len()
    }

    /// Sets the number of states; new ones are of the first's values, which need no further check.
    fn resize(&mut self, count: usize) {
        let columns = self.given.iter_mut().chain(&mut self.fractions);
        columns.for_each(|column| column.resize(count, column.first().copied().unwrap_or(0.0)));
    }
}

/// A mixture that is evaluated batch after batch.
pub struct Evaluation<'a> {
    gas: &'a Mixture,
    wanted: &'a Wanted,
    choice: Choice,
    points: Option<Points>,
    /// Rows done so far.
    rows: u64,
    pub remarks: Remarks,
}

/// The values of [`Wanted::columns`], a column each.
pub type Values = Vec<Vec<f64>>;

impl<'a> Evaluation<'a> {
    pub fn new(gas: &'a Mixture, wanted: &'a Wanted, choice: Choice) -> Self {
        Evaluation { gas, wanted, choice, points: None, rows: 0, remarks: Remarks::default() }
    }

    /// Checks a batch and returns the values of its states. All batches but the last have the same number of states.
    /// `row` names a state's row in an error.
    pub fn run(&mut self, batch: &mut Batch, row: impl Fn(usize) -> String + Sync) -> Result<Values> {
        let count = batch.len();
        if count == 0 {
            return Ok(vec![Vec::new(); self.wanted.columns.len()]);
        }
        let (species, states) = (self.gas.species(), &*batch);
        let parts = (0..count.div_ceil(LINES)).into_par_iter().map(|part| {
            let numbers = part * LINES..((part + 1) * LINES).min(count);
            let of = |number| {
                let given = [0, 1].map(|at| states.given[at][number]);
                let fraction = |one: usize| states.fractions[one][number];
                check_state(species, &self.wanted.states, given, fraction, || row(number))
            };
            numbers.map(of).try_fold(0, |sum, is_below| Ok(sum + u64::from(is_below?)))
        });
        // The first error in the order of the rows.
        let below = parts.collect::<Vec<Result<u64>>>().into_iter().sum::<Result<u64>>()?;
        self.remarks.below += below;
        let points = match &mut self.points {
            Some(points) => points,
            none => {
                let mut properties = self.wanted.properties.clone();
                if properties.iter().all(|property| property.name != ROOTS) {
                    properties.extend(Property::named(&[ROOTS])?);
                }
                none.insert(Points::new(self.gas, self.wanted.states, &properties, count, self.choice)?)
            }
        };
        batch.resize(points.count());
        let column = |values: &mut Vec<f64>| Array::F64(std::mem::take(values));
        let states = Columns {
            given: batch.given.each_mut().map(column),
            fractions: batch.fractions.iter_mut().map(column).collect(),
        };
        let values = points.evaluate(&states)?;
        // The batch has its memory back, and its states without those that filled it up.
        let back = |array: Array, to: &mut Vec<f64>| {
            if let Array::F64(mut values) = array {
                values.truncate(count);
                *to = values;
            }
        };
        let Columns { given, fractions } = states;
        let all = given.into_iter().chain(fractions);
        all.zip(batch.given.iter_mut().chain(&mut batch.fractions)).for_each(|(array, to)| back(array, to));
        let mut values: Values = values
            .into_iter()
            .map(|array| {
                let mut to = Vec::new();
                back(array, &mut to);
                to
            })
            .collect();
        let names = self.wanted.columns.iter().map(|(property, _)| property.name).chain([ROOTS]);
        let columns: Vec<(&str, usize)> = names.zip(0..values.len()).collect();
        for number in 0..count {
            let row = self.rows + number as u64 + 1;
            let of = |wanted: &str| {
                let found = columns.iter().find(|(name, _)| *name == wanted);
                found.map(|(_, column)| values[*column][number])
            };
            // Where the temperature was given, it was checked before.
            if let Some(t) = of("T") {
                let there = || (0..species.len()).filter(|&one| batch.fractions[one][number] > 0.0);
                self.remarks.below += u64::from(there().any(|one| t < species[one].thermo.lowest));
                if there().any(|one| t > species[one].thermo.highest) {
                    self.remarks.above.push(row);
                }
            }
            let Remarks { three, viscosity, conductivity, lost, .. } = &mut self.remarks;
            for (holds, rows) in [
                (of(ROOTS).is_some_and(|count| count > 1.0), three),
                (of("mu").is_some_and(|mu| mu <= 0.0), viscosity),
                (of("lambda").is_some_and(|lambda| lambda <= 0.0), conductivity),
                (values.iter().any(|column| !column[number].is_finite()), lost),
            ] {
                if holds {
                    rows.push(row);
                }
            }
        }
        values.truncate(self.wanted.columns.len());
        self.rows += count as u64;
        Ok(values)
    }

    /// Returns the rows done so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns what computes the properties, once a state has been computed.
    pub fn points(&mut self) -> Option<&mut Points> {
        self.points.as_mut()
    }
}

/// Returns the lines of states and their values, with 17 significant digits.
pub fn lines(batch: &Batch, values: &Values) -> Vec<Vec<u8>> {
    let columns: Vec<&[f64]> =
        batch.given.iter().map(Vec::as_slice).chain(values.iter().map(Vec::as_slice)).collect();
    let part = |part: usize| {
        let mut text = Vec::with_capacity(LINES * 24 * columns.len());
        for row in part * LINES..((part + 1) * LINES).min(batch.len()) {
            for (number, column) in columns.iter().enumerate() {
                let separator = if number == 0 { "" } else { "," };
                // Writing to a vector cannot fail.
                let _ = write!(text, "{separator}{:.16e}", column[row]);
            }
            text.push(b'\n');
        }
        text
    };
    (0..batch.len().div_ceil(LINES)).into_par_iter().map(part).collect()
}

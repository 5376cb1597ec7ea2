//! States in, properties out: checks, the program on a backend, and lines of the table.

use std::io::Write as _;

use abide::gas::{Columns, Mixture, Points, Property, check_state};
use abide::{Array, Choice, Result};
use rayon::prelude::*;

use super::notes::Remarks;

/// The properties in a table, after T and p.
pub const NAMES: [&str; 8] = ["rho", "h", "s", "cp", "cv", "c", "mu", "lambda"];

/// The property by which rows with three molar volumes are found.
const ROOTS: &str = "roots";

/// Lines that a thread writes at a time.
const LINES: usize = 4096;

/// States of rows one after another, and where they stand.
#[derive(Default)]
pub struct Batch {
    pub temperature: Vec<f64>,
    pub pressure: Vec<f64>,
    /// Of each species.
    pub fractions: Vec<Vec<f64>>,
}

impl Batch {
    /// Makes an empty batch of states of some species.
    pub fn new(species: usize) -> Batch {
        Batch { fractions: vec![Vec::new(); species], ..Batch::default() }
    }

    pub fn len(&self) -> usize {
        self.temperature.len()
    }

    /// Sets the number of states; new ones are of the first's values, which need no further check.
    fn resize(&mut self, count: usize) {
        let columns = [&mut self.temperature, &mut self.pressure].into_iter().chain(&mut self.fractions);
        columns.for_each(|column| column.resize(count, column.first().copied().unwrap_or(0.0)));
    }
}

/// A mixture that is evaluated batch after batch.
pub struct Evaluation<'a> {
    gas: &'a Mixture,
    choice: Choice,
    points: Option<Points>,
    /// Rows done so far.
    rows: u64,
    pub remarks: Remarks,
}

/// The values of [`NAMES`], a column each.
pub type Values = Vec<Vec<f64>>;

impl<'a> Evaluation<'a> {
    pub fn new(gas: &'a Mixture, choice: Choice) -> Self {
        Evaluation { gas, choice, points: None, rows: 0, remarks: Remarks::default() }
    }

    /// Checks a batch and returns the values of its states. All batches but the last have the same number of states.
    /// `row` names a state's row in an error.
    pub fn run(&mut self, batch: &mut Batch, row: impl Fn(usize) -> String + Sync) -> Result<Values> {
        let count = batch.len();
        if count == 0 {
            return Ok(vec![Vec::new(); NAMES.len()]);
        }
        let (species, states) = (self.gas.species(), &*batch);
        let parts = (0..count.div_ceil(LINES)).into_par_iter().map(|part| {
            let numbers = part * LINES..((part + 1) * LINES).min(count);
            let of = |number| {
                let (t, p) = (states.temperature[number], states.pressure[number]);
                check_state(species, t, p, |one| states.fractions[one][number], || row(number))
            };
            numbers.map(of).try_fold(0, |sum, is_below| Ok(sum + u64::from(is_below?)))
        });
        // The first error in the order of the rows.
        let below = parts.collect::<Vec<Result<u64>>>().into_iter().sum::<Result<u64>>()?;
        self.remarks.below += below;
        let points = match &mut self.points {
            Some(points) => points,
            none => {
                let names: Vec<&str> = NAMES.into_iter().chain([ROOTS]).collect();
                none.insert(Points::new(self.gas, &Property::named(&names)?, count, self.choice)?)
            }
        };
        batch.resize(points.count());
        let column = |values: &mut Vec<f64>| Array::F64(std::mem::take(values));
        let states = Columns {
            temperature: column(&mut batch.temperature),
            pressure: column(&mut batch.pressure),
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
        let Columns { temperature, pressure, fractions } = states;
        back(temperature, &mut batch.temperature);
        back(pressure, &mut batch.pressure);
        fractions.into_iter().zip(&mut batch.fractions).for_each(|(array, to)| back(array, to));
        let mut values: Values = values
            .into_iter()
            .map(|array| {
                let mut to = Vec::new();
                back(array, &mut to);
                to
            })
            .collect();
        let roots = values.pop().unwrap_or_default();
        let [viscosity, conductivity] = [&values[6], &values[7]];
        for number in 0..count {
            let row = self.rows + number as u64 + 1;
            let Remarks { three, viscosity: mu, conductivity: lambda, lost, .. } = &mut self.remarks;
            for (holds, rows) in [
                (roots[number] > 1.0, three),
                (viscosity[number] <= 0.0, mu),
                (conductivity[number] <= 0.0, lambda),
                (values.iter().any(|column| !column[number].is_finite()), lost),
            ] {
                if holds {
                    rows.push(row);
                }
            }
        }
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

/// Returns the line of names of a table.
pub fn header() -> String {
    format!("T,p,{}\n", NAMES.join(","))
}

/// Returns the lines of states and their values, with 17 significant digits.
pub fn lines(batch: &Batch, values: &Values) -> Vec<Vec<u8>> {
    let columns: Vec<&[f64]> = [&batch.temperature[..], &batch.pressure[..]]
        .into_iter()
        .chain(values.iter().map(Vec::as_slice))
        .collect();
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

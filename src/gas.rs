//! Properties of real-gas mixtures: all of [`abide_gas`], and their values at many states, computed by a backend.

mod flow;

pub use abide_gas::*;
pub use flow::Beginning;

use abide_core::plan::Execution;

use crate::backend::{Choice, Opened};
use crate::{Array, DType, Error, Result, Simulation};

/// States of a mixture, a column for each of their quantities.
#[derive(Debug, Clone, PartialEq)]
pub struct Columns {
    /// The two given quantities, as temperatures in K and pressures in Pa.
    pub given: [Array; 2],
    /// Fractions of each species.
    pub fractions: Vec<Array>,
}

/// A mixture's properties at so many states at once: the program of [`States::program`] in f64 on a backend.
///
/// ```
/// use abide::gas::{Columns, Mixture, Points, Property, States, Table};
/// use abide::{Array, Choice};
///
/// let gas = Mixture::of(&Table::builtin()?, &["CH4"])?;
/// let states = Columns {
///     given: [Array::F64(vec![150.0, 300.0]), Array::F64(vec![5e6, 5e6])],
///     fractions: vec![Array::F64(vec![1.0, 1.0])],
/// };
/// let mut points = Points::new(&gas, States::LOOPS, &Property::named(&["rho"])?, 2, Choice::CPU)?;
/// let [Array::F64(density)] = &points.evaluate(&states)?[..] else { unreachable!() };
/// assert!(density[0] > 300.0 && density[1] < 40.0);
/// # Ok::<(), abide::Error>(())
/// ```
pub struct Points {
    simulation: Simulation,
    states: States,
    /// The fields of the properties.
    results: Vec<String>,
    species: Vec<String>,
    count: usize,
    seconds: f64,
}

impl Points {
    /// Makes the program for `count` states ready on a backend.
    ///
    /// # Errors
    ///
    /// Those of [`States::program`] and of a simulation's [`build`](crate::Builder::build).
    pub fn new(
        gas: &Mixture,
        states: States,
        properties: &[Property],
        count: usize,
        choice: Choice,
    ) -> Result<Points> {
        Points::begin(gas, states, properties, count, |builder| builder.backend(choice))
    }

    /// Makes the program ready on a backend that is open.
    ///
    /// # Errors
    ///
    /// Those of [`Points::new`].
    pub fn on(
        gas: &Mixture,
        states: States,
        properties: &[Property],
        count: usize,
        opened: &Opened,
    ) -> Result<Points> {
        Points::begin(gas, states, properties, count, |builder| builder.on(opened))
    }

    fn begin(
        gas: &Mixture,
        states: States,
        properties: &[Property],
        count: usize,
        on: impl FnOnce(crate::Builder) -> crate::Builder,
    ) -> Result<Points> {
        let program = states.program(gas, properties)?;
        let builder = Simulation::builder(program).size(&[count]).dtype(DType::F64);
        // Nothing is read from neighbours and a single step is done: there is nothing to keep on the chip.
        let simulation = on(builder.execution(Execution::Stepwise)).build()?;
        let species = gas.species().iter().map(|species| species.name.clone()).collect();
        let results = properties.iter().flat_map(|property| property.fields(gas)).collect();
        Ok(Points { simulation, states, results, species, count, seconds: 0.0 })
    }

    /// Returns the values of the properties at states, a column each in the order of [`Property::columns`].
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] for other than the promised number of columns or states; those of the device.
    pub fn evaluate(&mut self, states: &Columns) -> Result<Vec<Array>> {
        let Columns { given, fractions } = states;
        if fractions.len() != self.species.len() {
            let change = format!("give one each for {}", self.species.join(", "));
            return Err(Error::limit("columns of fractions", fractions.len(), self.species.len(), change));
        }
        for (name, values) in self.states.given.quantities.iter().zip(given) {
            self.simulation.write(name, values)?;
        }
        let symbol = self.states.basis.symbol();
        for (number, values) in fractions.iter().enumerate() {
            self.simulation.write(&format!("{symbol}[{number}]"), values)?;
        }
        self.seconds += self.simulation.advance(1)?;
        self.results.iter().map(|name| self.simulation.field(name)).collect()
    }

    /// Returns the most states to evaluate at once: enough for a device, little for memory. `columns` counts those of states and
    /// properties.
    pub fn most(columns: usize) -> usize {
        const VALUES: usize = 1 << 23;
        const STATES: usize = 1 << 18;
        (VALUES / columns.max(1)).clamp(1, STATES)
    }

    /// Returns how many states to evaluate at once where there are so many ([`Points::most`]).
    pub fn batch(states: usize, columns: usize) -> usize {
        let most = Points::most(columns);
        states.clamp(1, most).next_power_of_two().min(most)
    }

    /// Returns the values of the properties at any number of states, some after others: `states` are the columns of the two given
    /// quantities and of the fractions.
    ///
    /// # Errors
    ///
    /// Those of [`Points::evaluate`]; [`Error::Limit`] where there is no memory for the values.
    pub fn evaluate_all(&mut self, states: &[Vec<f64>]) -> Result<Vec<Vec<f64>>> {
        let [first, second, fractions @ ..] = states else {
            return Err(Error::limit("columns of states", states.len(), "3 at least", "give all quantities"));
        };
        let (count, most) = (first.len(), self.count);
        let column = |_| abide_core::memory::reserved(count, "properties", "give fewer states at once");
        let mut results: Vec<Vec<f64>> = (0..self.results.len()).map(column).collect::<Result<_>>()?;
        for begin in (0..count).step_by(most) {
            let now = most.min(count - begin);
            let part = |column: &Vec<f64>| {
                let mut part = column[begin..begin + now].to_vec();
                // States that fill up are like one that is there.
                part.resize(most, column[begin]);
                Array::F64(part)
            };
            let part = Columns {
                given: [part(first), part(second)],
                fractions: fractions.iter().map(part).collect(),
            };
            for (result, values) in results.iter_mut().zip(self.evaluate(&part)?) {
                if let Array::F64(values) = values {
                    result.extend_from_slice(&values[..now]);
                }
            }
        }
        Ok(results)
    }

    /// Returns the number of states that are evaluated at once.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the seconds that the device took so far, without loading and reading back.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// Returns the simulation that computes the properties.
    pub fn simulation(&mut self) -> &mut Simulation {
        &mut self.simulation
    }
}

/// Checks the states of an array of points, given by the columns of their two quantities and of the fractions, as [`check_state`]
/// does one; errors name a point by its indices.
///
/// # Errors
///
/// Those of [`check_state`].
pub fn check_points(
    species: &[Species],
    states: &States,
    columns: &[Vec<f64>],
    extents: &[usize],
) -> Result<()> {
    let [first, second, fractions @ ..] = columns else {
        return Err(Error::limit("columns of states", columns.len(), "3 at least", "give all quantities"));
    };
    let name = |mut point: usize| {
        let mut index = vec![0; extents.len()];
        for (at, extent) in index.iter_mut().zip(extents).rev() {
            (*at, point) = (point % extent, point / extent);
        }
        format!("point {index:?}")
    };
    let check = |point: usize| {
        let given = [first[point], second[point]];
        check_state(species, states, given, |number| fractions[number][point], || name(point)).map(drop)
    };
    (0..first.len()).try_for_each(check)
}

/// The most by which fractions may miss 1.
const TOLERANCE: f64 = 1e-9;

/// Refuses a state that has no properties, and returns whether it is given to lie below a species' polynomials. `fraction` returns
/// the fraction of a species by its number, `state` the state's name in an error.
///
/// ```
/// use abide::gas::{States, Table, check_state};
///
/// let methane = [Table::builtin()?.find("CH4")?.clone()];
/// let check = |t, p| check_state(&methane, &States::LOOPS, [t, p], |_| 1.0, || "a state".to_owned());
/// assert!(!check(300.0, 1e5)?);
/// assert!(check(-1.0, 1e5).is_err());
/// # Ok::<(), abide::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Limit`] for a temperature, a pressure or a density that is not above 0, an energy or an enthalpy that is not finite,
/// a temperature above a species' polynomials, and a fraction below 0; [`Error::Invalid`] for fractions that do not sum to 1 within 1e-9.
pub fn check_state(
    species: &[Species],
    states: &States,
    values: [f64; 2],
    fraction: impl Fn(usize) -> f64,
    state: impl Fn() -> String,
) -> Result<bool> {
    let Given { quantities, are_positive, .. } = states.given;
    for ((name, value), is_positive) in quantities.into_iter().zip(values).zip(are_positive) {
        if !(value.is_finite() && (value > 0.0 || !is_positive)) {
            let limit = if is_positive { "a finite number above 0" } else { "a finite number" };
            return Err(Error::limit(format!("{name} of {}", state()), value, limit, "correct the row"));
        }
    }
    let temperature = quantities.iter().position(|name| *name == "T").map(|at| values[at]);
    let (mut sum, mut is_below) = (0.0, false);
    for (number, Species { name, thermo, .. }) in species.iter().enumerate() {
        let x = fraction(number);
        if !(x.is_finite() && x >= 0.0) {
            let what = format!("{} fraction of {} in {}", states.basis, name, state());
            return Err(Error::limit(what, x, "0 to 1", "correct the row"));
        }
        sum += x;
        // A temperature that is found is not known here.
        if let (true, Some(temperature)) = (x > 0.0, temperature) {
            let Nasa7 { lowest, highest, .. } = *thermo;
            is_below |= temperature < lowest;
            if temperature > highest {
                let what = format!("T of {}", state());
                let limit = format!("{highest} K, up to which the polynomials of {} hold", name);
                return Err(Error::limit(what, temperature, limit, "lower it, or leave the species out"));
            }
        }
    }
    if (sum - 1.0).abs() > TOLERANCE {
        let reason = format!("they sum to {sum}");
        let change = format!("make them 1 within {TOLERANCE:e}");
        return Err(Error::invalid(format!("{} fractions of {}", states.basis, state()), reason, change));
    }
    Ok(is_below)
}

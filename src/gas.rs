//! Properties of real-gas mixtures: all of [`abide_gas`], and their values at many states, computed by a backend.

pub use abide_gas::*;

use abide_core::plan::Execution;

use crate::backend::{Choice, Opened};
use crate::{Array, DType, Error, Result, Simulation};

/// States of a mixture, a column for each of their quantities.
#[derive(Debug, Clone, PartialEq)]
pub struct Columns {
    /// Temperatures in K.
    pub temperature: Array,
    /// Pressures in Pa.
    pub pressure: Array,
    /// Mole fractions of each species.
    pub fractions: Vec<Array>,
}

/// A mixture's properties at so many states at once: the program of [`Mixture::program`] in f64 on a backend.
///
/// ```
/// use abide::gas::{Columns, Mixture, Points, Property, Table};
/// use abide::{Array, Choice};
///
/// let gas = Mixture::of(&Table::builtin()?, &["CH4"])?;
/// let states = Columns {
///     temperature: Array::F64(vec![150.0, 300.0]),
///     pressure: Array::F64(vec![5e6, 5e6]),
///     fractions: vec![Array::F64(vec![1.0, 1.0])],
/// };
/// let mut points = Points::new(&gas, &Property::named(&["rho"])?, 2, Choice::CPU)?;
/// let [Array::F64(density)] = &points.evaluate(&states)?[..] else { unreachable!() };
/// assert!(density[0] > 300.0 && density[1] < 40.0);
/// # Ok::<(), abide::Error>(())
/// ```
pub struct Points {
    simulation: Simulation,
    properties: Vec<Property>,
    species: Vec<String>,
    count: usize,
    seconds: f64,
}

impl Points {
    /// Makes the program for `count` states ready on a backend.
    ///
    /// # Errors
    ///
    /// Those of [`Mixture::program`] and of a simulation's [`build`](crate::Builder::build).
    pub fn new(gas: &Mixture, properties: &[Property], count: usize, choice: Choice) -> Result<Points> {
        Points::begin(gas, properties, count, |builder| builder.backend(choice))
    }

    /// Makes the program ready on a backend that is open.
    ///
    /// # Errors
    ///
    /// Those of [`Points::new`].
    pub fn on(gas: &Mixture, properties: &[Property], count: usize, opened: &Opened) -> Result<Points> {
        Points::begin(gas, properties, count, |builder| builder.on(opened))
    }

    fn begin(
        gas: &Mixture,
        properties: &[Property],
        count: usize,
        on: impl FnOnce(crate::Builder) -> crate::Builder,
    ) -> Result<Points> {
        let builder = Simulation::builder(gas.program(properties)?).size(&[count]).dtype(DType::F64);
        // Nothing is read from neighbours and a single step is done: there is nothing to keep on the chip.
        let simulation = on(builder.execution(Execution::Stepwise)).build()?;
        let species = gas.species().iter().map(|species| species.name.clone()).collect();
        Ok(Points { simulation, properties: properties.to_vec(), species, count, seconds: 0.0 })
    }

    /// Returns the values of the properties at states, in the order of the properties.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] for other than the promised number of columns or states; those of the device.
    pub fn evaluate(&mut self, states: &Columns) -> Result<Vec<Array>> {
        let Columns { temperature, pressure, fractions } = states;
        if fractions.len() != self.species.len() {
            let change = format!("give one each for {}", self.species.join(", "));
            return Err(Error::limit("columns of fractions", fractions.len(), self.species.len(), change));
        }
        self.simulation.write("T", temperature)?;
        self.simulation.write("p", pressure)?;
        for (number, values) in fractions.iter().enumerate() {
            self.simulation.write(&format!("x[{number}]"), values)?;
        }
        self.seconds += self.simulation.advance(1)?;
        self.properties.iter().map(|property| self.simulation.field(property.name)).collect()
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

/// The most by which mole fractions may miss 1.
const TOLERANCE: f64 = 1e-9;

/// Refuses a state that has no properties, and returns whether it lies below a species' polynomials. `fraction` returns the mole
/// fraction of a species by its number, `state` the state's name in an error.
///
/// ```
/// use abide::gas::{Table, check_state};
///
/// let methane = [Table::builtin()?.find("CH4")?.clone()];
/// assert!(!check_state(&methane, 300.0, 1e5, |_| 1.0, || "a state".to_owned())?);
/// assert!(check_state(&methane, -1.0, 1e5, |_| 1.0, || "a state".to_owned()).is_err());
/// # Ok::<(), abide::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Limit`] for a temperature or a pressure that is not above 0, a temperature above a species' polynomials, and a
/// fraction below 0; [`Error::Invalid`] for fractions that do not sum to 1 within 1e-9.
pub fn check_state(
    species: &[Species],
    temperature: f64,
    pressure: f64,
    fraction: impl Fn(usize) -> f64,
    state: impl Fn() -> String,
) -> Result<bool> {
    for (name, value) in [("T", temperature), ("p", pressure)] {
        if !(value.is_finite() && value > 0.0) {
            let limit = "a finite number above 0";
            return Err(Error::limit(format!("{name} of {}", state()), value, limit, "correct the row"));
        }
    }
    let (mut sum, mut is_below) = (0.0, false);
    for (number, Species { name, thermo, .. }) in species.iter().enumerate() {
        let x = fraction(number);
        if !(x.is_finite() && x >= 0.0) {
            let what = format!("mole fraction of {} in {}", name, state());
            return Err(Error::limit(what, x, "0 to 1", "correct the row"));
        }
        sum += x;
        if x > 0.0 {
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
        return Err(Error::invalid(format!("mole fractions of {}", state()), reason, change));
    }
    Ok(is_below)
}

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

//! What a flow begins from, cell by cell.

use abide_core::plan::Execution;
use abide_gas::Flow;

use crate::{Array, Choice, DType, Error, Result, Simulation};

/// The gas in each cell of a flow at its beginning, in f64: arrays of one length, in the order of the fields' values.
#[derive(Debug, Clone, PartialEq)]
pub struct Beginning {
    /// Temperatures in K.
    pub temperature: Array,
    /// Pressures in Pa.
    pub pressure: Array,
    /// Velocities in m/s along x, y and z, as many as axes.
    pub velocity: Vec<Array>,
    /// Mass fractions of the species; none for one species.
    pub fractions: Vec<Array>,
}

impl Beginning {
    /// Returns the values of all fields of a flow, which fit to each other, by their names.
    ///
    /// ```
    /// use abide::gas::{Beginning, Flow, Mixture, Table};
    /// use abide::{Array, DType, Simulation};
    ///
    /// // A wave of warm nitrogen at 10 MPa that moves along.
    /// let flow = Flow::of(&Mixture::of(&Table::builtin()?, &["N2"])?, 1).order(4);
    /// let wave = |i: usize| 200.0 - 60.0 * (i as f64 * std::f64::consts::TAU / 32.0).sin();
    /// let begin = Beginning {
    ///     temperature: Array::F64((0..32).map(wave).collect()),
    ///     pressure: Array::F64(vec![1e7; 32]),
    ///     velocity: vec![Array::F64(vec![100.0; 32])],
    ///     fractions: vec![],
    /// };
    /// let mut simulation = Simulation::builder(flow.program()?).size(&[32]).dtype(DType::F64).build()?;
    /// for (name, values) in begin.fields(&flow)? {
    ///     simulation.write(&name, &values)?;
    /// }
    /// simulation.advance(10)?;
    /// # Ok::<(), abide::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] for arrays of several lengths, or other numbers of velocities and fractions; those of [`Flow::program`].
    pub fn fields(&self, flow: &Flow) -> Result<Vec<(String, Array)>> {
        let Beginning { temperature, pressure, velocity, fractions } = self;
        let program = flow.start()?;
        let given = [temperature, pressure].into_iter().chain(velocity).chain(fractions);
        let given: Vec<&Array> = given.collect();
        let names = program.fields();
        let inputs = names.iter().position(|name| !name.ends_with('0') && !name.starts_with("Y0["));
        let inputs = inputs.unwrap_or(names.len());
        if given.len() != inputs {
            let change = format!("give {}", names[..inputs].join(", "));
            return Err(Error::limit("arrays of a flow's beginning", given.len(), inputs, change));
        }
        let names = names.to_vec();
        let builder = Simulation::builder(program).size(&[temperature.len()]).dtype(DType::F64);
        let mut simulation = builder.backend(Choice::CPU).execution(Execution::Stepwise).build()?;
        for (name, values) in names.iter().zip(given) {
            simulation.write(name, values)?;
        }
        simulation.advance(1)?;
        names[inputs..].iter().map(|name| Ok((name.clone(), simulation.field(name)?))).collect()
    }
}

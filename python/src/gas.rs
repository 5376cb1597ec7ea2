//! Mixtures of real gases, and what flows of them begin from.

use std::path::{Path, PathBuf};

use abide::gas::{
    Basis, Beginning, Chung, Flow, Interactions, Mixture, Points, Property, Species, States, Sums, Table,
    check_points,
};
use abide::io::bounded;
use abide::{Array, Error, Result};
use pyo3::prelude::*;

use crate::arrays::{given, numpy};
use crate::errors::exception;
use crate::guard::{caught, detached};

/// A mixture of real gases.
#[pyclass(frozen, module = "pyabide._pyabide")]
pub struct Gas {
    mixture: Mixture,
}

#[pymethods]
impl Gas {
    /// Makes a mixture of species of the table that is built in, or of a file.
    #[new]
    fn new(
        names: Vec<String>,
        species: Option<PathBuf>,
        kij: Vec<(String, String, f64)>,
        chung: &str,
        kappa: bool,
        closure: bool,
    ) -> PyResult<Gas> {
        caught(|| Gas::of(&names, species.as_deref(), kij, chung, [kappa, closure]).map_err(exception))
    }

    /// The names of the species.
    #[getter]
    fn species(&self) -> Vec<String> {
        self.mixture.species().iter().map(|species| species.name.clone()).collect()
    }

    /// The molar masses in kg/mol.
    #[getter]
    fn molar_masses(&self) -> Vec<f64> {
        self.mixture.species().iter().map(|species| species.molar_mass).collect()
    }

    /// Names and values of properties at points of `shape`, from flat arrays of float64: the two quantities that `pair` names,
    /// and the fractions of each species.
    #[allow(clippy::too_many_arguments)]
    fn properties<'py>(
        &self,
        py: Python<'py>,
        names: Vec<String>,
        pair: &str,
        mass: bool,
        values: Vec<Bound<'py, PyAny>>,
        shape: Vec<usize>,
        backend: &str,
    ) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
        let columns = columns(&values)?;
        let work = || {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let properties = Property::named(&names)?;
            let basis = if mass { Basis::Mass } else { Basis::Mole };
            let states = States { given: pair.parse()?, basis, sums: Sums::Loops };
            check_points(self.mixture.species(), &states, &columns, &shape)?;
            let all: Vec<String> =
                properties.iter().flat_map(|property| property.columns(&self.mixture)).collect();
            let batch = Points::batch(columns[0].len(), columns.len() + all.len());
            let mut points = Points::new(&self.mixture, states, &properties, batch, backend.parse()?)?;
            Ok((all, points.evaluate_all(&columns)?))
        };
        let (all, found) = detached(py, || work().map_err(exception))?;
        all.into_iter()
            .zip(found)
            .map(|(name, values)| Ok((name, numpy(py, Array::F64(values), &shape)?)))
            .collect()
    }
}

impl Gas {
    fn of(
        names: &[String],
        file: Option<&Path>,
        kij: Vec<(String, String, f64)>,
        chung: &str,
        [kappa, closure]: [bool; 2],
    ) -> Result<Gas> {
        let (table, known) = match file {
            None => (Table::builtin()?, Interactions::default()),
            Some(path) => {
                let text = bounded::text(path, bounded::LARGEST_TABLE, "give a table of species")?;
                match path.extension().is_some_and(|end| end == "yaml" || end == "yml") {
                    true => Table::from_cantera(&text)?,
                    false => (Table::from_csv(&text)?, Interactions::default()),
                }
            }
        };
        let interactions = if kij.is_empty() { known } else { Interactions::new(&table, kij)? };
        let mut species =
            names.iter().map(|name| table.find(name).cloned()).collect::<Result<Vec<Species>>>()?;
        if closure {
            species = species.into_iter().map(Species::closed).collect::<Result<_>>()?;
        }
        let mixture = Mixture::new(species)?.interactions(&interactions);
        let mixture = mixture.chung(chung.parse::<Chung>()?).association(kappa).fewest_operations();
        Ok(Gas { mixture })
    }
}

/// Returns the values of flat arrays.
fn columns(values: &[Bound<'_, PyAny>]) -> PyResult<Vec<Vec<f64>>> {
    let column = |array: &Bound<'_, PyAny>| match given(array)?.values {
        Array::F64(values) => Ok(values),
        Array::F32(_) => Err(exception(Error::invalid("an array", "it is of float32", "give float64"))),
    };
    values.iter().map(column).collect()
}

/// Names and values of all fields of the flow that a model file describes, from flat arrays of float64: temperature, pressure,
/// velocities along each axis, mass fractions.
#[pyfunction]
pub fn flow_fields<'py>(
    py: Python<'py>,
    text: &str,
    values: Vec<Bound<'py, PyAny>>,
    shape: Vec<usize>,
) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    let columns = columns(&values)?;
    let axes = shape.len();
    let work = || {
        let mut columns = columns.into_iter().map(Array::F64);
        let flow: Flow = abide::text::flow(text, "flow")?;
        let none = || Array::F64(Vec::new());
        let beginning = Beginning {
            temperature: columns.next().unwrap_or_else(none),
            pressure: columns.next().unwrap_or_else(none),
            velocity: columns.by_ref().take(axes).collect(),
            fractions: columns.collect(),
        };
        beginning.fields(&flow)
    };
    let found = detached(py, || work().map_err(exception))?;
    found.into_iter().map(|(name, values)| Ok((name, numpy(py, values, &shape)?))).collect()
}

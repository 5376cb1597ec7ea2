//! What a simulation computes, and the values it is given.

use std::sync::Arc;

use crate::catalogue;

use crate::io::{Loaded, extents};
use crate::{Array, Program, Result, Shape, Stencil};

/// Sources of a simulation's model: a stencil, a program, or the name of an entry of the catalogue.
pub trait IntoModel {
    /// Turns the source into the model.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`](crate::Error::Unknown) for a name that the catalogue does not have; for a stencil those of
    /// [`Program::new`].
    fn into_model(self) -> Result<Model>;
}

/// A program, or an entry of the catalogue whose number of axes the size decides.
#[derive(Clone)]
pub enum Model {
    /// A program.
    Program(Arc<Program>),
    /// An entry of the catalogue.
    Entry(&'static catalogue::Entry),
}

impl<S: Stencil> IntoModel for &S {
    fn into_model(self) -> Result<Model> {
        Ok(Model::Program(Arc::new(Program::new(self)?)))
    }
}

impl IntoModel for Program {
    fn into_model(self) -> Result<Model> {
        Ok(Model::Program(Arc::new(self)))
    }
}

impl IntoModel for Arc<Program> {
    fn into_model(self) -> Result<Model> {
        Ok(Model::Program(self))
    }
}

impl IntoModel for abide_text::Model {
    fn into_model(self) -> Result<Model> {
        Ok(Model::Program(Arc::new(self.program)))
    }
}

impl IntoModel for Model {
    fn into_model(self) -> Result<Model> {
        Ok(self)
    }
}

impl IntoModel for &str {
    fn into_model(self) -> Result<Model> {
        catalogue::find(self).map(Model::Entry)
    }
}

impl Model {
    /// Returns the numbers of axes that the model can have.
    pub fn dimensions(&self) -> std::ops::RangeInclusive<usize> {
        match self {
            Model::Program(program) => program.dimensions()..=program.dimensions(),
            Model::Entry(entry) => entry.dimensions.clone(),
        }
    }

    /// Returns the program for a number of axes.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`](crate::Error::Limit) where an entry of the catalogue has no form of so many axes. A program is
    /// returned whatever its axes: [`Problem::check`](crate::Problem::check) compares them with the domain.
    pub fn program(&self, dimensions: usize) -> Result<Arc<Program>> {
        match self {
            // `Problem::check` reports a wrong number of axes, with the size.
            Model::Program(program) => Ok(program.clone()),
            Model::Entry(entry) => entry.program(dimensions).map(Arc::new),
        }
    }

    /// Returns whether the values of a field stand at the centres of cells, so that their extents are the
    /// domain's. `true` where the model has no such field or number of axes, which the builder refuses.
    pub fn is_on_cells(&self, field: &str, dimensions: usize) -> bool {
        let program = self.program(dimensions);
        let elsewhere = |program: Arc<Program>| {
            program.field(field).is_ok_and(|field| !program.kinds()[field].centring.is_cell())
        };
        !program.is_ok_and(elsewhere)
    }

    /// Returns the size used where none is given and no input implies one: two axes where the model can have
    /// them.
    ///
    /// # Errors
    ///
    /// None for a model of one to three axes.
    pub fn default_size(&self) -> Result<Shape> {
        let range = self.dimensions();
        Shape::new(match 2.clamp(*range.start(), *range.end()) {
            1 => &[4096],
            2 => &[512, 512],
            _ => &[128; 3],
        })
    }
}

/// Values for a field; an `ndarray` also determines the size.
pub struct Values {
    pub(super) values: Array,
    /// Their extents; in a batch perhaps with the members' axis before the domain's.
    pub(super) extents: Option<Vec<usize>>,
}

impl From<Array> for Values {
    fn from(values: Array) -> Self {
        Values { values, extents: None }
    }
}

impl From<Loaded> for Values {
    fn from(loaded: Loaded) -> Self {
        Values { extents: Some(extents(loaded.members, &loaded.shape)), values: loaded.values }
    }
}

impl From<Vec<f32>> for Values {
    fn from(values: Vec<f32>) -> Self {
        Array::F32(values).into()
    }
}

impl From<Vec<f64>> for Values {
    fn from(values: Vec<f64>) -> Self {
        Array::F64(values).into()
    }
}

impl<T: crate::Real, D: ndarray::Dimension> From<ndarray::Array<T, D>> for Values {
    fn from(array: ndarray::Array<T, D>) -> Self {
        // In the order of the axes, whatever their order in memory.
        let values = T::into_array(array.iter().copied().collect());
        Values { values, extents: Some(array.shape().to_vec()) }
    }
}

//! A program on a domain.

use std::sync::Arc;

use super::Program;
use crate::domain::{Boundaries, Shape};
use crate::error::{Error, Result};
use crate::real::DType;

/// A program on a domain: all that a backend needs besides the initial fields.
#[derive(Debug, Clone)]
pub struct Problem {
    /// The computation.
    pub program: Arc<Program>,
    /// The domain.
    pub shape: Shape,
    /// The type of all fields.
    pub dtype: DType,
    /// The boundary at each axis and side.
    pub boundaries: Boundaries,
    /// The parameters' values, in the program's order.
    pub parameters: Vec<f64>,
}

impl Problem {
    /// Makes a problem with the program's own boundary and parameters, checked by [`Problem::check`].
    pub fn new(program: Arc<Program>, shape: Shape, dtype: DType) -> Result<Self> {
        let boundaries = Boundaries::all(program.boundary());
        let parameters = program.parameters().iter().map(|p| p.default).collect();
        let problem = Problem { program, shape, dtype, boundaries, parameters };
        problem.check()?;
        Ok(problem)
    }

    /// Checks that domain, boundaries and parameters fit the program.
    pub fn check(&self) -> Result<()> {
        if self.shape.dimensions() != self.program.dimensions() {
            return Err(Error::invalid(
                format!("size {}", self.shape),
                format!("{} has {} axes", self.program.name(), self.program.dimensions()),
                format!("give {} extents, slowest axis first", self.program.dimensions()),
            ));
        }
        if self.parameters.len() != self.program.parameters().len() {
            return Err(Error::limit(
                "parameters",
                self.parameters.len(),
                self.program.parameters().len(),
                "give one value each",
            ));
        }
        self.boundaries.check(&self.shape, self.program.radius(), self.dtype)
    }
}

//! Linear stencils on a domain as operators of systems.

use abide::solve::named;
use abide::{Error, LinearStencil, Shape};
use numpy::PyArray1;
use pyo3::prelude::*;

use crate::arrays::numpy;
use crate::errors::exception;
use crate::guard::{caught, detached};

/// A matrix that is never stored: one step of a linear stencil on a domain.
#[pyclass(frozen, module = "pyabide._pyabide")]
pub struct GridOperator(pub abide::solve::GridOperator);

/// A stencil's name, or its weights at offsets.
#[derive(FromPyObject)]
enum Stencil {
    Name(String),
    Taps(Vec<(Vec<i32>, f64)>),
}

/// Row offsets, columns and values of compressed rows.
type Rows<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyAny>);

#[pymethods]
impl GridOperator {
    #[new]
    fn new(stencil: Stencil, shape: Vec<usize>, boundary: &str, dtype: &str) -> PyResult<GridOperator> {
        let made = || {
            let shape = Shape::new(&shape)?;
            let stencil = match stencil {
                Stencil::Name(name) => named::operator(&name)?,
                Stencil::Taps(taps) => match shape.dimensions() {
                    1 => LinearStencil::new("operator", &sized::<1>(&taps)?)?,
                    2 => LinearStencil::new("operator", &sized::<2>(&taps)?)?,
                    _ => LinearStencil::new("operator", &sized::<3>(&taps)?)?,
                },
            };
            let text: abide::domain::BoundaryText = boundary.parse()?;
            let boundaries = text.resolve(abide::Boundary::Constant(0.0), shape.dimensions())?;
            abide::solve::GridOperator::new(stencil, shape, boundaries, dtype.parse()?)
        };
        caught(|| made().map(GridOperator).map_err(exception))
    }

    /// The extents of the domain.
    #[getter]
    fn extents(&self) -> Vec<usize> {
        self.0.shape().extents().to_vec()
    }

    /// `f32` or `f64`.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.0.dtype().name()
    }

    /// The matrix's row offsets, columns and values.
    fn assemble<'py>(&self, py: Python<'py>) -> PyResult<Rows<'py>> {
        let (offsets, columns, values) = detached(py, || {
            let matrix = self.0.assemble().map_err(exception)?;
            let offsets: Vec<i64> =
                (0..=matrix.rows()).filter_map(|row| Some(matrix.offsets().get(row)? as i64)).collect();
            let columns: Vec<i64> = matrix.indices().iter().map(|&column| i64::from(column)).collect();
            Ok((offsets, columns, matrix.values().try_clone().map_err(exception)?))
        })?;
        let count = values.len();
        Ok((PyArray1::from_vec(py, offsets), PyArray1::from_vec(py, columns), numpy(py, values, &[count])?))
    }
}

/// Returns weights at offsets of as many numbers as there are axes.
fn sized<const D: usize>(taps: &[(Vec<i32>, f64)]) -> abide::Result<Vec<([i32; D], f64)>> {
    let sized = |(offset, weight): &(Vec<i32>, f64)| {
        let own: Result<[i32; D], _> = offset.clone().try_into();
        let reason = || format!("it has {} numbers on {D} axes", offset.len());
        let wrong = |_| Error::invalid(format!("offset {offset:?}"), reason(), "give one number an axis");
        Ok((own.map_err(wrong)?, *weight))
    };
    taps.iter().map(sized).collect()
}

//! A linear stencil on a grid, written as a matrix.

use super::csr::Csr;
use super::rows::Rows;
use crate::domain::{Boundaries, Shape, Source};
use crate::error::{Error, Result};
use crate::program::{LinearStencil, Stencil};
use crate::real::{Array, DType, Real};

/// One step of a linear stencil, boundary and all: the new values are `matrix · old + constant`, cells
/// counted as in an array of the whole domain.
///
/// - Cells that a `fixed` boundary keeps have rows of the identity.
/// - Beyond a `periodic` or `mirror` side a tap falls on another cell of the domain; weights that meet on one
///   cell are added up in the order of the taps.
/// - Beyond a `constant` side a tap has no column: its weight times the constant goes to `constant`, the
///   first product plain, every later one fused onto the sum. Beyond several sides at once, the slowest axis
///   is asked first.
///
/// Where no two taps fall on the same cell and no constant but 0 is met, `matrix.matvec` gives the bits of the stencil
/// itself, up to the sign of a zero.
///
/// ```
/// use abide_core::sparse::Affine;
/// use abide_core::{Array, Boundaries, Boundary, DType, LinearStencil, Shape};
///
/// let mean = LinearStencil::new("mean", &[([-1], 0.5), ([1], 0.5)])?;
/// let boundaries = Boundaries::all(Boundary::Constant(8.0));
/// let Affine { matrix, constant } = Affine::new(&mean, &Shape::new(&[3])?, &boundaries, DType::F64)?;
/// assert_eq!(matrix.matvec(&Array::F64(vec![1.0, 2.0, 3.0]))?, Array::F64(vec![1.0, 2.0, 1.0]));
/// assert_eq!(constant, Array::F64(vec![4.0, 0.0, 4.0]));
/// # Ok::<(), abide_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Affine {
    /// The factor of the old values: one row and one column per cell.
    pub matrix: Csr,
    /// The values to be added: one per cell.
    pub constant: Array,
}

impl Affine {
    /// Makes the matrix of a stencil. Fails unless boundary and domain suit the stencil.
    pub fn new(
        stencil: &LinearStencil,
        shape: &Shape,
        boundaries: &Boundaries,
        dtype: DType,
    ) -> Result<Affine> {
        if shape.dimensions() != stencil.dimensions() {
            return Err(Error::invalid(
                format!("size {shape}"),
                format!("{} has {} axes", stencil.name(), stencil.dimensions()),
                format!("give {} extents, slowest axis first", stencil.dimensions()),
            ));
        }
        let radius = std::array::from_fn(|axis| {
            stencil.taps().iter().map(|(offset, _)| offset[axis].unsigned_abs() as usize).max().unwrap_or(0)
        });
        boundaries.check(shape, radius, dtype)?;
        match dtype {
            DType::F32 => assemble::<f32>(stencil, shape, boundaries, radius),
            DType::F64 => assemble::<f64>(stencil, shape, boundaries, radius),
        }
    }
}

fn assemble<T: Real>(
    stencil: &LinearStencil,
    shape: &Shape,
    boundaries: &Boundaries,
    radius: [usize; 3],
) -> Result<Affine> {
    let cells = shape.cells();
    let extents = shape.padded();
    let taps: Vec<([isize; 3], T)> = stencil
        .taps()
        .iter()
        .map(|(offset, weight)| (offset.map(|o| o as isize), T::from_f64(*weight)))
        .collect();
    let computed: [_; 3] = std::array::from_fn(|axis| boundaries.computed(axis, extents[axis], radius[axis]));
    let entries = cells.saturating_mul(taps.len());
    let mut matrix: Rows<T> = Rows::new(cells, cells, entries)?;
    let mut constant = Array::zeros(T::DTYPE, cells)?;
    let mut sums = T::slice_mut(&mut constant).unwrap_or_default().iter_mut();
    let mut row: Vec<(u32, T)> = Vec::with_capacity(taps.len());
    for index in 0..cells {
        let cell = shape.cell(index);
        let sum = sums.next();
        if (0..3).any(|axis| !computed[axis].contains(&cell[axis])) {
            matrix.push(index, T::ONE);
            matrix.end();
            continue;
        }
        row.clear();
        let mut outside: Option<T> = None;
        for &(offset, weight) in &taps {
            match source(boundaries, extents, cell, offset) {
                Source::Cell(at) => row.push((at as u32, weight)),
                Source::Value(value) => {
                    let value = T::from_f64(value);
                    outside = Some(outside.map_or(weight * value, |sum| weight.mul_add(value, sum)));
                }
            }
        }
        if let (Some(sum), Some(outside)) = (sum, outside) {
            *sum = outside;
        }
        if row.windows(2).any(|pair| pair[0].0 > pair[1].0) {
            row.sort_by_key(|&(column, _)| column);
        }
        matrix.merge(row.iter().copied());
        matrix.end();
    }
    Ok(Affine { matrix: matrix.finish()?, constant })
}

/// Returns the number of the cell that a tap reads, or the constant beyond the domain.
fn source(boundaries: &Boundaries, extents: [usize; 3], cell: [usize; 3], offset: [isize; 3]) -> Source {
    let mut at = 0;
    for axis in 0..3 {
        let index = cell[axis] as isize + offset[axis];
        // Most taps lie inside, where the boundary need not be asked.
        let inside = if index >= 0 && index < extents[axis] as isize {
            index as usize
        } else {
            match boundaries.source(axis, index, extents[axis]) {
                Source::Cell(index) => index,
                value => return value,
            }
        };
        at = at * extents[axis] + inside;
    }
    Source::Cell(at)
}

//! A linear stencil on a grid as an operator that is never stored.

use std::sync::Arc;

use super::Operator;
use crate::domain::{Boundaries, Boundary, Shape, Source};
use crate::error::{Error, Result};
use crate::program::{LinearStencil, Stencil};
use crate::real::{DType, Real};
use crate::sparse::{Affine, Csr};

/// An operator whose product `A x` is one step of a linear stencil on `x`, boundary and all: the matrix of
/// [`Affine`], not stored.
///
/// Cells that a `fixed` boundary keeps have rows of the identity. The constant beyond a `constant` side must
/// be 0, so that the operator is linear.
#[derive(Debug, Clone, PartialEq)]
pub struct GridOperator {
    stencil: LinearStencil,
    shape: Shape,
    boundaries: Boundaries,
    dtype: DType,
    radius: [usize; 3],
}

impl GridOperator {
    /// Makes the operator of a stencil on a domain. Fails if the boundary does not suit the domain, is not plain
    /// ([`Boundary::is_plain`]), or holds a constant other than 0.
    pub fn new(stencil: LinearStencil, shape: Shape, boundaries: Boundaries, dtype: DType) -> Result<Self> {
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
        boundaries.check(&shape, radius, dtype)?;
        let sides = || boundaries.0[3 - shape.dimensions()..].iter().flatten();
        if let Some(side) = sides().find(|side| !side.is_plain()) {
            return Err(Error::invalid(
                format!("boundary {side} of an operator"),
                "solvers apply fixed, periodic, mirror, reflect, clamp and constant=0 alone",
                "take one of these",
            ));
        }
        if let Some(side) = sides().find(|side| matches!(side, Boundary::Constant(c) if *c != 0.0)) {
            return Err(Error::invalid(
                format!("boundary {side} of an operator"),
                "it adds a constant to the product, which is then not linear",
                "take constant=0 and move the constant's part to the right-hand side",
            ));
        }
        Ok(GridOperator { stencil, shape, boundaries, dtype, radius })
    }

    /// Returns the stencil; its taps are summed in order.
    pub fn stencil(&self) -> &LinearStencil {
        &self.stencil
    }

    /// Returns the domain: one row of the matrix per cell, in the order of [`Shape::index`].
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns the boundaries.
    pub fn boundaries(&self) -> Boundaries {
        self.boundaries
    }

    /// Returns the type of weights and vectors.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the farthest tap on each axis, in cells.
    pub fn radius(&self) -> [usize; 3] {
        self.radius
    }

    /// Returns the same operator with weights rounded to `dtype`.
    pub fn cast(&self, dtype: DType) -> Result<GridOperator> {
        Ok(GridOperator { dtype, ..self.clone() })
    }

    /// Returns the operator with every sign changed; `None` where a `fixed` boundary keeps cells, whose rows are
    /// not the stencil's.
    pub(super) fn negated(&self) -> Option<GridOperator> {
        let mut sides = self.boundaries.0[3 - self.shape.dimensions()..].iter().flatten();
        let keeps = sides.any(|side| matches!(side, Boundary::Fixed));
        (!keeps).then(|| GridOperator { stencil: self.stencil.negated(), ..self.clone() })
    }

    /// Returns the stored matrix.
    pub fn assemble(&self) -> Result<Csr> {
        Ok(Affine::new(&self.stencil, &self.shape, &self.boundaries, self.dtype)?.matrix)
    }

    /// Returns the stored matrix of the least domain on which the stencil meets every side of its boundary as
    /// it does on its own domain. This matrix is symmetric, finite and positive on the diagonal exactly where
    /// the operator is.
    pub(super) fn sample(&self) -> Result<Csr> {
        let first = 3 - self.shape.dimensions();
        let extents = self.shape.padded();
        let least: Vec<usize> = (first..3).map(|axis| extents[axis].min(4 * self.radius[axis] + 3)).collect();
        Ok(Affine::new(&self.stencil, &Shape::new(&least)?, &self.boundaries, self.dtype)?.matrix)
    }

    /// Returns one row's product with `x`: the sum of its taps in order, the first a plain multiplication,
    /// every later one fused.
    pub fn product_at<T: Real>(&self, x: &[T], row: usize) -> T {
        self.product_of(row, |at| x[at])
    }

    /// Returns the same product with a vector of which `read` has the entries.
    #[inline]
    pub fn product_of<T: Real>(&self, row: usize, read: impl Fn(usize) -> T) -> T {
        let Some(mut taps) = self.taps_of(self.shape.cell(row)) else {
            return read(row);
        };
        let read = |at: Option<usize>| at.map_or(T::ZERO, &read);
        // A stencil has at least one tap.
        let first = taps.next().map_or(T::ZERO, |(at, weight)| T::from_f64(weight) * read(at));
        taps.fold(first, |sum, (at, weight)| T::from_f64(weight).mul_add(read(at), sum))
    }

    /// Returns one row's entry on the diagonal.
    pub fn diagonal_at<T: Real>(&self, row: usize) -> T {
        // Taps that fall on their own cell by a mirror or a short period count too.
        match self.taps_of(self.shape.cell(row)) {
            Some(taps) => {
                taps.filter(|(at, _)| *at == Some(row)).fold(T::ZERO, |sum, (_, w)| sum + T::from_f64(w))
            }
            None => T::ONE,
        }
    }

    /// Returns the cells from which the taps of a cell read, with their weights; `None` for a cell that keeps
    /// its value.
    fn taps_of(&self, cell: [usize; 3]) -> Option<impl Iterator<Item = (Option<usize>, f64)> + '_> {
        let extents = self.shape.padded();
        let kept =
            (0..3).any(|a| !self.boundaries.computed(a, extents[a], self.radius[a]).contains(&cell[a]));
        (!kept).then(|| {
            self.stencil.taps().iter().map(move |(offset, weight)| {
                let index = |axis: usize| match self.boundaries.source(
                    axis,
                    cell[axis] as isize + offset[axis] as isize,
                    extents[axis],
                ) {
                    Source::Cell(index) => Some(index),
                    Source::Value(_) => None,
                };
                let at = index(0).zip(index(1)).zip(index(2)).map(|((z, y), x)| self.shape.index([z, y, x]));
                (at, *weight)
            })
        })
    }
}

impl<T: Real> Operator<T> for GridOperator {
    fn rows(&self) -> usize {
        self.shape.cells()
    }

    fn apply(&self, x: &[T], y: &mut [T]) {
        for (row, sum) in y.iter_mut().enumerate() {
            *sum = self.product_at(x, row);
        }
    }

    fn entries(&self) -> Result<Option<Arc<Csr>>> {
        Ok(Some(Arc::new(self.assemble()?)))
    }

    fn diagonal(&self) -> Option<Vec<T>> {
        Some((0..self.shape.cells()).map(|row| self.diagonal_at(row)).collect())
    }

    fn diagonal_block(&self, start: usize, size: usize) -> Option<Vec<T>> {
        let mut block = vec![T::ZERO; size * size];
        for i in 0..size {
            let Some(taps) = self.taps_of(self.shape.cell(start + i)) else {
                block[i * size + i] = T::ONE;
                continue;
            };
            for (at, weight) in taps {
                if let Some(column) = at.filter(|at| (start..start + size).contains(at)) {
                    let entry = &mut block[i * size + column - start];
                    *entry = *entry + T::from_f64(weight);
                }
            }
        }
        Some(block)
    }
}

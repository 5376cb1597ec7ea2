//! The product with a stencil that is never stored, line by line.

use std::ops::Range;
use std::sync::Arc;

use abide_core::domain::Source;
use abide_core::solver::{GridOperator, Operator, Reads, RowSlab};
use abide_core::sparse::Csr;
use abide_core::{Real, Result};
use multiversion::multiversion;

use super::plan::WORK;
use crate::threads::join;

/// Cells of a chunk of a line: one vector of them stays in the first-level cache from tap to tap.
const CHUNK: usize = 512;

/// A stencil whose lines are shared among threads: all of them, or those of a slab of rows.
pub struct Grid<T> {
    operator: Arc<GridOperator>,
    /// The reference's operator, for questions that are asked once.
    plain: Arc<dyn Operator<T>>,
    taps: Vec<([isize; 3], T)>,
    /// Lines of a piece of work.
    lines: usize,
    /// Cells of a line whose taps all lie within it.
    inner: Range<usize>,
    /// The cells that are computed, and those that are read.
    cells: Range<usize>,
    reads: Reads,
}

impl<T: Real> Grid<T> {
    pub fn new(operator: Arc<GridOperator>, plain: Arc<dyn Operator<T>>) -> Self {
        let taps: Vec<_> = operator
            .stencil()
            .taps()
            .iter()
            .map(|&(at, w)| (at.map(|o| o as isize), T::from_f64(w)))
            .collect();
        let (width, radius) = (operator.shape().padded()[2], operator.radius()[2]);
        let inner = radius.min(width)..width.saturating_sub(radius).max(radius.min(width));
        let lines = (WORK / (width * taps.len()).max(1)).max(1);
        let cells = operator.shape().cells();
        Grid { operator, plain, taps, lines, inner, cells: 0..cells, reads: Reads::whole(cells) }
    }

    /// Returns the same for the rows of a slab, which are computed from what they read.
    pub fn of_slab(operator: Arc<GridOperator>, plain: Arc<dyn Operator<T>>, slab: &RowSlab) -> Self {
        Grid { cells: slab.rows(), reads: slab.reads.clone(), ..Grid::new(operator, plain) }
    }

    /// Computes the cells from `first` on, some of which may be a part of a line only.
    fn lines(&self, first: usize, x: &[T], mut y: &mut [T]) {
        let width = self.operator.shape().padded()[2];
        let (line, end) = (first / width, (first + y.len()).div_ceil(width));
        if end - line <= self.lines {
            let mut first = first;
            while !y.is_empty() {
                let begin = first % width;
                let (own, rest) = y.split_at_mut((width - begin).min(y.len()));
                self.line(first / width, begin..begin + own.len(), x, own);
                (first, y) = (first + own.len(), rest);
            }
            return;
        }
        let middle = (line + (end - line) / 2) * width;
        let (low, high) = y.split_at_mut(middle - first);
        join(|| self.lines(first, x, low), || self.lines(middle, x, high));
    }

    /// Computes some cells of a line.
    fn line(&self, number: usize, cells: Range<usize>, x: &[T], y: &mut [T]) {
        let [depth, height, width] = self.operator.shape().padded();
        let at = [number / height, number % height];
        let (boundaries, radius) = (self.operator.boundaries(), self.operator.radius());
        let start = number * width;
        let kept = (0..2).any(|a| !boundaries.computed(a, [depth, height][a], radius[a]).contains(&at[a]));
        if kept {
            y.copy_from_slice(&x[self.reads.place(start + cells.start)..][..cells.len()]);
            return;
        }
        let inner =
            self.inner.start.clamp(cells.start, cells.end)..self.inner.end.clamp(cells.start, cells.end);
        for cell in (cells.start..inner.start).chain(inner.end..cells.end) {
            y[cell - cells.start] = self.operator.product_of(start + cell, |at| x[self.reads.place(at)]);
        }
        let source = |axis: usize, offset: isize| match boundaries.source(
            axis,
            at[axis] as isize + offset,
            [depth, height][axis],
        ) {
            Source::Cell(index) => Some(index),
            Source::Value(_) => None,
        };
        // The first cell of the line from which a tap reads, or none where it lies beyond a side where all is 0.
        let line = |[dz, dy, _]: [isize; 3]| Some((source(0, dz)? * height + source(1, dy)?) * width);
        let own = inner.start - cells.start..inner.end - cells.start;
        for (number, y) in y[own].chunks_mut(CHUNK).enumerate() {
            let start = inner.start + number * CHUNK;
            for (number, &(offset, weight)) in self.taps.iter().enumerate() {
                // What a line's inner cells read of a line lies side by side.
                let from = line(offset).map(|line| {
                    &x[self.reads.place(line + start.wrapping_add_signed(offset[2]))..][..y.len()]
                });
                tap(y, number == 0, weight, from);
            }
        }
    }
}

impl<T: Real> Operator<T> for Grid<T> {
    fn rows(&self) -> usize {
        self.cells.len()
    }

    fn apply(&self, x: &[T], y: &mut [T]) {
        self.lines(self.cells.start, x, y);
    }

    fn entries(&self) -> Result<Option<Arc<Csr>>> {
        self.plain.entries()
    }

    fn diagonal(&self) -> Option<Vec<T>> {
        self.plain.diagonal()
    }

    fn diagonal_block(&self, start: usize, size: usize) -> Option<Vec<T>> {
        self.plain.diagonal_block(start, size)
    }
}

/// Adds a tap to the sums of a chunk, or begins them; compiled for each instruction set. Without a line to
/// read from, the values are zeros.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
fn tap<T: Real>(sums: &mut [T], first: bool, weight: T, from: Option<&[T]>) {
    match (first, from) {
        (true, Some(from)) => sums.iter_mut().zip(from).for_each(|(sum, &x)| *sum = weight * x),
        (true, None) => sums.fill(weight * T::ZERO),
        (false, Some(from)) => sums.iter_mut().zip(from).for_each(|(sum, &x)| *sum = weight.mul_add(x, *sum)),
        (false, None) => sums.iter_mut().for_each(|sum| *sum = weight.mul_add(T::ZERO, *sum)),
    }
}

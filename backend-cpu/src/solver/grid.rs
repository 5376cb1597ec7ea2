//! The product with a stencil that is never stored, line by line.

use std::ops::Range;
use std::sync::Arc;

use abide_core::Real;
use abide_core::domain::Source;
use abide_core::solver::{GridOperator, Operator};
use multiversion::multiversion;

use super::plan::WORK;

/// Cells of a chunk of a line: one vector of them stays in the first-level cache from tap to tap.
const CHUNK: usize = 512;

/// A stencil whose lines are shared among threads.
pub struct Grid<T> {
    operator: Arc<GridOperator>,
    /// The reference's operator, for questions that are asked once.
    plain: Arc<dyn Operator<T>>,
    taps: Vec<([isize; 3], T)>,
    /// Lines of a piece of work.
    lines: usize,
    /// Cells of a line whose taps all lie within it.
    inner: Range<usize>,
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
        Grid { operator, plain, taps, lines, inner }
    }

    fn lines(&self, first: usize, x: &[T], y: &mut [T]) {
        let width = self.operator.shape().padded()[2];
        let count = y.len() / width;
        if count <= self.lines {
            for (number, y) in y.chunks_exact_mut(width).enumerate() {
                self.line(first + number, x, y);
            }
            return;
        }
        let (low, high) = y.split_at_mut(count / 2 * width);
        rayon::join(|| self.lines(first, x, low), || self.lines(first + count / 2, x, high));
    }

    fn line(&self, number: usize, x: &[T], y: &mut [T]) {
        let [depth, height, width] = self.operator.shape().padded();
        let at = [number / height, number % height];
        let (boundaries, radius) = (self.operator.boundaries(), self.operator.radius());
        let start = number * width;
        let kept = (0..2).any(|a| !boundaries.computed(a, [depth, height][a], radius[a]).contains(&at[a]));
        if kept {
            y.copy_from_slice(&x[start..start + width]);
            return;
        }
        for cell in (0..self.inner.start).chain(self.inner.end..width) {
            y[cell] = self.operator.product_at(x, start + cell);
        }
        let source = |axis: usize, offset: isize| match boundaries.source(
            axis,
            at[axis] as isize + offset,
            [depth, height][axis],
        ) {
            Source::Cell(index) => Some(index),
            Source::Value(_) => None,
        };
        // The line from which a tap reads, or none where the line lies beyond a side where all is 0.
        let line =
            |[dz, dy, _]: [isize; 3]| Some(&x[(source(0, dz)? * height + source(1, dy)?) * width..][..width]);
        for (number, y) in y[self.inner.clone()].chunks_mut(CHUNK).enumerate() {
            let start = self.inner.start + number * CHUNK;
            for (number, &(offset, weight)) in self.taps.iter().enumerate() {
                let from = line(offset).map(|line| &line[start.wrapping_add_signed(offset[2])..][..y.len()]);
                tap(y, number == 0, weight, from);
            }
        }
    }
}

impl<T: Real> Operator<T> for Grid<T> {
    fn rows(&self) -> usize {
        self.operator.shape().cells()
    }

    fn apply(&self, x: &[T], y: &mut [T]) {
        self.lines(0, x, y);
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

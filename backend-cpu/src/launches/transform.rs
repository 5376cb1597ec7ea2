//! Lines of values along an axis, each times a matrix: blocks of lines on all threads.

use std::ops::Range;

use abide_core::memory::reserved;
use abide_core::program::{Indices, Launch, StageKind, Transforms};
use abide_core::{Problem, Real, Result};
use multiversion::multiversion;

use super::field_rows::FieldRows;
use super::sweep::{Work, keep, share};
use crate::shared::Shared;

/// The values of neighbouring lines that a thread takes at once, and the rows of products that it sums up beside each other.
const LINES: usize = 32;
const ROWS: usize = 4;

/// The matrix of a stage, and the fields that it reads and sets.
pub struct Lines<T> {
    axis: usize,
    of: usize,
    target: usize,
    rows: usize,
    /// Row by row; along the fastest axis column by column.
    matrix: Vec<T>,
}

/// Returns the matrices of a problem's stages.
pub fn all<T: Real>(problem: &Problem, transforms: &Transforms) -> Result<Vec<Option<Lines<T>>>> {
    let stages = problem.program.stages().iter().enumerate();
    let of = |(stage, own): (usize, &abide_core::Stage)| {
        let (StageKind::Transform(transform), Some(of)) = (own.does, own.transformed()) else {
            return Ok(None);
        };
        let Some((values, rows)) = transforms.matrix(problem, stage) else { return Ok(None) };
        let mut matrix: Vec<T> = reserved(values.len(), "a matrix", "choose a smaller size")?;
        matrix.extend((0..values.len()).map(|number| {
            let place = if transform.axis == 2 { number % rows * rows + number / rows } else { number };
            T::from_f64(values[place])
        }));
        Ok(Some(Lines { axis: transform.axis, of, target: own.writes[0], rows, matrix }))
    };
    stages.map(of).collect()
}

impl<T: Real> Lines<T> {
    /// Transforms all lines of a box.
    pub fn transform(
        &self,
        field_rows: &FieldRows,
        launch: &Launch,
        own: &Indices,
        buffers: &[Shared<'_, T>],
        works: &mut [Work<T>],
    ) {
        let kind = field_rows.kind(self.target);
        let (Some(from), Some(to)) = (launch.reads[self.of], launch.writes[0]) else { return };
        if let Some(old) = launch.reads[self.target].filter(|&old| old != to) {
            keep(field_rows, self.target, own, [buffers[old], buffers[to]]);
        }
        let [zs, ys, xs] = own;
        let place =
            |z: usize, y: usize| kind.position([zs.start + z as isize, ys.start + y as isize, xs.start]);
        let (values, both) = (own.iter().map(Range::len).product(), [buffers[from], buffers[to]]);
        if values == 0 {
            return;
        }
        if self.axis == 2 {
            let lines = zs.len() * ys.len();
            return share(works, lines.div_ceil(ROWS), values, |_, band| {
                for first in band.map(|block| block * ROWS) {
                    let at =
                        (first..lines.min(first + ROWS)).map(|line| place(line / ys.len(), line % ys.len()));
                    // SAFETY: bands are disjoint, and so are their lines.
                    unsafe { along(self, &at.collect::<Vec<_>>(), both) };
                }
            });
        }
        // A block is some neighbours of a row, with all that lies before and behind them along the axis.
        let (others, stride) = match self.axis {
            0 => (ys.len(), kind.extents[1] * kind.extents[2]),
            _ => (zs.len(), kind.extents[2]),
        };
        let blocks = xs.len().div_ceil(LINES);
        share(works, others * blocks, values, |_, band| {
            for block in band {
                let (other, first) = (block / blocks, block % blocks * LINES);
                let start = if self.axis == 0 { place(0, other) } else { place(other, 0) };
                let width = LINES.min(xs.len() - first);
                // SAFETY: bands are disjoint, and so are their blocks.
                unsafe { across(self, start + first, stride, width, both) };
            }
        });
    }
}

/// Transforms lines of neighbouring values, which begin at some places: at least one, and [`ROWS`] at the most.
///
/// # Safety
///
/// No other thread uses the values of the lines.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
unsafe fn along<T: Real>(lines: &Lines<T>, at: &[usize], [from, to]: [Shared<'_, T>; 2]) {
    let rows = lines.rows;
    let values: [&[T]; ROWS] = std::array::from_fn(|line| {
        let at = at[line.min(at.len() - 1)];
        // SAFETY: by the contract of this function; a transform writes no buffer that it reads.
        unsafe { from.read(at..at + rows) }
    });
    for first in (0..rows).step_by(LINES) {
        let width = LINES.min(rows - first);
        let mut sums = [[T::ZERO; LINES]; ROWS];
        for k in 0..rows {
            let from = k * rows + first;
            let mut weights = [T::ZERO; LINES];
            weights[..width].copy_from_slice(&lines.matrix[from..from + width]);
            for (sums, values) in sums.iter_mut().zip(&values) {
                let value = values[k];
                for (sum, weight) in sums.iter_mut().zip(&weights) {
                    *sum = weight.mul_add(value, *sum);
                }
            }
        }
        for (&at, sums) in at.iter().zip(&sums) {
            // SAFETY: by the contract of this function.
            unsafe { to.write(at + first..at + first + width) }.copy_from_slice(&sums[..width]);
        }
    }
}

/// Transforms some neighbouring lines whose values lie a stride apart.
///
/// # Safety
///
/// No other thread uses the values of the lines.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
unsafe fn across<T: Real>(
    lines: &Lines<T>,
    start: usize,
    stride: usize,
    width: usize,
    [from, to]: [Shared<'_, T>; 2],
) {
    let rows = lines.rows;
    let mut old = vec![[T::ZERO; LINES]; rows];
    for (k, old) in old.iter_mut().enumerate() {
        let at = start + k * stride;
        // SAFETY: by the contract of this function.
        old[..width].copy_from_slice(unsafe { from.read(at..at + width) });
    }
    for first in (0..rows).step_by(ROWS) {
        let mut sums = [[T::ZERO; LINES]; ROWS];
        let count = ROWS.min(rows - first);
        let weights: [&[T]; ROWS] = std::array::from_fn(|row| {
            let row = first + row.min(count - 1);
            &lines.matrix[row * rows..(row + 1) * rows]
        });
        for (k, old) in old.iter().enumerate() {
            for (sums, weights) in sums.iter_mut().zip(&weights) {
                let weight = weights[k];
                for (sum, value) in sums.iter_mut().zip(old) {
                    *sum = weight.mul_add(*value, *sum);
                }
            }
        }
        for (row, sums) in sums.iter().enumerate().take(count) {
            let at = start + (first + row) * stride;
            // SAFETY: by the contract of this function.
            unsafe { to.write(at..at + width) }.copy_from_slice(&sums[..width]);
        }
    }
}

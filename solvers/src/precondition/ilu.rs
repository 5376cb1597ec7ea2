//! Incomplete factors with the entries of the matrix.

use abide_core::solver::Operator;
use abide_core::sparse::Csr;
use abide_core::{Error, Real, Result, memory};

use super::{Preconditioner, entries_of};
use crate::engine::{Engine, zeros};

/// Rows of a triangle that a thread does at once.
const CHUNK: usize = 1024;

/// Incomplete factorisation without fill: `M = L U`, where L and U have entries where `A` has; for a symmetric matrix the
/// incomplete Cholesky factorisation `M = L D L^T`.
///
/// Source: Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., algorithm 10.4; triangles by levels as in section
/// 11.6: rows that depend on no row of their own level are done at once, by any number of threads, each row in the order of
/// its columns. Memory: the matrix once more and 2 vectors. Per application: as many operations as a product with `A`.
/// Reductions: none. Levels of few rows leave threads idle.
pub struct Ilu<T> {
    lower: Triangle<T>,
    upper: Triangle<T>,
    /// The solution of the lower triangle by rows of the matrix.
    middle: Vec<T>,
    /// The solution of a triangle by its own order.
    ordered: Vec<T>,
}

/// A triangle whose rows are ordered by levels.
struct Triangle<T> {
    /// The matrix's rows in that order.
    rows: Vec<u32>,
    /// Where each level begins, and the number of rows.
    levels: Vec<usize>,
    /// Where each row's entries begin, and their number.
    offsets: Vec<usize>,
    /// The entries' columns in that order, and their values.
    columns: Vec<u32>,
    values: Vec<T>,
    /// What a row's sum is multiplied with; none for ones.
    scale: Vec<T>,
}

const CHANGE: &str = "choose a smaller system or another preconditioner";

fn filled<T: Clone>(value: T, len: usize) -> Result<Vec<T>> {
    memory::filled(value, len, "incomplete factors", CHANGE)
}

impl<T: Real> Ilu<T> {
    /// Factors the operator's entries.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] where the entries are not known or a pivot is 0 or not finite, [`Error::Limit`] where the machine
    /// has no memory for the factors.
    pub fn new(a: &dyn Operator<T>) -> Result<Self> {
        let matrix = entries_of(a, "ilu")?;
        let rows = matrix.rows();
        let mut values =
            memory::copied(T::slice(matrix.values()).unwrap_or_default(), "incomplete factors", CHANGE)?;
        let (mut places, mut diagonal) = (filled(usize::MAX, rows)?, filled(T::ZERO, rows)?);
        for row in 0..rows {
            let range = matrix.range(row);
            for at in range.clone() {
                places[matrix.indices()[at] as usize] = at;
            }
            for at in range.clone() {
                let before = matrix.indices()[at] as usize;
                if before >= row {
                    break;
                }
                let factor = values[at] * diagonal[before];
                values[at] = factor;
                for beyond in matrix.range(before) {
                    let column = matrix.indices()[beyond] as usize;
                    let place = places[column];
                    if column > before && place != usize::MAX {
                        values[place] = values[place] - factor * values[beyond];
                    }
                }
            }
            let pivot = match places[row] {
                usize::MAX => T::ZERO,
                place => values[place],
            };
            let inverse = T::ONE / pivot;
            if pivot == T::ZERO || !pivot.is_finite() || !inverse.is_finite() {
                let reason = format!("the pivot of row {row} is {:e}", pivot.to_f64());
                let change = "reorder the rows or use another preconditioner";
                return Err(Error::invalid("the incomplete factorisation", reason, change));
            }
            diagonal[row] = inverse;
            for at in range {
                places[matrix.indices()[at] as usize] = usize::MAX;
            }
        }
        let lower = Triangle::new(&matrix, &values, None)?;
        let upper = Triangle::new(&matrix, &values, Some(diagonal))?;
        Ok(Ilu { lower, upper, middle: zeros(rows)?, ordered: zeros(rows)? })
    }
}

impl<T: Real> Triangle<T> {
    /// Takes what is below the diagonal; or what is beyond it, with the inverses of the diagonal.
    fn new(matrix: &Csr, values: &[T], diagonal: Option<Vec<T>>) -> Result<Self> {
        let n = matrix.rows();
        let is_upper = diagonal.is_some();
        let belongs = |row: usize, column: usize| if is_upper { column > row } else { column < row };
        let mut level_of: Vec<u32> = filled(0, n)?;
        let mut sizes: Vec<usize> = Vec::new();
        for number in 0..n {
            let row = if is_upper { n - 1 - number } else { number };
            let others = matrix.range(row).map(|at| matrix.indices()[at] as usize);
            let own = others.filter(|&to| belongs(row, to)).map(|to| level_of[to] + 1).max().unwrap_or(0);
            level_of[row] = own;
            if sizes.len() <= own as usize {
                sizes.push(0);
            }
            sizes[own as usize] += 1;
        }
        let mut levels = vec![0];
        for size in sizes {
            levels.push(levels[levels.len() - 1] + size);
        }
        let (mut next, mut rows, mut place_of) = (levels.clone(), filled(0, n)?, filled(0, n)?);
        for (row, &level) in level_of.iter().enumerate() {
            let place = &mut next[level as usize];
            (rows[*place], place_of[row]) = (row as u32, *place as u32);
            *place += 1;
        }
        let count = (0..n)
            .map(|row| matrix.range(row).filter(|&at| belongs(row, matrix.indices()[at] as usize)).count())
            .sum();
        let (mut offsets, mut columns, mut own) =
            (filled(0, n + 1)?, filled(0, count)?, filled(T::ZERO, count)?);
        let mut end = 0;
        for (place, &row) in rows.iter().enumerate() {
            for at in matrix.range(row as usize) {
                let column = matrix.indices()[at] as usize;
                if belongs(row as usize, column) {
                    (columns[end], own[end]) = (place_of[column], values[at]);
                    end += 1;
                }
            }
            offsets[place + 1] = end;
        }
        let mut scale = Vec::new();
        if let Some(diagonal) = diagonal {
            scale = filled(T::ZERO, n)?;
            scale.iter_mut().zip(&rows).for_each(|(scale, &row)| *scale = diagonal[row as usize]);
        }
        Ok(Triangle { rows, levels, offsets, columns, values: own, scale })
    }

    /// Solves the triangle for `b`; `ordered` is the solution in its own order.
    fn solve<E: Engine<T>>(&self, engine: &E, b: &[T], ordered: &mut [T], x: &mut [T]) {
        for ends in self.levels.windows(2) {
            let (known, rest) = ordered.split_at_mut(ends[0]);
            engine.chunks(&mut rest[..ends[1] - ends[0]], CHUNK, |start, own| {
                for (number, own) in own.iter_mut().enumerate() {
                    let place = ends[0] + start + number;
                    let range = self.offsets[place]..self.offsets[place + 1];
                    let entries = self.values[range.clone()].iter().zip(&self.columns[range]);
                    let sum = entries.fold(b[self.rows[place] as usize], |sum, (&value, &column)| {
                        sum - value * known[column as usize]
                    });
                    *own = self.scale.get(place).map_or(sum, |&scale| sum * scale);
                }
            });
        }
        for (&row, &value) in self.rows.iter().zip(&*ordered) {
            x[row as usize] = value;
        }
    }
}

impl<T: Real, E: Engine<T>> Preconditioner<T, E> for Ilu<T> {
    fn name(&self) -> &'static str {
        "ilu"
    }

    fn rows(&self) -> Option<usize> {
        Some(self.middle.len())
    }

    fn apply(&mut self, engine: &E, r: &[T], z: &mut [T]) {
        self.lower.solve(engine, r, &mut self.ordered, &mut self.middle);
        self.upper.solve(engine, &self.middle, &mut self.ordered, z);
    }
}

//! Quadratic forms xᵀ S x of constant symmetric matrices, summed by the structure of the matrix that a formula asks for by
//! name: another structure is another order of the sum, and so has other bits.
//!
//! | structure | the sum, in its order | multiply-adds of N values |
//! |---|---|---|
//! | [`symmetric`](QuadraticForm::symmetric) | 2 Σ_i x_i (½ S_ii x_i + Σ_{j>i} S_ij x_j), rows and columns ascending | N (N+3)/2 |
//! | [`sparse`](QuadraticForm::sparse) | the same of the entries that are not 0 alone | one a pair, one or two a row |
//! | [`low_rank`](QuadraticForm::low_rank) | Σ_k (Σ_i L_ik x_i)² with S = L Lᵀ to within a tolerance, k ascending | N + 1 a column of L |
//!
//! Every product is fused onto the sum before it. A matrix of ones less a sparse one is (Σ x)² less the sparse one's form.

use super::{Expr, Graph, Index};
use crate::error::{Error, Result};

/// The form of a constant symmetric matrix.
#[derive(Debug, Clone, PartialEq)]
pub struct QuadraticForm {
    size: usize,
    by: By,
}

#[derive(Debug, Clone, PartialEq)]
enum By {
    /// All entries, row by row, of which the upper triangle is read.
    Triangle(Vec<f64>),
    /// Entries of the upper triangle that are not 0: row, column and value, row by row.
    Entries(Vec<(usize, usize, f64)>),
    /// The columns of L.
    Columns(Vec<Vec<f64>>),
}

impl QuadraticForm {
    /// Sums over the upper triangle of a matrix whose entries stand row by row.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] for a matrix that is not square, [`Error::Invalid`] for one that is not symmetric.
    pub fn symmetric(size: usize, entries: &[f64]) -> Result<QuadraticForm> {
        check(size, entries)?;
        Ok(QuadraticForm { size, by: By::Triangle(entries.to_vec()) })
    }

    /// Sums over those entries of the upper triangle that are not 0; they are always written out. The errors are those of
    /// [`QuadraticForm::symmetric`].
    pub fn sparse(size: usize, entries: &[f64]) -> Result<QuadraticForm> {
        check(size, entries)?;
        let upper = (0..size).flat_map(|i| (i..size).map(move |j| (i, j, entries[i * size + j])));
        Ok(QuadraticForm { size, by: By::Entries(upper.filter(|&(.., entry)| entry != 0.0).collect()) })
    }

    /// Sums squares of as many products as the matrix has columns in a factor L. Every entry of L Lᵀ is within `tolerance`
    /// of the matrix's, in units of √(S_ii S_jj).
    ///
    /// # Errors
    ///
    /// Those of [`QuadraticForm::symmetric`], and [`Error::Invalid`] for a matrix that is not positive semidefinite to
    /// within the tolerance.
    pub fn low_rank(size: usize, entries: &[f64], tolerance: f64) -> Result<QuadraticForm> {
        check(size, entries)?;
        let at = |i: usize, j: usize| entries[i * size + j];
        let roots: Vec<f64> = (0..size).map(|i| at(i, i).max(0.0).sqrt()).collect();
        let unit = |i: usize, j: usize| match roots[i] * roots[j] {
            _ if i == j => 1.0,
            0.0 => 0.0,
            scale => at(i, j) / scale,
        };
        let columns = factors(size, unit, tolerance);
        let scaled = |column: Vec<f64>| column.iter().zip(&roots).map(|(l, root)| l * root).collect();
        let columns: Vec<Vec<f64>> = columns.into_iter().map(scaled).collect();
        let is_near = |i: usize, j: usize| {
            let product: f64 = columns.iter().map(|column| column[i] * column[j]).sum();
            // The products themselves are rounded.
            (product - at(i, j)).abs() <= (tolerance + 4.0 * f64::EPSILON) * roots[i] * roots[j]
        };
        match (0..size).all(|i| (0..=i).all(|j| is_near(i, j))) {
            true => Ok(QuadraticForm::of_columns(size, columns)),
            false => {
                let reason =
                    "it is not positive semidefinite to within the tolerance, and no product of a factor";
                Err(Error::invalid("matrix of a low rank", reason, "sum over its upper triangle"))
            }
        }
    }

    /// Sums squares of products with the columns of a factor that is known, each of `size` values.
    pub fn of_columns(size: usize, columns: Vec<Vec<f64>>) -> QuadraticForm {
        QuadraticForm { size, by: By::Columns(columns) }
    }

    /// Sums over the upper triangle of a matrix whose entry in a row and a column, not before the row, is given.
    pub fn of_triangle(size: usize, entry: impl Fn(usize, usize) -> f64) -> QuadraticForm {
        let all = (0..size).flat_map(|i| (0..size).map(move |j| (i.min(j), i.max(j))));
        QuadraticForm { size, by: By::Triangle(all.map(|(i, j)| entry(i, j)).collect()) }
    }

    /// Returns the number of values.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the multiply-adds of the sum with each term written out.
    pub fn operations(&self) -> usize {
        match &self.by {
            By::Triangle(_) => self.size * (self.size + 3) / 2,
            By::Entries(entries) => entries.len() + entries.chunk_by(|a, b| a.0 == b.0).count(),
            By::Columns(columns) => {
                columns.iter().map(|column| 1 + column.iter().filter(|&&value| value != 0.0).count()).sum()
            }
        }
    }

    /// Returns the form of values, in loops but for sparse entries.
    pub fn of<'g>(&self, graph: &'g Graph, x: impl Fn(Index<'g>) -> Expr<'g>) -> Expr<'g> {
        self.in_lanes(1, graph, x)
    }

    /// Returns the form of values, in loops but for sparse entries, whose rows of a triangle and products with a column are
    /// summed as trees of `lanes` lanes ([`Graph::tree_sums`]).
    pub fn in_lanes<'g>(
        &self,
        lanes: usize,
        graph: &'g Graph,
        x: impl Fn(Index<'g>) -> Expr<'g>,
    ) -> Expr<'g> {
        let count = self.size;
        match &self.by {
            By::Triangle(entries) => {
                let halves: Vec<f64> = (0..count).map(|i| 0.5 * entries[i * (count + 1)]).collect();
                2.0 * graph.tree_sum_of_products(lanes, 0..count, |i| {
                    let own = x(i) * graph.table(&halves).at(i);
                    let table = graph.table_of(count, entries);
                    [
                        x(i),
                        graph.fold(i.plus(1).to(count), own, |j, sum| x(j).mul_add(table.at_row(i, j), sum)),
                    ]
                })
            }
            By::Entries(entries) => graph.entries(entries, x),
            By::Columns(columns) => graph.squares(columns.iter().filter_map(|column| {
                let present = column.iter().filter(|&&weight| weight != 0.0).count();
                match 2 * present > count {
                    true => {
                        let factors = |i| [x(i), graph.table(column).at(i)];
                        Some(graph.tree_sum_of_products(lanes, 0..count, factors))
                    }
                    false => graph.weighted(column, &x),
                }
            })),
        }
    }

    /// Returns the form of values, each term written out; they are asked for by numbers alone
    /// ([`Index::number`]).
    pub fn written_out<'g>(&self, graph: &'g Graph, x: impl Fn(Index<'g>) -> Expr<'g>) -> Expr<'g> {
        let count = self.size;
        let at = |number: usize| x(graph.index(number));
        match &self.by {
            By::Triangle(entries) => {
                let row = |i: usize| {
                    (i + 1..count).fold(at(i) * (0.5 * entries[i * (count + 1)]), |sum, j| {
                        at(j).mul_add(entries[i * count + j], sum)
                    })
                };
                let half = (0..count).fold(None, |sum: Option<Expr<'g>>, i| {
                    let row = row(i);
                    Some(sum.map_or_else(|| at(i) * row, |sum| at(i).mul_add(row, sum)))
                });
                half.map_or_else(|| graph.constant(0.0), |half| 2.0 * half)
            }
            By::Entries(entries) => graph.entries(entries, x),
            By::Columns(columns) => {
                graph.squares(columns.iter().filter_map(|column| graph.weighted(column, &x)))
            }
        }
    }
}

impl Graph {
    /// Returns the form of entries of the upper triangle.
    fn entries<'g>(&'g self, entries: &[(usize, usize, f64)], x: impl Fn(Index<'g>) -> Expr<'g>) -> Expr<'g> {
        let half = entries.chunk_by(|a, b| a.0 == b.0).fold(None, |all: Option<Expr<'g>>, row| {
            let own = x(self.index(row[0].0));
            let sum = row.iter().fold(None, |sum: Option<Expr<'g>>, &(i, j, entry)| {
                let (value, weight) = (x(self.index(j)), if i == j { 0.5 * entry } else { entry });
                Some(sum.map_or_else(|| value * weight, |sum| value.mul_add(weight, sum)))
            })?;
            Some(all.map_or_else(|| own * sum, |all| own.mul_add(sum, all)))
        });
        half.map_or_else(|| self.constant(0.0), |half| 2.0 * half)
    }

    /// Returns the sum of values times weights, without those whose weight is 0; `None` of none.
    fn weighted<'g>(&'g self, weights: &[f64], x: impl Fn(Index<'g>) -> Expr<'g>) -> Option<Expr<'g>> {
        let present = weights.iter().enumerate().filter(|(_, weight)| **weight != 0.0);
        present.fold(None, |sum: Option<Expr<'g>>, (i, &weight)| {
            let value = x(self.index(i));
            Some(sum.map_or_else(|| value * weight, |sum| value.mul_add(weight, sum)))
        })
    }

    fn squares<'g>(&'g self, all: impl Iterator<Item = Expr<'g>>) -> Expr<'g> {
        let sum = all
            .fold(None, |sum: Option<Expr<'g>>, q| Some(sum.map_or_else(|| q * q, |sum| q.mul_add(q, sum))));
        sum.unwrap_or_else(|| self.constant(0.0))
    }
}

fn check(size: usize, entries: &[f64]) -> Result<()> {
    if size == 0 || size.checked_mul(size) != Some(entries.len()) {
        let limit = format!("{size} rows of as many");
        return Err(Error::limit("entries of a symmetric matrix", entries.len(), limit, "give as many"));
    }
    if let Some(other) = entries.iter().find(|entry| !entry.is_finite()) {
        return Err(Error::limit(
            "entry of a symmetric matrix",
            other,
            "a finite number",
            "correct the matrix",
        ));
    }
    for i in 0..size {
        if let Some(j) = (0..i).find(|&j| entries[i * size + j] != entries[j * size + i]) {
            let (own, other) = (entries[i * size + j], entries[j * size + i]);
            let reason = format!("its entry {i}, {j} is {own}, and {j}, {i} is {other}");
            return Err(Error::invalid("symmetric matrix", reason, "make both the same"));
        }
    }
    Ok(())
}

/// Returns the columns of `L` with `L Lᵀ` equal to a positive semidefinite matrix of ones on the diagonal, to within
/// `tolerance` at every entry, by Cholesky's decomposition with complete pivoting (Higham, Accuracy and Stability of
/// Numerical Algorithms, 2nd ed., section 10.3). What is left after each column is positive semidefinite, so that no entry
/// of it is larger than the largest on its diagonal.
pub fn factors(size: usize, entry: impl Fn(usize, usize) -> f64, tolerance: f64) -> Vec<Vec<f64>> {
    let mut left: Vec<f64> = (0..size).map(|i| entry(i, i)).collect();
    let mut columns: Vec<Vec<f64>> = Vec::new();
    let mut pivots: Vec<usize> = Vec::new();
    while columns.len() < size {
        // The first of the largest, so that the factors follow from the table alone.
        let Some(pivot) = (0..size)
            .filter(|i| !pivots.contains(i))
            .reduce(|best, i| if left[i] > left[best] { i } else { best })
            .filter(|&pivot| left[pivot] > tolerance)
        else {
            break;
        };
        let root = left[pivot].sqrt();
        pivots.push(pivot);
        let column = (0..size).map(|i| match i {
            i if i == pivot => root,
            i if pivots.contains(&i) => 0.0,
            i => columns.iter().fold(entry(i, pivot), |sum, c| (-c[i]).mul_add(c[pivot], sum)) / root,
        });
        let column: Vec<f64> = column.collect();
        for (left, value) in left.iter_mut().zip(&column) {
            *left = (-value).mul_add(*value, *left);
        }
        columns.push(column);
    }
    columns
}

#[cfg(test)]
mod tests;

//! Which rows of a matrix become one row of the next coarser one.

use abide_core::sparse::Csr;
use abide_core::{Result, memory};

/// Of a row that is in no aggregate.
pub const ALONE: u32 = u32::MAX;

/// The rows that become one, and the connections of each row that count.
pub struct Aggregates {
    /// The aggregate of each row, or [`ALONE`].
    pub of: Vec<u32>,
    /// The number of aggregates.
    pub count: usize,
    /// Of each entry of the matrix, whether it is a strong connection of two rows.
    pub strong: Vec<bool>,
}

fn filled<T: Clone>(value: T, len: usize) -> Result<Vec<T>> {
    memory::filled(value, len, "aggregates of rows", "choose a smaller system or another preconditioner")
}

impl Aggregates {
    /// Puts rows together that are strongly connected: where `|a_ij| > strength sqrt(a_ii a_jj)`.
    ///
    /// Source: Vaněk, Mandel and Brezina, Computing 56 (1996), 179–196, section 5: first whole neighbourhoods, by ascending
    /// row; then what is left beside them, each row with the neighbour that it is connected to most strongly (by the first
    /// of several); then what is left together. Rows without strong connections stay alone: smoothing solves them.
    pub fn new(matrix: &Csr, values: &[f64], diagonal: &[f64], strength: f64) -> Result<Aggregates> {
        let rows = matrix.rows();
        let mut strong = filled(false, values.len())?;
        for row in 0..rows {
            for at in matrix.range(row) {
                let column = matrix.indices()[at] as usize;
                let least = strength * strength * diagonal[row] * diagonal[column];
                strong[at] = column != row && values[at] != 0.0 && values[at] * values[at] > least;
            }
        }
        let mut own = Aggregates { of: filled(ALONE, rows)?, count: 0, strong };
        for row in 0..rows {
            let has_any = own.neighbours(matrix, row).next().is_some();
            let is_free =
                own.of[row] == ALONE && own.neighbours(matrix, row).all(|(to, _)| own.of[to] == ALONE);
            if has_any && is_free {
                own.join(matrix, row);
            }
        }
        // What joins here is no place to join for others.
        let first = memory::copied(&own.of, "aggregates of rows", "choose a smaller system")?;
        for row in (0..rows).filter(|&row| first[row] == ALONE) {
            let mut best: Option<(f64, u32)> = None;
            for (to, at) in own.neighbours(matrix, row).filter(|&(to, _)| first[to] != ALONE) {
                let weight = values[at] * values[at] / diagonal[to];
                if best.is_none_or(|(most, _)| weight > most) {
                    best = Some((weight, first[to]));
                }
            }
            if let Some((_, aggregate)) = best {
                own.of[row] = aggregate;
            }
        }
        for row in 0..rows {
            if own.of[row] == ALONE && own.neighbours(matrix, row).next().is_some() {
                own.join(matrix, row);
            }
        }
        Ok(own)
    }

    /// Returns the rows to which a row is strongly connected, with the places of their entries.
    fn neighbours<'a>(&'a self, matrix: &'a Csr, row: usize) -> impl Iterator<Item = (usize, usize)> + 'a {
        matrix.range(row).filter(|&at| self.strong[at]).map(|at| (matrix.indices()[at] as usize, at))
    }

    /// Makes an aggregate of a row and those of its neighbours that have none.
    fn join(&mut self, matrix: &Csr, row: usize) {
        let aggregate = self.count as u32;
        self.count += 1;
        self.of[row] = aggregate;
        for at in matrix.range(row) {
            let to = matrix.indices()[at] as usize;
            if self.strong[at] && self.of[to] == ALONE {
                self.of[to] = aggregate;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::laplacian_2d;
    use abide_core::{DType, Real};

    /// Every row of a connected matrix is in an aggregate, aggregates are connected, and have some nine rows in 2D.
    #[test]
    fn rows_of_a_grid_are_in_aggregates_of_neighbours() {
        let matrix = laplacian_2d(31, 40, DType::F64).unwrap();
        let values = f64::slice(matrix.values()).unwrap();
        let own = Aggregates::new(&matrix, values, &vec![4.0; 1240], 0.08).unwrap();
        assert!(own.of.iter().all(|&aggregate| (aggregate as usize) < own.count));
        assert!((140..320).contains(&own.count), "{}", own.count);
        for row in 0..1240_usize {
            let beside = |to: usize| row.abs_diff(to) == 1 || row.abs_diff(to) == 40;
            let same = (0..1240).filter(|&to| to != row && own.of[to] == own.of[row]);
            assert!(same.clone().next().is_none() || same.clone().any(beside), "row {row}");
        }
    }

    /// A chain whose links along one axis are weak is put together along the other alone.
    #[test]
    fn weak_connections_are_left_out() {
        let mut triplets = abide_core::sparse::Triplets::new(100, 100).unwrap();
        for row in 0..100_usize {
            triplets.push(row, row, 2.002).unwrap();
            for (to, value) in [(row ^ 1, -1.0), ((row + 2) % 100, -1e-3), ((row + 98) % 100, -1e-3)] {
                triplets.push(row, to, value).unwrap();
            }
        }
        let matrix = triplets.into_csr().unwrap();
        let values = f64::slice(matrix.values()).unwrap();
        let own = Aggregates::new(&matrix, values, &[2.002; 100], 0.08).unwrap();
        assert_eq!(own.count, 50);
        assert!((0..100).all(|row| own.of[row] == own.of[row ^ 1]));
    }
}

//! A system as the phases read it: the arrays of the matrix, and of the preconditioner, which is made here.

use abide_solvers::{build_preconditioner, estimate_bounds};
use std::sync::Arc;

use abide_core::solver::plan::Dispatches;
use abide_core::solver::plan::krylov::applied;
use abide_core::solver::{Matrix, Method, Operator, Preconditioning, SolveOptions, SolverError};
use abide_core::sparse::Csr;
use abide_core::{Array, Error, Real, Result};
use abide_solvers::{BlockDiagonal, Diagonal, Serial, polynomial_bounds, polynomial_factors};

/// Pairs of Chebyshev iteration's factors that are computed beforehand. The factors tend to a limit, and
/// these many come near to it with any matrix that the iteration is worth trying on.
const FACTORS: usize = 4096;

/// The arrays that are loaded once per session.
pub(super) struct PackedSystem {
    /// The beginnings of rows; then, for each turn of a workgroup, the beginning of its list of long rows;
    /// then these lists.
    pub offsets: Vec<u32>,
    /// The inverse diagonal; empty where no phase reads it.
    pub inverse: Array,
    /// Rows of the inverse blocks of block-Jacobi, each as long as a block.
    pub inverses: Array,
    /// Rows of an inverse block.
    pub size: usize,
    /// The polynomial preconditioner's factors, of the old direction and of the residual, for each of its
    /// steps.
    pub steps: Vec<[f64; 2]>,
    /// Chebyshev iteration's factors: old direction, residual.
    pub factors: Array,
    /// The damping of Jacobi's method.
    pub weight: f64,
}

impl PackedSystem {
    /// Estimates eigenvalues, inverts blocks, lists long rows.
    pub fn new<T: Real>(
        matrix: &Matrix,
        options: &SolveOptions,
        layout: &Dispatches,
    ) -> Result<PackedSystem, SolverError> {
        let operator = matrix.operator::<T>()?;
        let none = || T::into_array(Vec::new());
        let mut system = PackedSystem {
            offsets: Vec::new(),
            inverse: none(),
            inverses: none(),
            size: 1,
            steps: vec![[0.0; 2]],
            factors: none(),
            weight: 1.0,
        };
        if let Matrix::Stored(stored) = matrix {
            system.offsets = offsets(stored, layout)?;
        }
        system.precondition::<T>(&operator, options)?;
        match options.method {
            Method::Jacobi(method) => {
                method.check()?;
                system.weight = method.weight;
            }
            Method::Chebyshev(method) => {
                let bounds = match method.bounds {
                    Some(bounds) => bounds,
                    None => {
                        let mut m =
                            build_preconditioner(&options.preconditioner, &Serial, Arc::clone(&operator))?;
                        estimate_bounds(&Serial, &operator, &mut m, 30)?.widened(0.9, 1.1)?
                    }
                };
                // The first direction has no old one.
                let factors = std::iter::once(0.0).chain(polynomial_factors(bounds, FACTORS - 1));
                system.factors = T::into_array(factors.map(T::from_f64).collect());
            }
            _ => {}
        }
        Ok(system)
    }

    /// Returns the number of pairs of Chebyshev iteration's factors.
    pub fn pairs(&self) -> usize {
        self.factors.len() / 2
    }

    fn precondition<T: Real>(
        &mut self,
        operator: &Arc<dyn Operator<T>>,
        options: &SolveOptions,
    ) -> Result<(), SolverError> {
        match applied(options) {
            Preconditioning::None => {}
            host @ (Preconditioning::Ilu | Preconditioning::Amg { .. }) => host.check_kernels()?,
            Preconditioning::Jacobi => {
                self.inverse = T::into_array(Diagonal::new(operator)?.inverse().to_vec())
            }
            Preconditioning::BlockJacobi { size } => {
                let blocks = BlockDiagonal::new(operator, size)?;
                self.size = blocks.size();
                self.inverses = T::into_array(padded(&blocks, operator.rows()));
            }
            Preconditioning::Chebyshev { degree } => {
                let (scale, bounds) = polynomial_bounds(&Serial, operator)?;
                let inverse =
                    scale.map_or_else(|| vec![T::ONE; operator.rows()], |scale| scale.inverse().to_vec());
                self.inverse = T::into_array(inverse);
                let factors = polynomial_factors(bounds, degree);
                let (first, later) = factors.split_at(1);
                self.steps = first.iter().map(|&first| [0.0, first]).collect();
                self.steps.extend(later.as_chunks::<2>().0);
            }
        }
        Ok(())
    }
}

/// Returns the rows of inverse blocks, the last block's filled up to the length of the others'.
fn padded<T: Real>(blocks: &BlockDiagonal<T>, rows: usize) -> Vec<T> {
    let size = blocks.size();
    let mut all = Vec::with_capacity(rows * size);
    let mut rest = blocks.inverses();
    for start in (0..rows).step_by(size) {
        let n = size.min(rows - start);
        let (block, later) = rest.split_at(n * n);
        rest = later;
        for row in block.chunks_exact(n) {
            all.extend_from_slice(row);
            all.resize(all.len() + size - n, T::ZERO);
        }
    }
    all
}

/// Returns the row offsets, and behind them the lists of long rows.
fn offsets(stored: &Csr, layout: &Dispatches) -> Result<Vec<u32>> {
    let narrow = |value: usize| {
        let change = "choose --backend cpu";
        u32::try_from(value)
            .map_err(|_| Error::limit("numbers of a solver's layout", value, u32::MAX, change))
    };
    let rows = stored.rows();
    let mut all = (0..rows).map(|row| narrow(stored.range(row).start)).collect::<Result<Vec<u32>>>()?;
    all.push(narrow(stored.nnz())?);
    let Some(longest) = layout.longest else { return Ok(all) };
    let turns = rows.div_ceil(layout.rows());
    let mut lists = Vec::new();
    let before = all.len() + turns + 1;
    for turn in 0..turns {
        all.push(narrow(before + lists.len())?);
        let end = rows.min((turn + 1) * layout.rows());
        for row in turn * layout.rows()..end {
            if stored.range(row).len() > longest {
                lists.push(narrow(row)?);
            }
        }
    }
    all.push(narrow(before + lists.len())?);
    all.extend(lists);
    Ok(all)
}

#[cfg(test)]
mod tests {
    use abide_core::sparse::Triplets;

    use super::*;

    #[test]
    fn long_rows_are_listed_where_their_workgroup_looks() {
        let mut triplets = Triplets::new(10, 10).unwrap();
        for row in 0..10 {
            let entries = if row == 3 || row == 9 { 5 } else { 1 };
            (0..entries).for_each(|k| triplets.push(row, (row + k) % 10, 1.0).unwrap());
        }
        let stored = triplets.into_csr().unwrap();
        let mut layout = Dispatches {
            threads: 8,
            groups: 2,
            product_groups: 3,
            share: 256,
            product_share: 128,
            lanes: 2,
            longest: Some(4),
            an_iteration: 5,
        };
        let all = offsets(&stored, &layout).unwrap();
        assert_eq!(all[..11], [0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 18]);
        // The lists of rows 0 to 3, of 4 to 7, and of 8 and 9; then the end, and the rows.
        assert_eq!(all[11..], [15, 16, 16, 17, 3, 9]);
        layout.longest = None;
        assert_eq!(offsets(&stored, &layout).unwrap().len(), 11);
    }
}

//! Algebraic multigrid: a cycle through coarser matrices that are made of the matrix alone.

mod aggregate;
mod bottom;

use std::sync::Arc;

use abide_core::solver::{Bounds, Matrix, Operator, SolverError};
use abide_core::sparse::Csr;
use abide_core::sparse::rows::Rows;
use abide_core::{DType, Error, Real, Result};

use self::aggregate::{ALONE, Aggregates};
use self::bottom::Bottom;
use crate::bounds::{estimate_bounds, of_preconditioner};
use crate::engine::{Engine, Serial, zeros};
use crate::precondition::{Diagonal, Preconditioner, entries_of};
use crate::recurrence::Recurrence;

/// Steps of Chebyshev's polynomial before and after the next coarser matrix.
const SMOOTHING: usize = 2;
/// The share of the largest eigenvalue below which errors are left to the coarser matrix.
const LOWEST: f64 = 1.0 / 5.0;
/// Steps of Lanczos' method by which the largest eigenvalue is estimated, and the margin above what they find.
const STEPS: usize = 12;
const MARGIN: f64 = 1.1;
/// A coarser matrix of more than this share of the rows is not worth its cycle.
const LEAST_COARSER: f64 = 0.8;

/// Algebraic multigrid by smoothed aggregation: one V-cycle for symmetric positive definite matrices, those that take
/// constants to 0 among them.
///
/// Source: Vaněk, Mandel and Brezina, Computing 56 (1996), 179–196. Rows that are strongly connected become one row of the
/// next matrix; the piecewise constant interpolation is smoothed by one step of Jacobi's method on the matrix without its
/// weak connections. Smoother: Chebyshev polynomials of degree 2 (Adams, Brezina, Hu and Tuminaro, J. Comput. Phys. 188
/// (2003), 593–610), which have no order of rows, so that the bits are those of any number of threads. The coarsest matrix is
/// solved by elimination. Set-up is in f64 on one thread, the cycle in the type of the vectors. Memory: about 1.5 times the
/// matrix and 6 vectors. Per application: 4 products with `A`, some 0.6 of one on all coarser matrices, no reduction.
pub struct Amg<T, A> {
    a: A,
    levels: Vec<Level<T>>,
    bottom: Option<Bottom>,
    rows: usize,
}

/// A matrix of the cycle, and how its errors are smoothed.
struct Level<T> {
    /// The matrix; none for the first, which is the operator.
    matrix: Option<Arc<Csr>>,
    inverse: Vec<T>,
    bounds: Bounds,
    /// The way to the next coarser matrix and back; none where there is no coarser one.
    ways: Option<Ways>,
    residual: Vec<T>,
    direction: Vec<T>,
    product: Vec<T>,
    /// The right-hand side and solution of the next coarser matrix.
    b: Vec<T>,
    x: Vec<T>,
}

struct Ways {
    restrict: Csr,
    prolong: Csr,
}

impl<T: Real, A: Operator<T>> Amg<T, A> {
    /// Makes the cycle of an operator whose entries are known; connections count where their squares are above those of
    /// `strength` times both diagonal entries' mean, halved from matrix to matrix.
    ///
    /// # Errors
    ///
    /// [`SolverError::Invalid`] where the entries are not known, the diagonal is not positive or the matrix proves not to be
    /// positive definite, or where the machine has no memory for the coarser matrices.
    pub fn new(a: A, strength: f64) -> Result<Self, SolverError> {
        let rows = a.rows();
        let mut matrix = entries_of(&a, "amg")?.cast(DType::F64)?;
        let (mut levels, mut bottom): (Vec<Level<T>>, _) = (Vec::new(), None);
        let mut strength = strength;
        loop {
            if matrix.rows() <= bottom::MOST {
                bottom = Some(Bottom::new(&matrix)?);
                break;
            }
            let coarser = Coarser::of(&matrix, strength)?;
            strength /= 2.0;
            let mut level = Level::new(Arc::new(matrix.cast(T::DTYPE)?))?;
            if levels.is_empty() {
                level.matrix = None;
            }
            let Some(coarser) = coarser else {
                levels.push(level);
                break;
            };
            matrix = coarser.matrix;
            let prolong = coarser.prolong.cast(T::DTYPE)?;
            (level.b, level.x) = (zeros(matrix.rows())?, zeros(matrix.rows())?);
            level.ways = Some(Ways { restrict: prolong.transpose()?, prolong });
            levels.push(level);
        }
        Ok(Amg { a, levels, bottom, rows })
    }

    /// Returns the rows of the matrices of the cycle, from the first on.
    pub fn extents(&self) -> Vec<usize> {
        let coarser = self.levels.iter().filter(|level| level.ways.is_some()).map(|level| level.b.len());
        std::iter::once(self.rows).chain(coarser).collect()
    }
}

/// The next coarser matrix, and the interpolation from it.
struct Coarser {
    prolong: Csr,
    matrix: Csr,
}

impl Coarser {
    /// Returns `None` where too few rows can be put together.
    fn of(matrix: &Csr, strength: f64) -> Result<Option<Coarser>> {
        let values = f64::slice(matrix.values()).unwrap_or_default();
        let diagonal: Vec<f64> = matrix.diagonal()?.to_f64();
        if let Some(row) = diagonal.iter().position(|value| *value <= 0.0 || !value.is_finite()) {
            let reason = format!("the diagonal entry of row {row} is {:e}", diagonal[row]);
            let change = "the amg preconditioner needs a positive diagonal: take another one";
            return Err(Error::invalid("the matrix", reason, change));
        }
        let aggregates = Aggregates::new(matrix, values, &diagonal, strength)?;
        if aggregates.count == 0 || aggregates.count as f64 > LEAST_COARSER * matrix.rows() as f64 {
            return Ok(None);
        }
        let prolong = smoothed(matrix, values, &diagonal, &aggregates)?;
        let coarse = prolong.transpose()?.matmul(&matrix.matmul(&prolong)?)?;
        Ok(Some(Coarser { prolong, matrix: coarse }))
    }
}

/// Returns the interpolation that is constant on aggregates, after a step of Jacobi's method on the matrix whose weak
/// connections stand on its diagonal.
fn smoothed(matrix: &Csr, values: &[f64], diagonal: &[f64], aggregates: &Aggregates) -> Result<Csr> {
    let off = |row: usize| matrix.range(row).filter(move |&at| matrix.indices()[at] as usize != row);
    let lumped = |row: usize| {
        let weak: f64 = off(row).filter(|&at| !aggregates.strong[at]).map(|at| values[at]).sum();
        // A row that would lose its diagonal keeps it.
        if diagonal[row] + weak > 0.1 * diagonal[row] { diagonal[row] + weak } else { diagonal[row] }
    };
    let strong = |row: usize| off(row).filter(|&at| aggregates.strong[at]);
    // No eigenvalue is above the rows' sums (Gershgorin).
    let top = (0..matrix.rows())
        .map(|row| 1.0 + strong(row).map(|at| values[at].abs()).sum::<f64>() / lumped(row))
        .fold(1.0, f64::max);
    let weight = 4.0 / 3.0 / top;
    let mut prolong = Rows::new(matrix.rows(), aggregates.count, matrix.nnz())?;
    let mut row_of: Vec<(u32, f64)> = Vec::new();
    for row in 0..matrix.rows() {
        row_of.clear();
        if aggregates.of[row] != ALONE {
            row_of.push((aggregates.of[row], 1.0 - weight));
            let share = weight / lumped(row);
            let beside =
                strong(row).map(|at| (aggregates.of[matrix.indices()[at] as usize], -share * values[at]));
            row_of.extend(beside.filter(|&(aggregate, _)| aggregate != ALONE));
            row_of.sort_by_key(|&(aggregate, _)| aggregate);
        }
        prolong.merge(row_of.iter().copied());
        prolong.end();
    }
    prolong.finish()
}

impl<T: Real> Level<T> {
    fn new(matrix: Arc<Csr>) -> Result<Self, SolverError> {
        let plain = Matrix::Stored(Arc::clone(&matrix)).operator::<T>()?;
        let mut inverse = Diagonal::new(&*plain)?;
        let high = estimate_bounds(&Serial, &*plain, &mut inverse, STEPS);
        let high = MARGIN * high.map_err(|error| of_preconditioner("amg", error))?.high();
        let n = matrix.rows();
        Ok(Level {
            matrix: Some(matrix),
            inverse: inverse.into_inverse(),
            bounds: Bounds::new(LOWEST * high, high)?,
            ways: None,
            residual: zeros(n)?,
            direction: zeros(n)?,
            product: zeros(n)?,
            b: Vec::new(),
            x: Vec::new(),
        })
    }

    /// Computes `product = A direction`.
    fn multiply<E: Engine<T>>(&mut self, engine: &E, a: &dyn Operator<T>) {
        match &self.matrix {
            Some(matrix) => engine.multiply(matrix, &self.direction, &mut self.product),
            None => a.apply(&self.direction, &mut self.product),
        }
    }

    /// Adds the polynomial of the residual to `x`. The residual follows, but for the last step's part where that is the last
    /// one of the cycle.
    fn smooth<E: Engine<T>>(&mut self, engine: &E, a: &dyn Operator<T>, x: &mut [T], is_last: bool) {
        let mut recurrence = Recurrence::new(self.bounds);
        let first: T = recurrence.first();
        let Level { residual, direction, inverse, .. } = self;
        engine.update([direction, &mut *x], [residual, inverse], |[_, x], [r, s]| {
            let d = first * (s * r);
            [d, x + d]
        });
        for _ in 1..SMOOTHING {
            self.multiply(engine, a);
            let (old, new): (T, T) = recurrence.step();
            let Level { residual, direction, inverse, product, .. } = self;
            engine.update([residual, direction, &mut *x], [product, inverse], |[r, d, x], [ad, s]| {
                let r = r - ad;
                let d = old * d + new * (s * r);
                [r, d, x + d]
            });
        }
        if !is_last {
            self.multiply(engine, a);
            let Level { residual, product, .. } = self;
            engine.update([residual], [product], |[r], [ad]| [r - ad]);
        }
    }
}

/// Adds a V-cycle for `b` to nothing.
fn cycle<T: Real, E: Engine<T>>(
    engine: &E,
    a: &dyn Operator<T>,
    levels: &mut [Level<T>],
    bottom: &mut Option<Bottom>,
    b: &[T],
    x: &mut [T],
) {
    let Some((level, coarser)) = levels.split_first_mut() else {
        if let Some(bottom) = bottom {
            bottom.solve(b, x);
        }
        return;
    };
    engine.update([&mut level.residual, &mut *x], [b], |_, [b]| [b, T::ZERO]);
    let Some(ways) = level.ways.take() else { return level.smooth(engine, a, x, true) };
    level.smooth(engine, a, x, false);
    engine.multiply(&ways.restrict, &level.residual, &mut level.b);
    cycle(engine, a, coarser, bottom, &level.b, &mut level.x);
    engine.multiply(&ways.prolong, &level.x, &mut level.direction);
    level.ways = Some(ways);
    level.multiply(engine, a);
    let Level { residual, direction, product, .. } = level;
    engine.update([residual, &mut *x], [product, direction], |[r, x], [ad, d]| [r - ad, x + d]);
    level.smooth(engine, a, x, true);
}

impl<T: Real, A: Operator<T>, E: Engine<T>> Preconditioner<T, E> for Amg<T, A>
where
    A: Send,
{
    fn name(&self) -> &'static str {
        "amg"
    }

    fn rows(&self) -> Option<usize> {
        Some(self.rows)
    }

    fn apply(&mut self, engine: &E, r: &[T], z: &mut [T]) {
        cycle(engine, &self.a, &mut self.levels, &mut self.bottom, r, z);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::laplacian_2d;
    use abide_core::reduction::dot;

    fn applied(m: &mut Amg<f64, Arc<dyn Operator<f64>>>, r: &[f64]) -> Vec<f64> {
        let mut z = vec![f64::NAN; r.len()];
        m.apply(&Serial, r, &mut z);
        z
    }

    fn noise(seed: u64) -> Vec<f64> {
        let mut random = fastrand::Rng::with_seed(seed);
        (0..2491).map(|_| 2.0 * random.f64() - 1.0).collect()
    }

    /// A cycle is linear, symmetric and positive definite, as conjugate gradients need it, and reduces every error.
    #[test]
    fn a_cycle_is_a_symmetric_inverse() {
        let a = Matrix::from(laplacian_2d(47, 53, DType::F64).unwrap()).operator::<f64>().unwrap();
        let mut m = Amg::new(Arc::clone(&a), 0.08).unwrap();
        let extents = m.extents();
        assert!(extents.len() >= 3 && extents.windows(2).all(|pair| 3 * pair[1] < pair[0]), "{extents:?}");
        let (one, other) = (noise(1), noise(2));
        let (of_one, of_other) = (applied(&mut m, &one), applied(&mut m, &other));
        let (left, right) = (dot(&of_one, &other), dot(&one, &of_other));
        assert!((left - right).abs() < 1e-11 * dot(&one, &of_one), "{left} {right}");
        let sum: Vec<f64> = one.iter().zip(&other).map(|(a, b)| a - 3.0 * b).collect();
        let of_sum = applied(&mut m, &sum);
        let same = |k: usize| (of_sum[k] - (of_one[k] - 3.0 * of_other[k])).abs() < 1e-11;
        assert!((0..sum.len()).all(same));
        // The error after a cycle, in the norm of A.
        let energy = |e: &[f64]| {
            let mut image = vec![0.0; e.len()];
            a.apply(e, &mut image);
            (dot(e, &image), image)
        };
        let mut error = noise(3);
        for turn in 0..8 {
            let (before, image) = energy(&error);
            let step = applied(&mut m, &image);
            error.iter_mut().zip(&step).for_each(|(e, step)| *e -= step);
            let after = energy(&error).0;
            assert!(after > 0.0 && after < 0.5 * before, "cycle {turn}: {before:e} to {after:e}");
        }
    }

    /// Operators whose entries nobody knows, and matrices with a diagonal that is not positive, are refused.
    #[test]
    fn what_cannot_be_coarsened_is_refused() {
        struct Unknown;
        impl Operator<f64> for Unknown {
            fn rows(&self) -> usize {
                9
            }

            fn apply(&self, x: &[f64], y: &mut [f64]) {
                y.copy_from_slice(x);
            }
        }
        let error = Amg::<f64, _>::new(Unknown, 0.08).err().unwrap().to_string();
        assert!(error.contains("does not know its entries"), "{error}");
        let negative = laplacian_2d(20, 20, DType::F64).unwrap().negated().unwrap();
        let negative = Matrix::from(negative).operator::<f64>().unwrap();
        let error = Amg::new(negative, 0.08).err().unwrap().to_string();
        assert!(error.contains("diagonal entry of row 0 is -4e0"), "{error}");
    }
}

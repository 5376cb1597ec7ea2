//! The methods against theory and against a dense direct solver.

mod cg;
mod engines;
mod general;
mod matrix;
mod minres;
mod preconditioners;
mod stationary;

use abide_core::solver::{Exhausted, Operator, Parameters, Report, SolverError};
use abide_core::{Real, reduction};

use crate::engine::Serial;
use crate::precondition::{Diagonal, Identity, Preconditioner};
use crate::solver::Solver;

/// A dense matrix: the operator of the tests, with a direct solver that shares no code with the methods.
#[derive(Debug, Clone)]
pub(super) struct Dense<T> {
    pub(super) n: usize,
    pub(super) entries: Vec<T>,
}

impl<T: Real> Operator<T> for Dense<T> {
    fn rows(&self) -> usize {
        self.n
    }

    fn apply(&self, x: &[T], y: &mut [T]) {
        for i in 0..self.n {
            y[i] = (0..self.n).fold(T::ZERO, |sum, j| sum + self.entries[i * self.n + j] * x[j]);
        }
    }

    fn diagonal(&self) -> Option<Vec<T>> {
        Some((0..self.n).map(|i| self.entries[i * self.n + i]).collect())
    }

    fn diagonal_block(&self, start: usize, size: usize) -> Option<Vec<T>> {
        let rows = start..start + size;
        Some(rows.clone().flat_map(|i| rows.clone().map(move |j| self.entries[i * self.n + j])).collect())
    }
}

impl<T: Real> Dense<T> {
    pub(super) fn from_fn(n: usize, entry: impl Fn(usize, usize) -> f64) -> Self {
        Dense { n, entries: (0..n * n).map(|k| T::from_f64(entry(k / n, k % n))).collect() }
    }

    pub(super) fn diagonal_of(values: &[f64]) -> Self {
        Dense::from_fn(values.len(), |i, j| if i == j { values[i] } else { 0.0 })
    }

    /// The 1D Laplacian with fixed ends: eigenvalues `2 - 2 cos(k pi / (n + 1))`, k = 1..=n.
    pub(super) fn laplacian_1d(n: usize) -> Self {
        Dense::from_fn(n, |i, j| match i.abs_diff(j) {
            0 => 2.0,
            1 => -1.0,
            _ => 0.0,
        })
    }

    /// Returns `B B^T / n + I`, with the entries of B uniform in [-1, 1].
    pub(super) fn random_spd(n: usize, seed: u64) -> Self {
        let b = uniform(n * n, seed);
        Dense::from_fn(n, |i, j| {
            let sum: f64 = (0..n).map(|k| b[i * n + k] * b[j * n + k]).sum();
            sum / n as f64 + if i == j { 1.0 } else { 0.0 }
        })
    }

    /// Uniform entries in [-1, 1] over sqrt(n), plus 2 on the diagonal: nonsymmetric, complex eigenvalues in
    /// the right half-plane.
    pub(super) fn random_nonsymmetric(n: usize, seed: u64) -> Self {
        let b = uniform(n * n, seed);
        Dense::from_fn(n, |i, j| b[i * n + j] / (n as f64).sqrt() + if i == j { 2.0 } else { 0.0 })
    }

    /// Returns the solution by Gaussian elimination with partial pivoting, in f64.
    pub(super) fn direct(&self, b: &[T]) -> Vec<f64> {
        let n = self.n;
        let mut a: Vec<Vec<f64>> =
            (0..n).map(|i| self.entries[i * n..(i + 1) * n].iter().map(|v| v.to_f64()).collect()).collect();
        let mut b: Vec<f64> = b.iter().map(|v| v.to_f64()).collect();
        for k in 0..n {
            let pivot = (k..n).max_by(|&i, &j| a[i][k].abs().total_cmp(&a[j][k].abs())).unwrap();
            a.swap(k, pivot);
            b.swap(k, pivot);
            for i in k + 1..n {
                let factor = a[i][k] / a[k][k];
                for j in k..n {
                    a[i][j] -= factor * a[k][j];
                }
                b[i] -= factor * b[k];
            }
        }
        for k in (0..n).rev() {
            let sum: f64 = (k + 1..n).map(|j| a[k][j] * b[j]).sum();
            b[k] = (b[k] - sum) / a[k][k];
        }
        b
    }
}

/// The 2D Laplacian on a grid with fixed edges, never stored: eigenvalues are sums of the 1D ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Laplacian2d {
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl<T: Real> Operator<T> for Laplacian2d {
    fn rows(&self) -> usize {
        self.rows * self.columns
    }

    fn apply(&self, x: &[T], y: &mut [T]) {
        let (m, n) = (self.rows, self.columns);
        for i in 0..m {
            for j in 0..n {
                let at = i * n + j;
                let mut sum = T::from_f64(4.0) * x[at];
                let neighbours = [
                    (i > 0, at.wrapping_sub(n)),
                    (j > 0, at.wrapping_sub(1)),
                    (j + 1 < n, at + 1),
                    (i + 1 < m, at + n),
                ];
                for (inside, k) in neighbours {
                    if inside {
                        sum = sum - x[k];
                    }
                }
                y[at] = sum;
            }
        }
    }

    fn diagonal(&self) -> Option<Vec<T>> {
        Some(vec![T::from_f64(4.0); self.rows * self.columns])
    }

    fn entries(&self) -> abide_core::Result<Option<std::sync::Arc<abide_core::sparse::Csr>>> {
        crate::sparse::laplacian_2d(self.rows, self.columns, T::DTYPE).map(|entries| Some(entries.into()))
    }
}

/// Returns the least and the largest eigenvalue of the Laplacian on a line of `n` points.
pub(super) fn laplacian_bounds(n: usize) -> (f64, f64) {
    let eigenvalue = |k: usize| 2.0 - 2.0 * (k as f64 * std::f64::consts::PI / (n as f64 + 1.0)).cos();
    (eigenvalue(1), eigenvalue(n))
}

/// Returns `n` values in [-1, 1].
pub(super) fn uniform(n: usize, seed: u64) -> Vec<f64> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..n).map(|_| 2.0 * random.f64() - 1.0).collect()
}

pub(super) fn random<T: Real>(n: usize, seed: u64) -> Vec<T> {
    uniform(n, seed).into_iter().map(T::from_f64).collect()
}

/// Returns the largest absolute difference over the largest absolute value.
pub(super) fn difference<T: Real>(x: &[T], exact: &[f64]) -> f64 {
    let scale = exact.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
    x.iter().zip(exact).fold(0.0_f64, |most, (x, e)| most.max((x.to_f64() - e).abs())) / scale
}

/// Solves with the method and a first guess of 0, and returns the solution with the report.
pub(super) fn solved<T: Real>(
    solver: &dyn Solver<T>,
    a: &dyn Operator<T>,
    m: &mut dyn Preconditioner<T>,
    b: &[T],
    relative: f64,
) -> Result<(Vec<T>, Report), SolverError> {
    let mut x = vec![T::ZERO; b.len()];
    let report =
        solver.solve_on(&Serial, a, m, b, &mut x, &Parameters { relative, ..Parameters::default() })?;
    Ok((x, report))
}

/// Checks what every method must do with any system for which it is made; `symmetric` leaves the nonsymmetric
/// systems out.
pub(super) fn conforms<T: Real>(solver: &dyn Solver<T>, symmetric: bool) {
    let (tolerance, allowed) = if T::DTYPE.bytes() == 4 { (1e-5, 1e-3) } else { (1e-11, 1e-9) };
    // Odd sizes, one row, one block of a reduction and a little more.
    for n in [1, 2, 3, 7, 32, 33, 101] {
        let mut systems = vec![Dense::<T>::random_spd(n, n as u64), Dense::diagonal_of(&vec![3.0; n])];
        if !symmetric {
            systems.push(Dense::random_nonsymmetric(n, n as u64 + 100));
        }
        for a in &systems {
            let b = random::<T>(n, 17);
            let exact = a.direct(&b);
            let mut diagonal = Diagonal::new(a).unwrap();
            let preconditioners: [&mut dyn Preconditioner<T>; 2] = [&mut Identity, &mut diagonal];
            for m in preconditioners {
                let name = format!("{} with {}, n = {n}", solver.name(), m.name());
                let (x, report) =
                    solved(solver, a, m, &b, tolerance).unwrap_or_else(|e| panic!("{name}: {e}"));
                assert!(difference(&x, &exact) < allowed, "{name}: {}", difference(&x, &exact));
                assert_eq!(report.history.len(), report.iterations + 1, "{name}");
                assert!(report.history.last().unwrap() <= &report.threshold, "{name}");
                assert!(report.true_residual.unwrap() <= 10.0 * report.threshold, "{name}");
                // A second run gives the same bits.
                let (again, second) = solved(solver, a, m, &b, tolerance).unwrap();
                assert_eq!(x, again, "{name}");
                assert_eq!(report.history, second.history, "{name}");
            }
        }
    }
    let a = Dense::<T>::random_spd(9, 5);
    let b = random::<T>(9, 6);
    // From the solution itself, no iteration is needed.
    let mut x: Vec<T> = a.direct(&b).into_iter().map(T::from_f64).collect();
    let report =
        solver.solve(&a, &b, &mut x, &Parameters { relative: 1e-5, ..Parameters::default() }).unwrap();
    assert_eq!(report.iterations, 0);
    // b = 0.
    let mut x = random::<T>(9, 1);
    let report = solver.solve(&a, &[T::ZERO; 9], &mut x, &Parameters::default()).unwrap();
    assert_eq!((report.iterations, x), (0, vec![T::ZERO; 9]));
    // No rows.
    let empty = Dense { n: 0, entries: vec![] };
    assert_eq!(solver.solve(&empty, &[], &mut [], &Parameters::default()).unwrap().iterations, 0);
    // NaN and infinity in b, NaN in the matrix, NaN in the first guess.
    for bad in [f64::NAN, f64::INFINITY] {
        let mut b = b.clone();
        b[4] = T::from_f64(bad);
        let error = solved(solver, &a, &mut Identity, &b, 1e-6).unwrap_err();
        assert!(matches!(error, SolverError::NotFinite { .. }), "{error}");
    }
    let mut broken = a.clone();
    broken.entries[13] = T::from_f64(f64::NAN);
    let error = solved(solver, &broken, &mut Identity, &b, 1e-6).unwrap_err();
    assert!(matches!(error, SolverError::NotFinite { .. }), "{error}");
    let error = solver.solve(&a, &b, &mut [T::from_f64(f64::NAN); 9], &Parameters::default()).unwrap_err();
    assert!(matches!(error, SolverError::NotFinite { .. }), "{error}");
    // Limits: the history has a residual for every iteration.
    let parameters = Parameters { relative: 0.0, absolute: 1e-300, iterations: 2, ..Parameters::default() };
    let error = solver
        .solve(&Dense::laplacian_1d(40), &random::<T>(40, 3), &mut [T::ZERO; 40], &parameters)
        .unwrap_err();
    assert!(matches!(error, SolverError::NotConverged { limit: Exhausted::Iterations, .. }), "{error}");
    assert_eq!(error.history().len(), 3);
    let parameters = Parameters { time: Some(std::time::Duration::ZERO), ..Parameters::default() };
    let error = solver.solve(&a, &b, &mut [T::ZERO; 9], &parameters).unwrap_err();
    assert!(matches!(error, SolverError::NotConverged { limit: Exhausted::Time, .. }), "{error}");
    // Arguments that cannot be used.
    let error = solver.solve(&a, &b[1..], &mut [T::ZERO; 9], &Parameters::default()).unwrap_err();
    assert!(error.to_string().contains("8 values for a matrix of 9 rows"), "{error}");
    let mut other = Diagonal::new(&Dense::<T>::random_spd(8, 1)).unwrap();
    let error =
        solver.solve_on(&Serial, &a, &mut other, &b, &mut [T::ZERO; 9], &Parameters::default()).unwrap_err();
    assert!(error.to_string().contains("made for 8 rows, the matrix has 9"), "{error}");
    let parameters = Parameters { relative: -1.0, ..Parameters::default() };
    assert!(matches!(solver.solve(&a, &b, &mut [T::ZERO; 9], &parameters), Err(SolverError::Invalid(_))));
    // A run without a limit on iterations takes no more memory.
    let parameters = Parameters { iterations: usize::MAX, relative: 1e-3, ..Parameters::default() };
    let report = solver.solve(&a, &b, &mut [T::ZERO; 9], &parameters).unwrap();
    assert!(report.history.len() == report.iterations + 1 && report.history.capacity() < 1 << 20);
}

/// Returns `sqrt((x - exact)^T A (x - exact))`.
pub(super) fn energy_norm(a: &dyn Operator<f64>, x: &[f64], exact: &[f64]) -> f64 {
    let e: Vec<f64> = x.iter().zip(exact).map(|(x, e)| x - e).collect();
    let mut ae = vec![0.0; e.len()];
    a.apply(&e, &mut ae);
    reduction::dot(&e, &ae).sqrt()
}

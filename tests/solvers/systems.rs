//! Systems to solve, and a direct solver that shares no code with the solvers under test.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use abide::solve::{GridOperator, Matrix, true_residual};
use abide::sparse::{Csr, Triplets};
use abide::{Array, Boundaries, Boundary, DType, LinearStencil, Shape};

/// Returns the solution by a sparse LU factorisation in f64, which is kept: every method solves the same systems.
pub fn direct(matrix: &Csr, b: &Array) -> Arc<[f64]> {
    static KEPT: LazyLock<Mutex<HashMap<u64, Arc<[f64]>>>> = LazyLock::new(Mutex::default);
    let mut hasher = DefaultHasher::new();
    for row in 0..matrix.rows() {
        matrix.row(row).for_each(|(column, value)| (row, column, value.to_bits()).hash(&mut hasher));
        b.get(row).map(f64::to_bits).hash(&mut hasher);
    }
    let key = hasher.finish();
    let kept = || KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let known = kept().get(&key).cloned();
    known.unwrap_or_else(|| {
        let x: Arc<[f64]> = factorise(matrix, b).into();
        kept().insert(key, Arc::clone(&x));
        x
    })
}

fn factorise(matrix: &Csr, b: &Array) -> Vec<f64> {
    let n = matrix.rows();
    let mut columns = vec![Vec::new(); n];
    for row in 0..n {
        matrix.row(row).for_each(|(column, value)| columns[column].push((row as i32, value)));
    }
    let starts: Vec<i32> = std::iter::once(0)
        .chain(columns.iter().scan(0, |end, column| {
            *end += column.len() as i32;
            Some(*end)
        }))
        .collect();
    let (rows, values): (Vec<i32>, Vec<f64>) = columns.into_iter().flatten().unzip();
    // The order that leaves few entries in the factors.
    let (order, _, _) = amd::order(n as i32, &starts, &rows, &amd::Control::default()).unwrap();
    let mut x = b.to_f64();
    rlu::solve(n, &rows, &starts, &values, Some(&order), &mut x, false).unwrap();
    x
}

/// Returns the largest difference over the largest value.
pub fn difference(x: &Array, exact: &[f64]) -> f64 {
    let scale = exact.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
    let worst = x.to_f64().iter().zip(exact).fold(0.0_f64, |most, (x, e)| most.max((x - e).abs()));
    worst / scale
}

/// Checks a solution by its residual, computed in f64 apart from the solver, and against the direct solution.
///
/// The error of `x` is at most the condition number times the relative residual; `condition` bounds the
/// condition number.
pub fn verify(what: &str, matrix: &Matrix, b: &Array, x: &Array, relative: f64, condition: f64) {
    let norm = b.to_f64().iter().map(|v| v * v).sum::<f64>().sqrt();
    let residual = true_residual(matrix, b, x).unwrap() / norm;
    assert!(residual <= 10.0 * relative, "{what}: residual {residual:e}, wanted {relative:e}");
    let error = difference(x, &direct(&stored(matrix), b));
    let allowed = 10.0 * relative * condition * (matrix.rows() as f64).sqrt();
    assert!(error <= allowed, "{what}: error {error:e}, allowed {allowed:e}");
}

/// Returns the matrix, stored.
pub fn stored(matrix: &Matrix) -> Csr {
    match matrix {
        Matrix::Stored(matrix) => (**matrix).clone(),
        Matrix::Stencil(operator) => operator.assemble().unwrap(),
    }
}

/// Returns the five-point Laplacian plus `shift` on a grid, never stored.
pub fn shifted(extents: &[usize; 2], shift: f64, boundary: Boundary, dtype: DType) -> GridOperator {
    let taps = [([-1, 0], -1.0), ([0, -1], -1.0), ([0, 0], 4.0 + shift), ([0, 1], -1.0), ([1, 0], -1.0)];
    let stencil = LinearStencil::new("shifted", &taps).unwrap();
    GridOperator::new(stencil, Shape::new(extents).unwrap(), Boundaries::all(boundary), dtype).unwrap()
}

/// Returns a strictly dominant symmetric matrix whose first row and column are dense.
pub fn arrow(n: usize, dtype: DType) -> Csr {
    let mut triplets = Triplets::new(n, n).unwrap();
    for i in 0..n {
        triplets.push(i, i, if i == 0 { n as f64 } else { 2.0 + 1.0 / (i + 1) as f64 }).unwrap();
        if i > 0 {
            triplets.push(0, i, 0.5).unwrap();
            triplets.push(i, 0, 0.5).unwrap();
        }
    }
    triplets.into_csr().unwrap().cast(dtype).unwrap()
}

/// Returns diffusion with a wind in upwind differences: strictly dominant, not symmetric.
pub fn windy(extents: &[usize; 2], dtype: DType) -> GridOperator {
    let taps = [([-1, 0], -1.3), ([0, -1], -1.9), ([0, 0], 5.0), ([0, 1], -0.7), ([1, 0], -0.8)];
    let stencil = LinearStencil::new("windy", &taps).unwrap();
    let zero = Boundaries::all(Boundary::Constant(0.0));
    GridOperator::new(stencil, Shape::new(extents).unwrap(), zero, dtype).unwrap()
}

/// Returns diffusion with a wind in central differences: `peclet` is the wind's times a cell's width over the
/// diffusion. Far from symmetric, and well-conditioned.
pub fn convective(extents: &[usize; 2], peclet: [f64; 2], dtype: DType) -> GridOperator {
    let [y, x] = peclet.map(|peclet| 0.5 * peclet);
    let taps =
        [([-1, 0], -1.0 - y), ([0, -1], -1.0 - x), ([0, 0], 4.0), ([0, 1], -1.0 + x), ([1, 0], -1.0 + y)];
    let stencil = LinearStencil::new("convective", &taps).unwrap();
    let zero = Boundaries::all(Boundary::Constant(0.0));
    GridOperator::new(stencil, Shape::new(extents).unwrap(), zero, dtype).unwrap()
}

/// Returns a matrix of these entries.
pub fn entries(rows: usize, entries: &[(usize, usize, f64)], dtype: DType) -> Csr {
    let mut triplets = Triplets::new(rows, rows).unwrap();
    for &(i, j, value) in entries {
        triplets.push(i, j, value).unwrap();
    }
    triplets.into_csr().unwrap().cast(dtype).unwrap()
}

/// Makes a random symmetric strictly dominant matrix: rows in a random order, entries in another, most given
/// in two parts; a dense row and column where `dense`.
pub fn random_definite(n: usize, seed: u64, dense: bool, dtype: DType) -> Csr {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut entries = Vec::new();
    let mut sums = vec![0.0; n];
    let hub = random.usize(0..n);
    let mut pair = |i: usize, j: usize, value: f64, sums: &mut Vec<f64>| {
        if i != j {
            entries.extend([(i, j, value), (j, i, value)]);
            sums[i] += value.abs();
            sums[j] += value.abs();
        }
    };
    for i in 0..n {
        for _ in 0..random.usize(0..4) {
            pair(i, random.usize(0..n), random.f64() - 0.6, &mut sums);
        }
        if dense {
            pair(i, hub, 0.2 * random.f64(), &mut sums);
        }
    }
    for (i, sum) in sums.iter().enumerate() {
        let value = sum + 0.3 + random.f64();
        // The two parts add up to the diagonal.
        entries.extend([(i, i, 0.25 * value), (i, i, 0.75 * value)]);
    }
    random.shuffle(&mut entries);
    let mut triplets = Triplets::new(n, n).unwrap();
    for (i, j, value) in entries {
        triplets.push(i, j, value).unwrap();
    }
    // Duplicates of a pair are added up in another order above the diagonal than below, so the rounded matrix
    // is made symmetric again.
    symmetrised(&triplets.into_csr().unwrap()).cast(dtype).unwrap()
}

/// Makes a random strictly dominant matrix that is not symmetric.
pub fn random_dominant(n: usize, seed: u64, dtype: DType) -> Csr {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut triplets = Triplets::new(n, n).unwrap();
    for i in 0..n {
        let mut sum = 0.0;
        for _ in 0..random.usize(0..6) {
            let value = random.f64() - 0.5;
            sum += value.abs();
            triplets.push(i, random.usize(0..n), value).unwrap();
        }
        triplets.push(i, i, 2.0 * sum + 0.3 + random.f64()).unwrap();
    }
    triplets.into_csr().unwrap().cast(dtype).unwrap()
}

/// Returns the mean of a matrix and its transpose.
fn symmetrised(matrix: &Csr) -> Csr {
    let mut triplets = Triplets::new(matrix.rows(), matrix.rows()).unwrap();
    for row in 0..matrix.rows() {
        for (column, value) in matrix.row(row) {
            triplets.push(row, column, 0.5 * (value + matrix.get(column, row))).unwrap();
        }
    }
    triplets.into_csr().unwrap()
}

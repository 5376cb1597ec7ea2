//! Matrices of known structure, for tests and measurements.

use std::collections::HashSet;

use abide_core::sparse::rows::{Rows, check_extents};
use abide_core::sparse::{Affine, Csr, Triplets, rows};
use abide_core::{Boundaries, DType, Error, LinearStencil, Real, Result, Shape};

use abide_core::domain::Boundary;

/// Returns the negative Laplacian on a grid of unit width as a stencil: twice the number of axes at the cell,
/// −1 for each neighbour. Times the inverse square of the cells' width it is the operator −Δ.
pub fn laplacian(dimensions: usize) -> Result<LinearStencil> {
    match dimensions {
        1 => LinearStencil::new("laplacian1d", &star::<1>()),
        2 => LinearStencil::new("laplacian2d", &star::<2>()),
        3 => LinearStencil::new("laplacian3d", &star::<3>()),
        _ => Err(Error::limit("axes of a Laplacian", dimensions, "1 to 3", "give 1 to 3 extents")),
    }
}

fn star<const D: usize>() -> Vec<([i32; D], f64)> {
    let mut taps = vec![([0; D], 2.0 * D as f64)];
    for axis in 0..D {
        for side in [-1, 1] {
            let mut offset = [0; D];
            offset[axis] = side;
            taps.push((offset, -1.0));
        }
    }
    taps
}

/// Returns the stencil of [`hpcg`].
pub fn hpcg_stencil() -> Result<LinearStencil> {
    let around = |n: i32| [n / 9 - 1, n / 3 % 3 - 1, n % 3 - 1];
    let taps: Vec<_> = (0..27).map(around).map(|o| (o, if o == [0; 3] { 26.0 } else { -1.0 })).collect();
    LinearStencil::new("hpcg", &taps)
}

/// Returns the five-point Laplacian on a grid, with values 0 beyond the grid: 4 on the diagonal, −1 for each
/// neighbour. It is positive definite and has 5·ny·nx − 2·ny − 2·nx entries.
pub fn laplacian_2d(ny: usize, nx: usize, dtype: DType) -> Result<Csr> {
    of_stencil(&laplacian(2)?, &[ny, nx], dtype)
}

/// Returns the seven-point Laplacian on a grid, with values 0 beyond the grid: 6 on the diagonal, −1 for each
/// neighbour.
pub fn laplacian_3d(nz: usize, ny: usize, nx: usize, dtype: DType) -> Result<Csr> {
    of_stencil(&laplacian(3)?, &[nz, ny, nx], dtype)
}

/// Returns the operator of the HPCG benchmark (Dongarra, Heroux, Luszczek 2016) on one process: 26 on the
/// diagonal, −1 for each of the up to 26 cells around. It has (3nz−2)(3ny−2)(3nx−2) entries.
pub fn hpcg(nz: usize, ny: usize, nx: usize, dtype: DType) -> Result<Csr> {
    of_stencil(&hpcg_stencil()?, &[nz, ny, nx], dtype)
}

/// Returns a random symmetric positive definite matrix of `n` rows and about `entries` entries, with a few
/// long rows and most of them short.
///
/// Each pair off the diagonal joins a row chosen uniformly with one chosen with density ∝ u³, so that the
/// first rows have the most pairs, as in a network with hubs. Pairs are −1 to 0. The diagonal is the sum of
/// their absolute values and up to a hundredth more, so the matrix is strictly dominant. It is the same on
/// every machine.
pub fn random_spd(n: usize, entries: usize, seed: u64, dtype: DType) -> Result<Csr> {
    check_extents(n, n)?;
    let pairs = entries.saturating_sub(n) / 2;
    // Above a quarter of all pairs, drawing distinct pairs takes long.
    let most = n.saturating_mul(n.saturating_sub(1)) / 8;
    if pairs > most {
        let limit = format!("at most {} for {n} rows", n + 2 * most);
        return Err(Error::limit(
            "entries of a random matrix",
            entries,
            limit,
            "give fewer entries or more rows",
        ));
    }
    let mut random = fastrand::Rng::with_seed(seed);
    let mut drawn = HashSet::new();
    drawn.try_reserve(pairs).map_err(|_| rows::no_memory::<[usize; 2]>(pairs))?;
    let mut triplets = Triplets::new(n, n)?;
    let mut diagonal = rows::filled(0.0, n)?;
    diagonal.iter_mut().for_each(|value| *value = 0.01 * (1.0 - random.f64()));
    while drawn.len() < pairs {
        let hub = (random.f64().powi(3) * n as f64) as usize;
        let (i, j) = (hub.min(n - 1), random.usize(0..n));
        if i != j && drawn.insert((i.min(j), i.max(j))) {
            let value = random.f64();
            triplets.push(i, j, -value)?;
            triplets.push(j, i, -value)?;
            diagonal[i] += value;
            diagonal[j] += value;
        }
    }
    for (row, value) in diagonal.into_iter().enumerate() {
        triplets.push(row, row, value)?;
    }
    let matrix = triplets.into_csr()?;
    if matrix.dtype() == dtype { Ok(matrix) } else { matrix.cast(dtype) }
}

/// Returns Trefethen's matrix of order `n`: the first `n` primes on the diagonal, and 1 wherever |i − j| is a
/// power of two (L. N. Trefethen, "A hundred-dollar, hundred-digit challenge", SIAM News 35(1), 2002, problem
/// 7, with n = 20 000).
pub fn trefethen(n: usize, dtype: DType) -> Result<Csr> {
    check_extents(n, n)?;
    match dtype {
        DType::F32 => trefethen_of::<f32>(n),
        DType::F64 => trefethen_of::<f64>(n),
    }
}

/// Returns an arrowhead matrix of order `n`: its first row and column are dense, all other entries are on the
/// diagonal, where values from 1 to 1000 alternate. It has 3n − 2 entries.
///
/// The entries off the diagonal are 1/√n and the corner is 2, so that the Schur complement of the corner is
/// at least 1: the matrix is positive definite. Its condition number is some 1000, and each product has one
/// row as long as the system.
pub fn arrow(n: usize, dtype: DType) -> Result<Csr> {
    check_extents(n, n)?;
    match dtype {
        DType::F32 => arrow_of::<f32>(n),
        DType::F64 => arrow_of::<f64>(n),
    }
}

fn arrow_of<T: Real>(n: usize) -> Result<Csr> {
    let beside = T::from_f64(1.0 / (n as f64).sqrt());
    let mut matrix = Rows::new(n, n, (3 * n).saturating_sub(2))?;
    for row in 0..n {
        if row == 0 {
            matrix.push(0, T::from_f64(2.0));
            (1..n).for_each(|column| matrix.push(column, beside));
        } else {
            matrix.push(0, beside);
            // 7919 and 1000 have no common divisor: every value comes equally often.
            matrix.push(row, T::from_f64((1 + row * 7919 % 1000) as f64));
        }
        matrix.end();
    }
    matrix.finish()
}

fn of_stencil(stencil: &LinearStencil, extents: &[usize], dtype: DType) -> Result<Csr> {
    let nothing = Boundaries::all(Boundary::Constant(0.0));
    Ok(Affine::new(stencil, &Shape::new(extents)?, &nothing, dtype)?.matrix)
}

fn trefethen_of<T: Real>(n: usize) -> Result<Csr> {
    let primes = primes(n)?;
    let distances: Vec<usize> = (0..usize::BITS).map(|bit| 1 << bit).take_while(|&d| d < n).collect();
    // Each distance d joins n − d pairs of rows.
    let entries = n + distances.iter().map(|d| 2 * (n - d)).sum::<usize>();
    let mut matrix = Rows::new(n, n, entries)?;
    for (row, prime) in primes.into_iter().enumerate() {
        for &distance in distances.iter().rev().filter(|&&d| d <= row) {
            matrix.push(row - distance, T::ONE);
        }
        matrix.push(row, T::from_f64(prime as f64));
        for &distance in distances.iter().take_while(|&&d| d < n - row) {
            matrix.push(row + distance, T::ONE);
        }
        matrix.end();
    }
    matrix.finish()
}

/// Returns the first `count` primes, by the sieve of Eratosthenes.
fn primes(count: usize) -> Result<Vec<u64>> {
    // The n-th prime is below n (ln n + ln ln n) for n ≥ 6 (Rosser 1939).
    let n = count.max(6) as f64;
    let bound = (n * (n.ln() + n.ln().ln())).ceil() as usize + 1;
    let mut composite = rows::filled(false, bound)?;
    let mut primes = rows::reserved(count)?;
    for candidate in 2..bound {
        if primes.len() == count {
            break;
        }
        if !composite[candidate] {
            primes.push(candidate as u64);
            composite
                .iter_mut()
                .skip(candidate.saturating_mul(candidate))
                .step_by(candidate)
                .for_each(|c| *c = true);
        }
    }
    Ok(primes)
}

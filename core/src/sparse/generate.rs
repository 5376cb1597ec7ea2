//! Matrices of known structure, to test and to measure with.

use super::csr::Csr;
use super::rows::{Rows, check_extents};
use super::stencil::Affine;
use crate::error::Result;
use crate::grid::{Boundaries, Boundary, Shape};
use crate::real::{DType, Real};
use crate::stencil::LinearStencil;

/// The five-point Laplacian on a grid, values 0 beyond it: 4 on the diagonal, −1 for each neighbour. Positive definite;
/// 5·ny·nx − 2·ny − 2·nx entries. Times the inverse square of the cell's width it is the operator −Δ.
pub fn laplacian_2d(ny: usize, nx: usize, dtype: DType) -> Result<Csr> {
    let star = LinearStencil::new(
        "laplacian 2d",
        &[([-1, 0], -1.0), ([0, -1], -1.0), ([0, 0], 4.0), ([0, 1], -1.0), ([1, 0], -1.0)],
    )?;
    of_stencil(&star, &[ny, nx], dtype)
}

/// The seven-point Laplacian on a grid, values 0 beyond it: 6 on the diagonal, −1 for each neighbour.
pub fn laplacian_3d(nz: usize, ny: usize, nx: usize, dtype: DType) -> Result<Csr> {
    let star = LinearStencil::new(
        "laplacian 3d",
        &[
            ([-1, 0, 0], -1.0),
            ([0, -1, 0], -1.0),
            ([0, 0, -1], -1.0),
            ([0, 0, 0], 6.0),
            ([0, 0, 1], -1.0),
            ([0, 1, 0], -1.0),
            ([1, 0, 0], -1.0),
        ],
    )?;
    of_stencil(&star, &[nz, ny, nx], dtype)
}

/// The operator of the HPCG benchmark (Dongarra, Heroux, Luszczek 2016) on one process: 26 on the diagonal, −1 for each
/// of the up to 26 cells around; (3nz−2)(3ny−2)(3nx−2) entries.
pub fn hpcg(nz: usize, ny: usize, nx: usize, dtype: DType) -> Result<Csr> {
    let around = |n: i32| [n / 9 - 1, n / 3 % 3 - 1, n % 3 - 1];
    let taps: Vec<_> = (0..27).map(around).map(|o| (o, if o == [0; 3] { 26.0 } else { -1.0 })).collect();
    of_stencil(&LinearStencil::new("hpcg", &taps)?, &[nz, ny, nx], dtype)
}

/// Trefethen's matrix of order `n`: the first `n` primes on the diagonal, and 1 wherever |i − j| is a power of two
/// (L. N. Trefethen, "A hundred-dollar, hundred-digit challenge", SIAM News 35(1), 2002, problem 7, with n = 20 000).
pub fn trefethen(n: usize, dtype: DType) -> Result<Csr> {
    check_extents(n, n)?;
    match dtype {
        DType::F32 => trefethen_of::<f32>(n),
        DType::F64 => trefethen_of::<f64>(n),
    }
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

/// The first `count` primes, by the sieve of Eratosthenes.
fn primes(count: usize) -> Result<Vec<u64>> {
    // The n-th prime is below n (ln n + ln ln n) for n ≥ 6 (Rosser 1939).
    let n = count.max(6) as f64;
    let bound = (n * (n.ln() + n.ln().ln())).ceil() as usize + 1;
    let mut composite = super::rows::filled(false, bound)?;
    let mut primes = super::rows::reserved(count)?;
    for candidate in 2..bound {
        if primes.len() == count {
            break;
        }
        if !composite[candidate] {
            primes.push(candidate as u64);
            composite.iter_mut().skip(candidate.saturating_mul(candidate)).step_by(candidate).for_each(|c| *c = true);
        }
    }
    Ok(primes)
}

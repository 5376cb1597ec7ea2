//! Right-hand sides, and residuals computed apart from any solver.

use std::borrow::Cow;

use abide_core::solver::Matrix;
use abide_cpu::{Threads, threaded_operator};
use abide_solvers::Engine;

use super::begin;
use super::range::Scale;
use crate::{Array, DType, Error, Result};

/// Returns the norm of `b - A x` in f64 on the CPU, whatever computed `x` and in which type.
///
/// # Errors
///
/// [`Error::Invalid`] for vectors of another length than the matrix has rows, [`Error::Limit`] where there is no
/// memory for the product.
pub fn true_residual(matrix: &Matrix, b: &Array, x: &Array) -> Result<f64> {
    norm(&residual(matrix, b, x)?)
}

/// Returns the norm of a vector in f64, of whatever size its values are.
pub(super) fn norm(vector: &Array) -> Result<f64> {
    let vector = in_f64(vector)?;
    let zero = Array::zeros(DType::F64, 0)?;
    let scale = Scale::of(&vector, &zero);
    let scaled = if scale.is_one() { vector } else { Cow::Owned(scale.multiple(&vector, false)?) };
    let Array::F64(values) = &*scaled else { return Ok(f64::NAN) };
    Ok(scale.unscaled(Threads::<f64>::new(None, values.len())?.dot(values, values).sqrt()))
}

/// Returns `b - A x` in f64, computed on the CPU.
pub(super) fn residual(matrix: &Matrix, b: &Array, x: &Array) -> Result<Array> {
    let rows = matrix.rows();
    for (name, vector) in [("b", b), ("x", x)] {
        if vector.len() != rows {
            let reason = format!("{} values for a matrix of {rows} rows", vector.len());
            return Err(Error::invalid(format!("the vector {name}"), reason, "give one value a row"));
        }
    }
    let operator = threaded_operator::<f64>(&begin::cast(matrix, DType::F64)?)?;
    let engine = Threads::<f64>::new(None, rows)?;
    let (b, x) = (in_f64(b)?, in_f64(x)?);
    let mut product = Array::zeros(DType::F64, rows)?;
    if let (Array::F64(b), Array::F64(x), Array::F64(product)) = (&*b, &*x, &mut product) {
        operator.apply(x, product);
        engine.update([product], [b], |[ax], [b]| [b - ax]);
    }
    Ok(product)
}

/// Returns a vector in f64: itself, or a copy.
fn in_f64(vector: &Array) -> Result<Cow<'_, Array>> {
    match vector.dtype() {
        DType::F64 => Ok(Cow::Borrowed(vector)),
        DType::F32 => vector.cast(DType::F64).map(Cow::Owned),
    }
}

/// Makes a vector of ones.
///
/// # Errors
///
/// [`Error::Limit`] where the machine has no memory for it.
pub fn ones_vector(dtype: DType, len: usize) -> Result<Array> {
    Array::try_from_fn(dtype, len, |_| 1.0)
}

/// Makes a vector of values uniform in −1 to 1, the same on every machine: a right-hand side in which every
/// mode has a part.
///
/// ```
/// use abide::{DType, solve::random_vector};
///
/// assert_eq!(random_vector(DType::F64, 9, 1)?, random_vector(DType::F64, 9, 1)?);
/// # Ok::<(), abide::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Limit`] where the machine has no memory for it.
pub fn random_vector(dtype: DType, len: usize, seed: u64) -> Result<Array> {
    let mut state = seed;
    Array::try_from_fn(dtype, len, |_| {
        // SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    })
}

//! Systems whose matrix takes constants to 0, as pure Neumann problems do.

use abide_core::solver::{Matrix, Parameters, SolverError};

use super::vectors::norm;
use crate::{Array, DType, Error, ErrorKind, Result};

/// A row, or column, of a matrix that does not add up to 0.
#[derive(Debug, PartialEq)]
struct Other {
    line: &'static str,
    number: usize,
    sum: f64,
}

/// Returns the first row or column that does not add up to 0 within rounding; `None` where all do.
fn other(matrix: &Matrix) -> Result<Option<Other>> {
    // Two thirds of the type's digits: files hold fewer than all of them, and sums lose some.
    let rounding = match matrix.dtype() {
        DType::F32 => f64::from(f32::EPSILON),
        DType::F64 => f64::EPSILON,
    }
    .powf(2.0 / 3.0);
    let sample = matrix.sample()?;
    let (rows, columns) = (sample.rows(), sample.columns());
    let [mut sums, mut sizes] = [Array::zeros(DType::F64, columns)?, Array::zeros(DType::F64, columns)?];
    let (Array::F64(sums), Array::F64(sizes)) = (&mut sums, &mut sizes) else { return Ok(None) };
    for number in 0..rows {
        let (mut sum, mut size) = (0.0, 0.0);
        for (column, value) in sample.row(number) {
            sum += value;
            size += value.abs();
            sums[column] += value;
            sizes[column] += value.abs();
        }
        if sum.abs() > rounding * size {
            return Ok(Some(Other { line: "row", number, sum }));
        }
    }
    let found = sums.iter().zip(sizes.iter()).position(|(sum, size)| sum.abs() > rounding * size);
    Ok(found.map(|number| Other { line: "column", number, sum: sums[number] }))
}

/// Fails unless the matrix takes constants to 0, and its transpose does.
pub(super) fn check(matrix: &Matrix) -> Result<()> {
    match other(matrix)? {
        None => Ok(()),
        Some(Other { line, number, sum }) => {
            let reason = format!("{line} {number} of the matrix adds up to {sum:e}, not to 0");
            Err(Error::invalid("null space `constant`", reason, "leave it out"))
        }
    }
}

/// Returns the sum of a vector, with what rounding takes from it (Neumaier, ZAMM 54 (1974), 39–51).
fn sum(vector: &Array) -> f64 {
    let (mut sum, mut lost) = (0.0_f64, 0.0);
    let mut add = |value: f64| {
        let next = sum + value;
        lost += if sum.abs() >= value.abs() { (sum - next) + value } else { (value - next) + sum };
        sum = next;
    };
    match vector {
        Array::F32(values) => values.iter().for_each(|&value| add(f64::from(value))),
        Array::F64(values) => values.iter().for_each(|&value| add(value)),
    }
    sum + lost
}

/// Takes the mean from a vector. What is left of a constant vector by rounding becomes 0.
pub(super) fn project(vector: &mut Array) {
    let mean = sum(vector) / vector.len().max(1) as f64;
    let before = vector.magnitude();
    let rounding = match vector {
        Array::F32(values) => {
            values.iter_mut().for_each(|value| *value = (f64::from(*value) - mean) as f32);
            f64::from(f32::EPSILON)
        }
        Array::F64(values) => {
            values.iter_mut().for_each(|value| *value -= mean);
            f64::EPSILON
        }
    };
    if vector.magnitude() <= 4.0 * rounding * before {
        match vector {
            Array::F32(values) => values.fill(0.0),
            Array::F64(values) => values.fill(0.0),
        }
    }
}

/// Returns a failed solve's error, or in its place [`SolverError::Inconsistent`] where that is why it failed: the
/// matrix is singular with constants in its null space, and the constant part of `b` is above the threshold.
pub(super) fn explained(
    error: SolverError,
    matrix: &Matrix,
    b: &Array,
    parameters: &Parameters,
) -> Result<SolverError> {
    if error.kind() != ErrorKind::NotConverged || matches!(error, SolverError::Inconsistent { .. }) {
        return Ok(error);
    }
    // An estimate before the first iteration has no threshold in its report.
    let threshold = (parameters.relative * norm(b)?).max(parameters.absolute);
    let constant = sum(b).abs() / (b.len().max(1) as f64).sqrt();
    if constant <= threshold || other(matrix)?.is_some() {
        return Ok(error);
    }
    let mut error = error;
    Ok(match error.report_mut() {
        Some(report) => SolverError::Inconsistent { constant, report: Box::new(report.clone()) },
        None => error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Boundaries, Boundary, LinearStencil, Shape};
    use abide_core::solver::GridOperator;

    fn ring(boundary: Boundary) -> GridOperator {
        let taps = LinearStencil::new("second difference", &[([-1], -1.0), ([0], 2.0), ([1], -1.0)]).unwrap();
        GridOperator::new(taps, Shape::new(&[90]).unwrap(), Boundaries::all(boundary), DType::F64).unwrap()
    }

    #[test]
    fn rows_and_columns_that_add_up_to_0_are_known() {
        for boundary in [Boundary::Periodic, Boundary::Mirror] {
            for matrix in [Matrix::from(ring(boundary)), ring(boundary).assemble().unwrap().into()] {
                assert_eq!(other(&matrix), Ok(None), "{boundary}");
                check(&matrix).unwrap();
            }
        }
        let matrix = Matrix::from(ring(Boundary::Constant(0.0)));
        let message = check(&matrix).unwrap_err().to_string();
        assert!(message.contains("row 0 of the matrix adds up to 1e0"), "{message}");
    }

    #[test]
    fn a_projected_vector_has_no_mean_and_a_constant_one_is_0() {
        for dtype in [DType::F32, DType::F64] {
            let mut vector = Array::from_fn(dtype, 1001, |i| (i as f64 * 0.7).sin() + 3.0);
            project(&mut vector);
            let rounding = if dtype == DType::F32 { 1e-4 } else { 1e-12 };
            assert!(sum(&vector).abs() < rounding && vector.magnitude() > 0.9);
            let mut constant = Array::from_fn(dtype, 1001, |_| 0.1);
            project(&mut constant);
            assert_eq!(constant.magnitude(), 0.0);
        }
        assert_eq!(sum(&Array::F64(vec![1.0, 1e100, 1.0, -1e100])), 2.0);
    }
}

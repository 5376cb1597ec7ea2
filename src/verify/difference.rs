//! Differences of fields, in units in the last place.

use crate::{Array, DType};

/// A difference and its bound, in units in the last place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// The difference.
    pub ulp: f64,
    /// The bound; infinite where none can be stated.
    pub bound: f64,
}

impl Difference {
    /// Returns the difference over the bound; infinite where a difference is found and none is allowed.
    pub(super) fn share(self) -> f64 {
        match self {
            Difference { ulp: 0.0, .. } => 0.0,
            Difference { ulp, bound } => ulp / bound,
        }
    }
}

/// Returns the largest difference of any value in its own units in the last place: `u64::MAX` where type or
/// length differ, at least 1 where bits differ, as those of 0 and -0.
pub fn distance(a: &[Array], b: &[Array]) -> u64 {
    let one = |(a, b): (&Array, &Array)| {
        let distance = a.ulp_distance(b).unwrap_or(u64::MAX);
        if a.same_bits(b) { distance } else { distance.max(1) }
    };
    if a.len() == b.len() { a.iter().zip(b).map(one).max().unwrap_or(0) } else { u64::MAX }
}

/// Returns the largest absolute difference of any value; infinite where only one of two values is finite or
/// lengths differ.
pub(super) fn farthest(a: &[Array], b: &[Array]) -> f64 {
    let one = |(a, b): (f64, f64)| match a - b {
        _ if a == b || (a.is_nan() && b.is_nan()) => 0.0,
        difference if difference.is_finite() => difference.abs(),
        _ => f64::INFINITY,
    };
    let field = |(a, b): (&Array, &Array)| {
        let (a, b) = (a.to_f64(), b.to_f64());
        if a.len() == b.len() { a.into_iter().zip(b).map(one).fold(0.0, f64::max) } else { f64::INFINITY }
    };
    a.iter().zip(b).map(field).fold(0.0, f64::max)
}

/// Returns the largest magnitude of any finite value.
pub(super) fn largest(fields: &[Array]) -> f64 {
    fields.iter().flat_map(Array::to_f64).map(f64::abs).filter(|x| x.is_finite()).fold(0.0, f64::max)
}

/// Returns the unit in the last place of a number of this magnitude.
pub(super) fn ulp(magnitude: f64, dtype: DType) -> f64 {
    match dtype {
        DType::F32 => {
            let magnitude = magnitude as f32;
            f64::from(magnitude.next_up() - magnitude)
        }
        DType::F64 => magnitude.next_up() - magnitude,
    }
}

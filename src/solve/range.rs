//! Right-hand sides whose squares leave the range of their type.

use crate::{Array, DType, Result};

/// The power of two by which a system is multiplied, so that squares of residuals neither underflow nor
/// overflow. Products with a power of two are exact, so the iterates keep their bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scale(i32);

impl Scale {
    /// Returns the scale of a right-hand side and a first guess: 1 where the largest value of `b` is far from
    /// the ends of the type's range; else the power of two that brings it to 1, or as near to 1 as the first
    /// guess allows.
    pub fn of(b: &Array, x: &Array) -> Scale {
        // Residuals fall to the type's rounding times b, and have squares: f32 begins at 2^-126 and rounds
        // at 2^-24. They may also rise far above b.
        let (comfort, most) = match b.dtype() {
            DType::F32 => (30, 60),
            DType::F64 => (400, 600),
        };
        let exponent =
            |vector: &Array| Some(vector.magnitude()).filter(|&m| m > 0.0).map(|m| m.log2() as i32);
        match exponent(b) {
            Some(of_b) if of_b.abs() > comfort => {
                let limit = exponent(x).map_or(i32::MAX, |of_x| (most - of_x).max(0));
                Scale((-of_b).min(limit))
            }
            _ => Scale(0),
        }
    }

    /// Returns whether nothing is multiplied.
    pub fn is_one(self) -> bool {
        self.0 == 0
    }

    /// Returns the power.
    pub fn power(self) -> i32 {
        self.0
    }

    /// Multiplies a number.
    pub fn of_number(self, value: f64) -> f64 {
        times(value, self.0)
    }

    /// Divides a number.
    pub fn unscaled(self, value: f64) -> f64 {
        times(value, -self.0)
    }

    /// Returns the multiple of a vector, of the opposite sign where `negated`.
    pub fn multiple(self, vector: &Array, negated: bool) -> Result<Array> {
        let mut multiple = vector.try_clone()?;
        let sign = if negated { -1.0 } else { 1.0 };
        each(&mut multiple, |value| sign * times(value, self.0));
        Ok(multiple)
    }

    /// Multiplies a vector.
    pub fn apply(self, vector: &mut Array) {
        each(vector, |value| times(value, self.0));
    }

    /// Divides a vector. Returns whether each quotient is exact: below the type's least normal number digits
    /// are lost.
    pub fn undo(self, vector: &mut Array) -> bool {
        let dtype = vector.dtype();
        let mut exact = true;
        each(vector, |value| {
            let quotient = match dtype {
                DType::F32 => f64::from(times(value, -self.0) as f32),
                DType::F64 => times(value, -self.0),
            };
            exact &= times(quotient, self.0) == value || value.is_nan();
            quotient
        });
        exact
    }
}

fn each(vector: &mut Array, mut f: impl FnMut(f64) -> f64) {
    match vector {
        Array::F32(values) => values.iter_mut().for_each(|value| *value = f(f64::from(*value)) as f32),
        Array::F64(values) => values.iter_mut().for_each(|value| *value = f(*value)),
    }
}

/// Returns `value 2^power`, rounded at most once.
pub(super) fn times(value: f64, power: i32) -> f64 {
    // Powers of two beyond the range of f64 are made of factors within it; all but the last product are exact.
    let (mut value, mut rest) = (value, power);
    while rest.abs() > 1000 {
        let step = 1000 * rest.signum();
        value *= 2.0_f64.powi(step);
        rest -= step;
    }
    value * 2.0_f64.powi(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_bring_the_largest_value_near_1_and_leave_others_alone() {
        let of = |b: f64, x: f64, dtype| {
            let [b, x] = [b, x].map(|value| Array::from_fn(dtype, 3, |i| if i == 1 { value } else { 0.0 }));
            Scale::of(&b, &x)
        };
        for b in [1.0, -1e-9, 1e9, 0.0] {
            assert!(of(b, 1.0, DType::F32).is_one(), "{b}");
        }
        assert!(of(1e-100, 0.0, DType::F64).is_one() && of(1e100, 0.0, DType::F64).is_one());
        for (dtype, values) in
            [(DType::F32, [1e-44, 1e-20, -1e20, 3e38]), (DType::F64, [5e-324, 1e-159, -1e160, 1e308])]
        {
            for b in values {
                let scale = of(b, 0.0, dtype);
                let scaled = scale.of_number(b).abs();
                assert!((0.25..4.0).contains(&scaled), "{dtype} {b:e}: {scaled}");
                assert_eq!(scale.unscaled(scale.of_number(b)), b);
            }
        }
        // A first guess of 1 is not scaled out of the range.
        assert_eq!(of(1e-44, 1.0, DType::F32), Scale(60));
        assert!(of(1e-44, 1e30, DType::F32).is_one());
    }

    #[test]
    fn digits_below_the_range_are_missed() {
        let scale = Scale(140);
        let mut exact = Array::F32(vec![1.0, 0.0, -2.0]);
        assert!(scale.undo(&mut exact));
        assert!(exact.same_bits(&Array::F32(vec![2.0_f32.powi(-140), 0.0, -(2.0_f32.powi(-139))])));
        assert!(!scale.undo(&mut Array::F32(vec![1.000_001])));
        assert!(!Scale(-100).undo(&mut Array::F32(vec![1e20])));
    }
}

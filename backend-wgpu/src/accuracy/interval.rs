//! Intervals of f64, rounded to nearest: the bounds of bounds need no more.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// The numbers from `low` to `high`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Interval {
    pub low: f64,
    pub high: f64,
}

impl Interval {
    pub fn point(value: f64) -> Interval {
        Interval { low: value, high: value }
    }

    pub fn around_zero(magnitude: f64) -> Interval {
        Interval { low: -magnitude, high: magnitude }
    }

    /// Returns the largest absolute value.
    pub fn magnitude(self) -> f64 {
        self.low.abs().max(self.high.abs())
    }

    /// Returns the smallest absolute value.
    pub fn least(self) -> f64 {
        if self.low > 0.0 {
            self.low
        } else if self.high < 0.0 {
            -self.high
        } else {
            0.0
        }
    }

    pub fn hull(self, other: Interval) -> Interval {
        Interval { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    pub fn abs(self) -> Interval {
        Interval { low: self.least(), high: self.magnitude() }
    }

    pub fn square(self) -> Interval {
        let Interval { low, high } = self.abs();
        Interval { low: low * low, high: high * high }
    }

    pub fn min(self, other: Interval) -> Interval {
        Interval { low: self.low.min(other.low), high: self.high.min(other.high) }
    }

    pub fn max(self, other: Interval) -> Interval {
        Interval { low: self.low.max(other.low), high: self.high.max(other.high) }
    }
}

impl Add for Interval {
    type Output = Interval;
    fn add(self, other: Interval) -> Interval {
        Interval { low: self.low + other.low, high: self.high + other.high }
    }
}

impl Neg for Interval {
    type Output = Interval;
    fn neg(self) -> Interval {
        Interval { low: -self.high, high: -self.low }
    }
}

impl Sub for Interval {
    type Output = Interval;
    fn sub(self, other: Interval) -> Interval {
        self + -other
    }
}

impl Mul for Interval {
    type Output = Interval;
    fn mul(self, other: Interval) -> Interval {
        // 0 times an unbounded end is 0: the end itself is not a value.
        let product = |a: f64, b: f64| if a == 0.0 || b == 0.0 { 0.0 } else { a * b };
        let corners = [
            product(self.low, other.low),
            product(self.low, other.high),
            product(self.high, other.low),
            product(self.high, other.high),
        ];
        let low = corners.into_iter().fold(f64::INFINITY, f64::min);
        let high = corners.into_iter().fold(f64::NEG_INFINITY, f64::max);
        Interval { low, high }
    }
}

impl Div for Interval {
    type Output = Interval;
    fn div(self, other: Interval) -> Interval {
        if other.least() == 0.0 {
            return Interval::around_zero(f64::INFINITY);
        }
        self * Interval { low: 1.0 / other.high, high: 1.0 / other.low }
    }
}

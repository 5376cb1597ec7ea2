//! Bounds of eigenvalues.

use crate::error::{Error, Result};

/// An interval for the eigenvalues of `M^-1 A`, both ends above 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    low: f64,
    high: f64,
}

impl Bounds {
    /// Makes the interval `[low, high]`. Fails unless `0 < low <= high` and both are finite.
    pub fn new(low: f64, high: f64) -> Result<Self> {
        if low > 0.0 && low <= high && high.is_finite() {
            return Ok(Bounds { low, high });
        }
        let reason = format!("[{low}, {high}] is no interval above 0");
        Err(Error::invalid("the bounds of the eigenvalues", reason, "give 0 < low <= high, both finite"))
    }

    /// Returns the lower end.
    pub fn low(self) -> f64 {
        self.low
    }

    /// Returns the upper end.
    pub fn high(self) -> f64 {
        self.high
    }

    /// Returns `[lower low, upper high]`; factors around 1 give a margin about an estimate.
    pub fn widened(self, lower: f64, upper: f64) -> Result<Self> {
        Bounds::new(lower * self.low, upper * self.high)
    }
}

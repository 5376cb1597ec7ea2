//! The regions over which reductions go.

use serde::Serialize;

use super::centring::Centring;

/// The values over which a reduction goes: all that stand at a centring, or those inside of margins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Region {
    /// The places of the values.
    pub centring: Centring,
    /// The values left out at both sides of each of the padded axes.
    pub margins: [[usize; 2]; 3],
}

impl From<Centring> for Region {
    fn from(centring: Centring) -> Self {
        Region { centring, margins: [[0; 2]; 3] }
    }
}

impl Region {
    /// Returns the region without `low` and `high` values at the sides of an axis of the padded three.
    pub fn without(mut self, axis: usize, low: usize, high: usize) -> Self {
        self.margins[axis] = [low, high];
        self
    }
}

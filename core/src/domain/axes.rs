//! The axes of a domain: always three, of which the slow ones may be missing.

use serde::Serialize;

/// Returns the letter of one of the three padded axes: z, y, x from the slowest.
pub fn axis_name(axis: usize) -> &'static str {
    ["z", "y", "x"][axis]
}

/// The three padded axes in the order swept, plane's slower, plane's faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Axes(pub [usize; 3]);

impl Axes {
    /// The padded axes as they are.
    pub const PADDED: Axes = Axes([0, 1, 2]);

    /// Returns the axes (swept, plane's slower, plane's faster) of a domain of `dimensions` axes. A line and
    /// a square have a plane of one row; a line is a single plane.
    pub fn of(dimensions: usize) -> Axes {
        if dimensions == 3 { Axes([0, 1, 2]) } else { Axes([1, 0, 2]) }
    }

    /// Reorders values of the padded axes to swept, slower, faster.
    pub fn order<T: Copy>(self, values: [T; 3]) -> [T; 3] {
        self.0.map(|axis| values[axis])
    }

    /// Reorders values of swept, slower, faster to the padded axes.
    pub fn padded<T: Clone>(self, values: [T; 3]) -> [T; 3] {
        let mut all = values.clone();
        for (value, axis) in values.into_iter().zip(self.0) {
            all[axis] = value;
        }
        all
    }
}

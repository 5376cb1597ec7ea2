//! Reductions of a formula over a region to one value, in one tree for the whole of Abide.
//!
//! The tree knows no plan, thread or device. Its leaves are the values of an aligned box of
//! [`leaf`] indices; within a box, and then among boxes, aligned blocks of two are joined along the slowest
//! axis until one is left, then along the next axis, then along the fastest. Indices that are missing to a
//! power of two count as the neutral element. So every aligned box of powers of two is a subtree, and a tile,
//! a slab or a vector that begins at a multiple of the leaf's extents owns whole subtrees.

use serde::Serialize;

use super::centring::Centring;
use crate::real::Real;

/// The operation that joins two values of a reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reduction {
    /// The least; NaN if any value is NaN; −0 is less than +0.
    Min,
    /// The greatest; NaN if any value is NaN; −0 is less than +0.
    Max,
    /// The sum.
    Sum,
}

impl Reduction {
    /// Returns the name: `min`, `max` or `sum`.
    pub fn name(self) -> &'static str {
        match self {
            Reduction::Min => "min",
            Reduction::Max => "max",
            Reduction::Sum => "sum",
        }
    }

    /// Returns the value that changes no other.
    pub fn neutral<T: Real>(self) -> T {
        match self {
            Reduction::Min => T::from_f64(f64::INFINITY),
            Reduction::Max => T::from_f64(f64::NEG_INFINITY),
            // −0 + x is x for every x, also for −0.
            Reduction::Sum => T::from_f64(-0.0),
        }
    }

    /// Joins two values; the order counts only for which NaN results.
    #[inline(always)]
    pub fn join<T: Real>(self, a: T, b: T) -> T {
        // Of two zeros, the sum is +0 unless both are −0.
        let greater = |a: T, b: T| if a == T::ZERO { a + b } else { a };
        match self {
            Reduction::Sum => a + b,
            Reduction::Min if a < b => a,
            Reduction::Min if b < a => b,
            Reduction::Min if a == b => -greater(-a, -b),
            Reduction::Max if a > b => a,
            Reduction::Max if b > a => b,
            Reduction::Max if a == b => greater(a, b),
            _ => a + b,
        }
    }
}

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

/// Returns the extents of a leaf of the tree on a domain of `dimensions` axes: 256 indices, of which a warp's
/// width lies along the fastest axis.
pub fn leaf(dimensions: usize) -> [usize; 3] {
    match dimensions {
        1 => [1, 1, 256],
        2 => [1, 8, 32],
        _ => [2, 4, 32],
    }
}

/// Joins `values` by the tree of aligned blocks of two; missing values count as neutral.
pub fn join_all<T: Real>(reduction: Reduction, values: &mut [T]) -> T {
    let mut len = values.len();
    if len == 0 {
        return reduction.neutral();
    }
    while len > 1 {
        for i in 0..len / 2 {
            values[i] = reduction.join(values[2 * i], values[2 * i + 1]);
        }
        if len % 2 == 1 {
            values[len / 2] = values[len - 1];
        }
        len = len.div_ceil(2);
    }
    values[0]
}

/// Reduces a box of values, stored in the order of memory, along the slowest axis, then along the next, then
/// along the fastest.
pub fn join_box<T: Real>(reduction: Reduction, extents: [usize; 3], values: &mut [T]) -> T {
    let [z, y, x] = extents;
    join_rows(reduction, z, y * x, values);
    join_rows(reduction, y, x, values);
    let row = x.min(values.len());
    join_all(reduction, &mut values[..row])
}

/// Joins `count` rows of `width` values by the tree into the first of them.
pub fn join_rows<T: Real>(reduction: Reduction, count: usize, width: usize, values: &mut [T]) {
    let mut len = count;
    while len > 1 {
        for row in 0..len / 2 {
            let (low, high) = values.split_at_mut((2 * row + 1) * width);
            // The joined row may be the first of the two.
            low.copy_within(2 * row * width..(2 * row + 1) * width, row * width);
            for (value, &other) in low[row * width..(row + 1) * width].iter_mut().zip(&high[..width]) {
                *value = reduction.join(*value, other);
            }
        }
        if len % 2 == 1 {
            values.copy_within((len - 1) * width..len * width, len / 2 * width);
        }
        len = len.div_ceil(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, without any shortcut: a block of two halves, empty blocks neutral.
    fn block(reduction: Reduction, values: &[f64], first: usize, size: usize) -> f64 {
        if size == 1 {
            return values.get(first).copied().unwrap_or(reduction.neutral());
        }
        let half = size / 2;
        reduction.join(block(reduction, values, first, half), block(reduction, values, first + half, half))
    }

    #[test]
    fn a_missing_value_changes_no_bit() {
        let mut rng = fastrand::Rng::with_seed(4);
        for len in 1..70_usize {
            let values: Vec<f64> = (0..len).map(|_| rng.f64() * 10f64.powi(rng.i32(-9..9)) - 0.5).collect();
            for reduction in [Reduction::Min, Reduction::Max, Reduction::Sum] {
                let expected = block(reduction, &values, 0, len.next_power_of_two());
                assert_eq!(join_all(reduction, &mut values.clone()).to_bits(), expected.to_bits());
            }
        }
        assert_eq!(join_all(Reduction::Sum, &mut [-0.0f64]).to_bits(), (-0.0f64).to_bits());
    }

    #[test]
    fn nan_wins_and_zeros_have_an_order() {
        let join = |reduction: Reduction, a: f32, b: f32| reduction.join(a, b);
        for reduction in [Reduction::Min, Reduction::Max] {
            assert!(join(reduction, f32::NAN, 1.0).is_nan() && join(reduction, 1.0, f32::NAN).is_nan());
            let expected = if reduction == Reduction::Min { -0.0f32 } else { 0.0 };
            for (a, b) in [(0.0, -0.0), (-0.0, 0.0)] {
                assert_eq!(join(reduction, a, b).to_bits(), expected.to_bits());
            }
        }
    }

    #[test]
    fn a_box_is_joined_along_the_slowest_axis_first() {
        let mut values: Vec<f64> = (0..3 * 5 * 7).map(|i| 1.0 / f64::from(i + 1)).collect();
        let at = |z: usize, y: usize, x: usize| 1.0 / ((z * 5 + y) * 7 + x + 1) as f64;
        let join = |mut v: Vec<f64>| join_all(Reduction::Sum, &mut v);
        let expected = join(
            (0..7)
                .map(|x| join((0..5).map(|y| join((0..3).map(|z| at(z, y, x)).collect())).collect()))
                .collect(),
        );
        assert_eq!(join_box(Reduction::Sum, [3, 5, 7], &mut values).to_bits(), expected.to_bits());
    }
}

//! Reductions of many values to one, in one tree for the whole of Abide: those of programs over regions, and
//! the sums of solvers over vectors.
//!
//! The tree knows no plan, grid, thread or device. Its leaves are the values of an aligned box of
//! [`leaf`] indices; within a box, and then among boxes, aligned blocks of two are joined along the slowest
//! axis until one is left, then along the next axis, then along the fastest. Indices that are missing to a
//! power of two count as the neutral element. So every aligned box of powers of two is a subtree, and a tile,
//! a slab or a share of a vector that begins at a multiple of the leaf's extents owns whole subtrees.
//!
//! A vector has one axis, its index; a grid operator's vector likewise, in the order of memory. Values 2i and
//! 2i + 1 are joined first, then blocks of two, four, eight. A sum of n values passes each of them through
//! log2(n) additions, rounded up; that many units of roundoff times the sum of absolute values bound its
//! error, where a running sum's bound has n. The products of a dot product are rounded before they are added
//! (no `fma`), so that the loop is vectorised in every build.

use serde::Serialize;

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

/// The least leaves that are many: one block joins fewer, and of fewer each is a block's, lest a device have too few warps.
pub const MANY_LEAVES: usize = 2048;

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

/// The values of a leaf of a vector.
pub const LEAF: usize = 256;

/// Returns the dot product of one leaf: of at most [`LEAF`] values of either slice. Values beyond the shorter
/// slice are left out.
///
/// This is the part of a dot product that a threaded engine hands out.
#[inline]
pub fn leaf_dot<T: Real>(a: &[T], b: &[T]) -> T {
    // So many values stay in registers while they are joined; their eighths wait for those of other rows.
    const ROW: usize = 64;
    let len = a.len().min(b.len()).min(LEAF);
    let mut eighths = [Reduction::Sum.neutral(); LEAF / 8];
    let (rows_a, rest_a) = a[..len].as_chunks::<ROW>();
    let (rows_b, rest_b) = b[..len].as_chunks::<ROW>();
    let (places, rest) = eighths.split_at_mut(rows_a.len() * ROW / 8);
    let join = |products: [T; ROW]| halved::<T, ROW, 32>(products);
    let join = |products: [T; ROW]| halved::<T, 16, 8>(halved::<T, 32, 16>(join(products)));
    for (place, (a, b)) in places.as_chunks_mut::<8>().0.iter_mut().zip(rows_a.iter().zip(rows_b)) {
        *place = join(std::array::from_fn(|i| a[i] * b[i]));
    }
    if let (Some(place), false) = (rest.first_chunk_mut::<8>(), rest_a.is_empty()) {
        let mut products = [Reduction::Sum.neutral(); ROW];
        for (product, (&a, &b)) in products.iter_mut().zip(rest_a.iter().zip(rest_b)) {
            *product = a * b;
        }
        *place = join(products);
    }
    let eight = halved::<T, 16, 8>(halved::<T, 32, 16>(eighths));
    halved::<T, 2, 1>(halved::<T, 4, 2>(halved::<T, 8, 4>(eight)))[0]
}

/// Joins values 2i and 2i + 1: half as many.
#[inline(always)]
fn halved<T: Real, const N: usize, const HALF: usize>(values: [T; N]) -> [T; HALF] {
    std::array::from_fn(|i| values[2 * i] + values[2 * i + 1])
}

/// Returns the dot product of `a` and `b`; values beyond the shorter slice are left out.
pub fn dot<T: Real>(a: &[T], b: &[T]) -> T {
    let mut sums = Sums::new();
    for (a, b) in a.chunks(LEAF).zip(b.chunks(LEAF)) {
        sums.push(leaf_dot(a, b));
    }
    sums.finish()
}

/// The upper levels of a vector's sum: takes the leaves' sums in order, one at a time, without allocating.
///
/// A threaded engine computes [`leaf_dot`] of every leaf in any order, then pushes them here in the leaves'
/// order.
#[derive(Debug, Clone)]
pub struct Sums<T> {
    /// The sum of the last block of each size that waits for the block beside it.
    waiting: [T; usize::BITS as usize],
    /// The leaves so far; a bit of it says whether a block of that size waits.
    leaves: usize,
}

impl<T: Real> Default for Sums<T> {
    fn default() -> Self {
        Sums::new()
    }
}

impl<T: Real> Sums<T> {
    /// Makes a sum of no leaves.
    pub fn new() -> Self {
        Sums { waiting: [Reduction::Sum.neutral(); usize::BITS as usize], leaves: 0 }
    }

    /// Adds the next leaf's sum.
    #[inline]
    pub fn push(&mut self, sum: T) {
        self.push_block(0, sum);
    }

    /// Adds the sum of the next 2^`level` leaves, a subtree: as many leaves as a multiple of that come before it.
    #[inline]
    pub fn push_block(&mut self, level: u32, mut sum: T) {
        let own = level as usize;
        let full = own + (self.leaves >> level).trailing_ones() as usize;
        for &before in &self.waiting[own..full] {
            sum = before + sum;
        }
        self.waiting[full] = sum;
        self.leaves += 1 << level;
    }

    /// Returns the sum of all leaves.
    pub fn finish(self) -> T {
        let mut sum = Reduction::Sum.neutral();
        for (level, &before) in self.waiting.iter().enumerate() {
            // What is missing on the right of a block is neutral.
            if self.leaves >> level & 1 == 1 {
                sum = before + sum;
            }
        }
        sum
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

    #[test]
    fn a_dot_product_is_the_tree_of_its_rounded_products() {
        let mut rng = fastrand::Rng::with_seed(7);
        for n in
            [0_usize, 1, 2, 7, 8, 9, 31, 33, 255, 256, 257, 511, 513, 1025, 5000, 1 << 17, (1 << 20) + 1234]
        {
            let [a, b] = [0; 2].map(|_| (0..n).map(|_| rng.f64() - 0.5).collect::<Vec<f64>>());
            let products: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a * b).collect();
            let expected = block(Reduction::Sum, &products, 0, n.next_power_of_two());
            assert_eq!(dot(&a, &b).to_bits(), expected.to_bits(), "{n} values");
        }
    }

    #[test]
    fn subtrees_are_joined_as_their_leaves_are() {
        let mut rng = fastrand::Rng::with_seed(9);
        let leaves: Vec<f64> = (0..100).map(|_| rng.f64() - 0.5).collect();
        let all = |leaves: &[f64]| {
            let mut sums = Sums::new();
            leaves.iter().for_each(|&sum| sums.push(sum));
            sums.finish()
        };
        for cuts in [[0, 1, 2, 100], [0, 37, 64, 100], [0, 99, 100, 100], [0, 48, 81, 100]] {
            let mut sums = Sums::new();
            for cut in cuts.windows(2) {
                for block in crate::slabs::blocks(cut[0]..cut[1]) {
                    sums.push_block(block.len().ilog2(), all(&leaves[block]));
                }
            }
            assert_eq!(sums.finish().to_bits(), all(&leaves).to_bits(), "{cuts:?}");
        }
    }

    #[test]
    fn sums_of_integers_are_exact() {
        // All partial sums are integers below 2^53 (2^24 in f32), so that any order gives the exact sum.
        let n = 3_000_001_usize;
        let a: Vec<f64> = (0..n).map(|i| i as f64).collect();
        assert_eq!(dot(&a, &vec![1.0; n]), (n * (n - 1) / 2) as f64);
        let ones = vec![1.0_f32; 1 << 24];
        assert_eq!(dot(&ones, &ones), (1 << 24) as f32);
    }

    #[test]
    fn the_error_is_within_the_bound() {
        // 0.1 in f32, nearly 2^24 times: a running sum is off by per cents, the tree by less than its bound
        // of 24 roundings and the product's own.
        let n = (1 << 24) - 77;
        let sum = dot(&vec![0.1_f32; n], &vec![1.0_f32; n]).to_f64();
        let exact = n as f64 * f64::from(0.1_f32);
        let bound = 25.0 * f64::from(f32::EPSILON) / 2.0 * exact;
        assert!((sum - exact).abs() <= bound, "{sum} {exact} {bound}");
    }
}

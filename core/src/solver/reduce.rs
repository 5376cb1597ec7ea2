//! Sums and dot products in one fixed tree, so that they have the same bits on every run and with any number
//! of threads.
//!
//! The tree, for values `v[0..n]`:
//!
//! 1. Cut the values into blocks of [`BLOCK`] consecutive values; the last may be short.
//! 2. In a block, lane `l` of [`LANES`] starts at +0 and adds `v[l]`, `v[l + LANES]`, `v[l + 2 LANES]`, … in
//!    that order.
//! 3. The lanes are folded in halves: lane `l` adds lane `l + 16`, then `l + 8`, `l + 4`, `l + 2`, `l + 1`.
//!    Lane 0 is the block's sum.
//! 4. Where there is more than one block, the blocks' sums are summed by the same rule.
//!
//! A warp of 32 threads does a block with coalesced loads and five shuffles; a vector unit does it in whole
//! registers. Blocks are independent, so any share of them can go to any thread. A value passes through at
//! most 37 additions per level. That bounds the error by `37 ceil(log_1024 n)` units of roundoff times the
//! sum of absolute values, where a running sum's bound is `n`.
//!
//! The products of a dot product are rounded before they are added (no `fma`), so that the loop is vectorised
//! in every build.

use crate::real::Real;

/// Lanes of a block.
pub const LANES: usize = 32;
/// Consecutive values of a block.
pub const BLOCK: usize = 1024;

/// The most levels of the tree that a `usize` can ask for: 1024^7 > 2^64.
const LEVELS: usize = 7;

/// Returns the sum of the lanes, folded in halves.
#[inline]
fn fold<T: Real>(mut lanes: [T; LANES]) -> T {
    let mut half = LANES / 2;
    while half > 0 {
        for l in 0..half {
            lanes[l] = lanes[l] + lanes[l + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// Returns the dot product of one block (at most [`BLOCK`] values of either slice), by rules 2 and 3 of the
/// tree.
///
/// This is the leaf that a threaded engine hands out; values beyond the shorter slice are left out.
#[inline]
pub fn block_dot<T: Real>(a: &[T], b: &[T]) -> T {
    let mut lanes = [T::ZERO; LANES];
    let (rows_a, rest_a) = a.as_chunks::<LANES>();
    let (rows_b, rest_b) = b.as_chunks::<LANES>();
    for (x, y) in rows_a.iter().zip(rows_b) {
        for l in 0..LANES {
            lanes[l] = lanes[l] + x[l] * y[l];
        }
    }
    for (lane, (x, y)) in lanes.iter_mut().zip(rest_a.iter().zip(rest_b)) {
        *lane = *lane + *x * *y;
    }
    fold(lanes)
}

/// The upper levels of the tree: takes the blocks' sums in order, one at a time, without allocating.
///
/// A threaded engine computes [`block_dot`] of every block in any order, then pushes the sums here in the
/// blocks' order.
#[derive(Debug, Clone)]
pub struct Tree<T> {
    lanes: [[T; LANES]; LEVELS],
    count: [usize; LEVELS],
}

impl<T: Real> Default for Tree<T> {
    fn default() -> Self {
        Tree::new()
    }
}

impl<T: Real> Tree<T> {
    /// Makes a tree without values.
    pub fn new() -> Self {
        Tree { lanes: [[T::ZERO; LANES]; LEVELS], count: [0; LEVELS] }
    }

    /// Adds the next block's sum.
    pub fn push(&mut self, sum: T) {
        self.push_at(0, sum);
    }

    /// Returns the sum of all blocks.
    pub fn finish(mut self) -> T {
        let mut level = 0;
        loop {
            let sum = self.close(level);
            level += 1;
            // Levels fill from below without gaps: an empty one is above the root.
            if level == LEVELS || self.count[level] == 0 {
                return sum;
            }
            self.push_at(level, sum);
        }
    }

    fn push_at(&mut self, level: usize, sum: T) {
        let mut sum = sum;
        for level in level..LEVELS {
            // A full block is closed only when one more value comes, because a level with one block is the
            // root.
            let full = (self.count[level] == BLOCK).then(|| self.close(level));
            let lane = &mut self.lanes[level][self.count[level] % LANES];
            *lane = *lane + sum;
            self.count[level] += 1;
            match full {
                Some(full) => sum = full,
                None => return,
            }
        }
    }

    fn close(&mut self, level: usize) -> T {
        self.count[level] = 0;
        fold(std::mem::replace(&mut self.lanes[level], [T::ZERO; LANES]))
    }
}

/// Returns the dot product of `a` and `b` in the fixed tree; values beyond the shorter slice are left out.
pub fn dot<T: Real>(a: &[T], b: &[T]) -> T {
    let mut tree = Tree::new();
    for (a, b) in a.chunks(BLOCK).zip(b.chunks(BLOCK)) {
        tree.push(block_dot(a, b));
    }
    tree.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums by the four rules of the module's documentation, as plainly as they are written there.
    fn by_the_rules(values: &[f64]) -> f64 {
        let sums: Vec<f64> = values
            .chunks(BLOCK)
            .map(|block| {
                let mut lanes = [0.0; LANES];
                for (i, v) in block.iter().enumerate() {
                    lanes[i % LANES] += v;
                }
                for half in [16, 8, 4, 2, 1] {
                    for l in 0..half {
                        lanes[l] += lanes[l + half];
                    }
                }
                lanes[0]
            })
            .collect();
        if sums.len() > 1 { by_the_rules(&sums) } else { sums.first().copied().unwrap_or(0.0) }
    }

    #[test]
    fn the_tree_is_the_documented_one() {
        let mut random = fastrand::Rng::with_seed(7);
        for n in [0, 1, 2, 31, 32, 33, 1023, 1024, 1025, 2047, 5000, 1 << 20, (1 << 20) + 1, (1 << 21) + 1234]
        {
            let a: Vec<f64> = (0..n).map(|_| random.f64() - 0.5).collect();
            let b: Vec<f64> = (0..n).map(|_| random.f64() - 0.5).collect();
            let products: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a * b).collect();
            assert_eq!(dot(&a, &b).to_bits(), by_the_rules(&products).to_bits(), "n = {n}");
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
        // 0.1 in f32, 2^24 times: a running sum is off by per cents, the tree by less than its bound of 3
        // levels.
        let n = 1 << 24;
        let sum = dot(&vec![0.1_f32; n], &vec![1.0_f32; n]).to_f64();
        let exact = n as f64 * f64::from(0.1_f32);
        let bound = 37.0 * 3.0 * f64::from(f32::EPSILON) / 2.0 * exact;
        assert!((sum - exact).abs() <= bound, "{sum} {exact} {bound}");
    }
}

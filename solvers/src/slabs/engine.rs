//! The engine of a slab: sums over all ranks, everything else over its own part of the vectors.

use std::ops::Range;

use abide_core::Real;
use abide_core::communicator::Endpoint;
use abide_core::reduction::{LEAF, Sums};
use abide_core::slabs::blocks;
use abide_core::solver::RowSlab;

use crate::engine::Engine;

/// An engine for one rank's part of the vectors, with the bits of one device.
///
/// A sum is over the vectors of all ranks: each gives its largest subtrees, and joins those of all.
pub struct SlabEngine<E> {
    inner: E,
    endpoint: Endpoint,
    /// The own rows of each of this rank's subtrees, counted from the slab's first.
    own: Vec<Range<usize>>,
    /// The levels of the subtrees of each rank: a subtree of level k has up to 2^k leaves.
    levels: Vec<Vec<u32>>,
}

impl<E> SlabEngine<E> {
    pub(super) fn new(inner: E, slab: &RowSlab, endpoint: Endpoint) -> Self {
        let leaves = |own: &Range<usize>| own.start / LEAF..own.end.div_ceil(LEAF);
        let rows = slab.rows();
        let own = blocks(leaves(&rows))
            .map(|block| block.start * LEAF - rows.start..(block.end * LEAF).min(rows.end) - rows.start);
        let levels = |own: &Range<usize>| blocks(leaves(own)).map(|block| block.len().ilog2()).collect();
        SlabEngine { inner, endpoint, own: own.collect(), levels: slab.own.iter().map(levels).collect() }
    }

    /// Sums the subtrees of `count` pairs of vectors, `sums` a block of all of them at a time, and joins those of all ranks.
    fn joined<T: Real>(&self, count: usize, mut sums: impl FnMut(&Range<usize>, &mut Vec<T>), out: &mut [T]) {
        let mut given = Vec::with_capacity(self.own.len() * count);
        self.own.iter().for_each(|block| sums(block, &mut given));
        let values: Vec<usize> = self.levels.iter().map(|levels| levels.len() * count).collect();
        let Ok(all) = self.endpoint.all_gather(&T::into_array(given), &values) else {
            out.fill(T::from_f64(f64::NAN));
            return;
        };
        for (number, out) in out.iter_mut().enumerate() {
            let mut joined = Sums::new();
            for (levels, given) in self.levels.iter().zip(&all) {
                let given = T::slice(given).unwrap_or_default().chunks_exact(count);
                levels.iter().zip(given).for_each(|(&level, sums)| joined.push_block(level, sums[number]));
            }
            *out = joined.finish();
        }
    }
}

impl<T: Real, E: Engine<T>> Engine<T> for SlabEngine<E> {
    fn dots<const K: usize>(&self, pairs: [(&[T], &[T]); K]) -> [T; K] {
        let mut out = [T::ZERO; K];
        let sums = |block: &Range<usize>, given: &mut Vec<T>| {
            given.extend(self.inner.dots(pairs.map(|(a, b)| (&a[block.clone()], &b[block.clone()]))));
        };
        self.joined(K, sums, &mut out);
        out
    }

    fn update<const W: usize, const R: usize>(
        &self,
        write: [&mut [T]; W],
        read: [&[T]; R],
        f: impl Fn([T; W], [T; R]) -> [T; W] + Sync,
    ) {
        self.inner.update(write, read, f);
    }

    fn chunks(&self, out: &mut [T], size: usize, f: impl Fn(usize, &mut [T]) + Sync) {
        self.inner.chunks(out, size, f);
    }

    fn run<R: Send>(&self, solve: impl FnOnce() -> R + Send) -> R {
        self.inner.run(solve)
    }

    fn project(&self, basis: &[Vec<T>], w: &[T], out: &mut [T]) {
        let count = basis.len().min(out.len());
        let sums = |block: &Range<usize>, given: &mut Vec<T>| {
            given.extend(basis[..count].iter().map(|v| self.inner.dot(&v[block.clone()], &w[block.clone()])));
        };
        self.joined(count, sums, &mut out[..count]);
    }

    fn combine(&self, w: &mut [T], basis: &[Vec<T>], coefficients: &[T]) {
        self.inner.combine(w, basis, coefficients);
    }

    fn everywhere(&self, holds: bool) -> bool {
        let own = T::into_array(vec![if holds { T::ONE } else { T::ZERO }]);
        let all = self.endpoint.all_gather(&own, &vec![1; self.levels.len()]);
        all.is_ok_and(|all| all.iter().all(|one| one.get(0) == Some(1.0)))
    }
}

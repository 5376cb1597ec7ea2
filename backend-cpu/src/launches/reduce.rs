//! Reductions: rows of leaves on all threads, and the leaves joined by one; on several ranks, those of all joined by each.

use std::ops::Range;

use abide_core::communicator::Endpoint;
use abide_core::program::{Indices, Reduction};
use abide_core::reduction::{join_all, join_box, join_rows, leaf};
use abide_core::slabs::Share;
use abide_core::{Real, Result};
use multiversion::multiversion;

use super::sweep::{Registers, RowSink, Sweep, Work, share};
use crate::shared::Shared;
use crate::steps::{Chunk, NewValues, Taps};

/// The rows of leaves of a reduction.
struct Leaves<'a, T> {
    reduction: Reduction,
    indices: &'a Indices,
    /// The index of the first leaf's first value, the extents of a leaf, and the leaves along each axis.
    begin: [isize; 3],
    leaf: [usize; 3],
    count: [usize; 3],
    joined: Shared<'a, T>,
}

impl<T: Real> Sweep<'_, T> {
    /// Reduces the formula over a box.
    pub fn reduce(&self, reduction: Reduction, indices: &Indices, works: &mut [Work<T>]) -> T {
        let leaf = leaf(self.field_rows.problem.shape.dimensions());
        let count = [0, 1, 2].map(|axis| (indices[axis].end as usize).div_ceil(leaf[axis]));
        let mut joined = self.leaves(reduction, indices, [0; 3], count, works);
        join_box(reduction, count, &mut joined)
    }

    /// Reduces the formula over the boxes of all ranks, of which this is one.
    pub fn reduce_together(
        &self,
        reduction: Reduction,
        indices: &Indices,
        works: &mut [Work<T>],
        share: &Share,
        endpoint: &Endpoint,
    ) -> Result<T> {
        let mut begin = [0; 3];
        begin[share.axis] = share.begin as isize;
        let mut joined = self.leaves(reduction, indices, begin, share.count(), works);
        let own = T::into_array(share.join(reduction, &mut joined));
        Ok(share.finish(reduction, &endpoint.all_gather(&own, &share.values())?))
    }

    /// Returns the values of leaves, of which the first begins at `begin`; all neutral where the box is empty.
    fn leaves(
        &self,
        reduction: Reduction,
        indices: &Indices,
        begin: [isize; 3],
        count: [usize; 3],
        works: &mut [Work<T>],
    ) -> Vec<T> {
        let mut joined = vec![reduction.neutral(); count.iter().product()];
        let values = indices.iter().map(Range::len).product();
        if values == 0 {
            return joined;
        }
        let leaf = leaf(self.field_rows.problem.shape.dimensions());
        let leaves = Leaves { reduction, indices, begin, leaf, count, joined: Shared::new(&mut joined) };
        share(works, count[0] * count[1], values, |work, band| {
            // SAFETY: bands are disjoint, and a reduction writes no buffer.
            unsafe { leaf_rows(self, work, &leaves, band) };
        });
        joined
    }
}

/// Reduces the leaves of a band of rows of leaves; compiled for each instruction set.
///
/// # Safety
///
/// No other thread uses the joined values of the band, or writes what the formula reads.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
unsafe fn leaf_rows<T: Real>(
    sweep: &Sweep<'_, T>,
    work: &mut Work<T>,
    leaves: &Leaves<'_, T>,
    band: Range<usize>,
) {
    let Leaves { reduction, indices: [zs, ys, xs], begin, leaf: [depth, height, width], count, joined } =
        leaves;
    let row = count[2] * width;
    let mut values = std::mem::replace(&mut work.leaves, crate::rings::Storage::empty());
    let mut is_prepared = false;
    for number in band.clone() {
        let [z, y] = [number / count[1] * depth, number % count[1] * height].map(|index| index as isize);
        let first = [begin[0] + z, begin[1] + y];
        let rows = &mut values.all_mut()[..depth * height * row];
        rows.fill(reduction.neutral());
        for (place, values) in rows.chunks_exact_mut(row).enumerate() {
            let at = [first[0] + (place / height) as isize, first[1] + (place % height) as isize];
            if !zs.contains(&at[0]) || !ys.contains(&at[1]) {
                continue;
            }
            if sweep.bytecode.varies_by_row || !is_prepared {
                sweep.prepare(work, at);
                is_prepared = true;
            }
            sweep.row(work, at, xs, &mut LeafRow { values: &mut values[(xs.start - begin[2]) as usize..] });
        }
        join_rows(*reduction, *depth, height * row, rows);
        join_rows(*reduction, *height, row, rows);
        // SAFETY: by the contract of this function.
        let joined = unsafe { joined.write(number * count[2]..(number + 1) * count[2]) };
        for (joined, values) in joined.iter_mut().zip(rows.chunks_exact_mut(*width)) {
            *joined = join_all(*reduction, values);
        }
    }
    work.leaves = values;
}

/// The values of a row of leaves, from the region's first index on.
struct LeafRow<'r, T> {
    values: &'r mut [T],
}

impl<T> NewValues<T> for LeafRow<'_, T> {
    #[inline(always)]
    fn cells(&mut self, _: usize, range: Range<usize>) -> &mut [T] {
        &mut self.values[range]
    }
}

impl<T: Real> RowSink<T> for LeafRow<'_, T> {
    #[inline(always)]
    fn is_direct(&self) -> bool {
        true
    }

    #[inline(always)]
    fn compute(&mut self, chunk: &Chunk<'_>, work: &mut Registers<'_, T>, taps: &impl Taps<T>) {
        chunk.compute(work.step_scratch, work.scalars, taps, self);
    }
}

//! Sums of weighted values: all of a linear stencil, and the bulk of every other.

use abide_core::Real;
use arrayvec::ArrayVec;
use multiversion::multiversion;

use crate::bytecode::MAX_TERMS;
use crate::rings::{LINE_BYTES, Walk};

/// Rows that are prefetched; rows that a near cache holds need no prefetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ahead {
    /// The rows that are read.
    pub read: bool,
    /// The row that is written.
    pub write: bool,
}

/// Rows side by side in a buffer.
#[derive(Clone, Copy)]
pub struct Rows<T> {
    /// The buffer's first value.
    buffer: *mut T,
    walk: Walk,
}

impl<T> Rows<T> {
    /// Returns the rows, of the given number and length, that the walk leads to; panics unless they lie in
    /// the buffer.
    #[inline(always)]
    pub fn new(buffer: *mut [T], walk: Walk, size: [usize; 2]) -> Self {
        walk.check(size, buffer.len());
        Rows { buffer: buffer.cast(), walk }
    }

    /// Returns the first value of the row that the walk has come to.
    ///
    /// # Safety
    ///
    /// The walk has not gone beyond the last row, and the buffer is still there.
    #[inline(always)]
    pub unsafe fn row(&self) -> *mut T {
        // SAFETY: the row lies in the buffer.
        unsafe { self.buffer.add(self.walk.at) }
    }

    /// Moves on to the next row.
    #[inline(always)]
    pub fn step(&mut self) {
        self.walk.step();
    }
}

/// A sum of weighted values: the first term's product, then one fused multiply-add for each later term, in
/// order.
#[derive(Default)]
pub struct Sum<'a, T> {
    terms: ArrayVec<(T, &'a [T]), MAX_TERMS>,
}

impl<'a, T: Real> Sum<'a, T> {
    /// Adds a term, of [`MAX_TERMS`] at most: longer sums are several steps of a bytecode.
    #[inline(always)]
    pub fn add(&mut self, weight: T, values: &'a [T]) {
        self.terms.push((weight, values));
    }

    /// Computes `to[i] = w0*v0[i]`, then `fma(w, v[i], to[i])` for each later term, then `scale * to[i]` if
    /// there is a scale. All values are as long as `to`.
    #[inline(always)]
    pub fn store(&self, to: &mut [T], scale: Option<T>, ahead: Ahead) {
        store(&self.terms, to, scale, ahead);
    }
}

/// Handles `$count` terms, at most `$most`: the usual counts each by code of their own, so that loops over
/// the terms vanish.
macro_rules! unrolled {
    ($terms:expr, $most:ident, $count:ident, $done:expr) => {
        unrolled!($terms, $most, $count, $done; 2 3 4 5 6 7 9 13 25 27)
    };
    ($terms:expr, $most:ident, $count:ident, $done:expr; $($literal:literal)*) => {
        match $terms.len() {
            $($literal => {
                const $most: usize = $literal;
                let $count = $most;
                $done
            })*
            $count => {
                const $most: usize = MAX_TERMS;
                $done
            }
        }
    };
}

/// Writes a sum; compiled for each instruction set. It is apart from all else that a row needs, so that its
/// few variables stay in registers.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
fn store<T: Real>(terms: &[(T, &[T])], to: &mut [T], scale: Option<T>, ahead: Ahead) {
    unrolled!(terms, MOST, count, {
        let (mut weights, mut values) = ([T::ZERO; MOST], [to.as_ptr(); MOST]);
        for k in 0..count {
            let (weight, from) = terms[k];
            (weights[k], values[k]) = (weight, from[..to.len()].as_ptr());
        }
        let (to, len) = (to.as_mut_ptr(), to.len());
        // SAFETY: all have `len` values, and are borrowed.
        unsafe { Row { to, len, weights: &weights[..count], values: &values[..count], scale }.store(ahead) }
    })
}

/// A sum of weighted values, as [`Sum`], for row after row.
pub struct Sums<T> {
    terms: ArrayVec<(T, Rows<T>), MAX_TERMS>,
    to: Rows<T>,
    scale: Option<T>,
    /// Rows that are left, and the values of each.
    size: [usize; 2],
}

impl<T: Real> Sums<T> {
    /// Returns a sum with no terms yet, for rows of the given number and length.
    #[inline(always)]
    pub fn new(to: *mut [T], walk: Walk, size: [usize; 2], scale: Option<T>) -> Self {
        Sums { terms: ArrayVec::new(), to: Rows::new(to, walk, size), scale, size }
    }

    /// Adds a term, of [`MAX_TERMS`] at most, whose rows the walk leads to.
    #[inline(always)]
    pub fn add(&mut self, weight: T, from: *const [T], walk: Walk) {
        self.terms.push((weight, Rows::new(from.cast_mut(), walk, self.size)));
    }

    /// Returns the rows to which the next sums go.
    #[inline(always)]
    pub fn to(&self) -> Rows<T> {
        self.to
    }

    /// Returns the number of rows that are left.
    #[inline(always)]
    pub fn left(&self) -> usize {
        self.size[0]
    }

    /// Computes the next `rows` rows.
    ///
    /// # Safety
    ///
    /// All buffers are still there. Meanwhile nobody writes the terms' values, and nobody reads or writes
    /// those that are stored.
    #[inline(always)]
    pub unsafe fn advance(&mut self, rows: usize, ahead: Ahead) {
        assert!(rows <= self.size[0], "{rows} rows of {}", self.size[0]);
        // SAFETY: at least `rows` rows are left and lie in their buffers; the caller promises the rest.
        unsafe { advance(&mut self.terms, &mut self.to, [rows, self.size[1]], self.scale, ahead) };
        self.size[0] -= rows;
    }
}

/// Computes rows of a sum, compiled as [`store`] is.
///
/// # Safety
///
/// The rows lie in their buffers. Meanwhile nobody writes those of the terms, and nobody reads or writes
/// those that are stored.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
unsafe fn advance<T: Real>(
    terms: &mut [(T, Rows<T>)],
    to: &mut Rows<T>,
    [rows, len]: [usize; 2],
    scale: Option<T>,
    ahead: Ahead,
) {
    unrolled!(terms, MOST, count, {
        let (mut weights, mut from) = ([T::ZERO; MOST], [*to; MOST]);
        for k in 0..count {
            (weights[k], from[k]) = terms[k];
        }
        for _ in 0..rows {
            let mut values = [to.buffer.cast_const(); MOST];
            for k in 0..count {
                // SAFETY: the row is one of those that lie in the buffer.
                values[k] = unsafe { from[k].row() };
                from[k].step();
            }
            // SAFETY: as above.
            let first = unsafe { to.row() };
            let row = Row { to: first, len, weights: &weights[..count], values: &values[..count], scale };
            to.step();
            // SAFETY: all these rows have `len` values, and are the caller's to use.
            unsafe { row.store(ahead) };
        }
        for k in 0..count {
            terms[k].1 = from[k];
        }
    })
}

/// The sums of one row.
struct Row<'s, T> {
    to: *mut T,
    len: usize,
    weights: &'s [T],
    values: &'s [*const T],
    scale: Option<T>,
}

impl<T: Real> Row<'_, T> {
    /// Computes the sums.
    ///
    /// # Safety
    ///
    /// All rows have `len` values. Meanwhile nobody writes those of the terms, and nobody reads or writes
    /// those that are stored.
    #[inline(always)]
    unsafe fn store(self, ahead: Ahead) {
        // SAFETY: the caller promises it. Four of the widest vectors at a time, so that the latency of each
        // is hidden behind the others; one vector at a time at the ends of a row.
        unsafe {
            match LINE_BYTES / size_of::<T>() {
                16 => self.in_blocks::<64, 16>(ahead),
                _ => self.in_blocks::<32, 8>(ahead),
            }
        }
    }

    /// Computes the sums in blocks of `N` cells, then of `V`, then of one. Where there are `V` cells at all,
    /// the last block repeats cells of the block before, which costs less than single cells.
    ///
    /// # Safety
    ///
    /// The conditions of [`Row::store`].
    #[inline(always)]
    unsafe fn in_blocks<const N: usize, const V: usize>(self, ahead: Ahead) {
        let len = self.len;
        // SAFETY: every block begins at least its length before the end.
        let block = |start: usize| unsafe { self.block::<N>(start) };
        // SAFETY: as above.
        let vector = |start: usize| unsafe { self.block::<V>(start) };
        if len < V {
            // SAFETY: as above.
            (0..len).for_each(|start| unsafe { self.block::<1>(start) });
            return;
        }
        // Whole lines are written at a time: vectors that straddle two of them take twice as long.
        let lead = self.to.align_offset(LINE_BYTES);
        let mut start = 0;
        if lead > 0 && lead < V {
            vector(0);
            start = lead;
        }
        while len - start >= N {
            if ahead.write {
                prefetch::<T, N, true>(self.to, start);
            }
            // The last term of a linear stencil is the one whose rows no other row has read before.
            if ahead.read
                && let [.., leading] = self.values
            {
                prefetch::<T, N, false>(*leading, start);
            }
            block(start);
            start += N;
        }
        while start < len {
            vector(start.min(len - V));
            start += V;
        }
    }

    /// Computes the sums of `N` cells from `start` on.
    ///
    /// # Safety
    ///
    /// The conditions of [`Row::store`]; also, the cells are among the `len`.
    #[inline(always)]
    unsafe fn block<const N: usize>(&self, start: usize) {
        debug_assert!(start + N <= self.len);
        let mut total = [T::ZERO; N];
        for (k, (&weight, values)) in self.weights.iter().zip(self.values).enumerate() {
            // SAFETY: the caller promises it. A check per term and block takes as many instructions as a sum.
            let values = unsafe { &*values.add(start).cast::<[T; N]>() };
            for i in 0..N {
                total[i] = if k == 0 { weight * values[i] } else { weight.mul_add(values[i], total[i]) };
            }
        }
        if let Some(scale) = self.scale {
            for total in &mut total {
                *total = scale * *total;
            }
        }
        // SAFETY: the caller promises it.
        unsafe { *self.to.add(start).cast::<[T; N]>() = total };
    }
}

/// Bytes from a line's request to its use: a few blocks, far enough for memory to answer.
#[cfg(target_arch = "x86_64")]
const AHEAD_BYTES: usize = 2048;

/// Prefetches the lines of a block of `N` values, `AHEAD_BYTES` after the block at `start`; for writing if
/// `WRITE`. The hardware prefetches too, but stops at the end of each page: with these requests 2d5pt becomes a
/// tenth faster on 8192² and a quarter on 2304².
#[inline(always)]
fn prefetch<T, const N: usize, const WRITE: bool>(values: *const T, start: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_ET0, _MM_HINT_T0, _mm_prefetch};
        let ahead = values.wrapping_add(start).wrapping_byte_add(AHEAD_BYTES).cast::<i8>();
        for line in 0..size_of::<[T; N]>() / LINE_BYTES {
            let at = ahead.wrapping_add(line * LINE_BYTES);
            // SAFETY: a prefetch is a hint; it faults at no address and changes no value. SSE is part of
            // x86-64.
            unsafe { if WRITE { _mm_prefetch::<_MM_HINT_ET0>(at) } else { _mm_prefetch::<_MM_HINT_T0>(at) } };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (values, start);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_of_any_length_is_a_product_and_then_fused_multiply_adds() {
        fn check<T: Real>() {
            for (len, count) in [0, 1, 3, 4, 31, 32, 33, 64, 67, 131]
                .into_iter()
                .flat_map(|len| (1..=MAX_TERMS).map(move |n| (len, n)))
            {
                let value = |term: usize, i: usize| T::from_f64(((i * 37 + term) as f64).sin());
                let weight = |term: usize| T::from_f64((term as f64).cos());
                let values: Vec<Vec<T>> =
                    (0..count).map(|term| (0..len).map(|i| value(term, i)).collect()).collect();
                let mut total = vec![T::ONE; len];
                let ahead = Ahead { read: count % 2 == 0, write: len % 2 == 0 };
                let scale = (len % 3 == 0).then(|| T::from_f64(0.3));
                let mut sum = Sum::default();
                values.iter().enumerate().for_each(|(k, values)| sum.add(weight(k), values));
                sum.store(&mut total, scale, ahead);
                for (i, total) in total.iter().enumerate() {
                    let first = weight(0) * value(0, i);
                    let expected =
                        (1..count).fold(first, |sum, term| weight(term).mul_add(value(term, i), sum));
                    let expected = scale.map_or(expected, |scale| scale * expected);
                    assert_eq!(total.to_bits64(), expected.to_bits64());
                }
            }
        }
        check::<f32>();
        check::<f64>();
    }
}

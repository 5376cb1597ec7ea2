//! Operations on lanes: one loop each, simple enough for the compiler to vectorise.
//!
//! Everything is inlined into the row sweep, which is compiled once for each instruction set, so that a fused
//! multiply-add is one instruction wherever the machine has it.

use abide_core::Real;
use abide_core::expr::{Binary, Unary, binary, unary};
use arrayvec::ArrayVec;

use crate::tape::MAX_TERMS;

/// An operand of a chunk: its values, or one value for all of them.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a, T> {
    /// One value a cell; as long as the chunk.
    Lanes(&'a [T]),
    /// The same value everywhere.
    Scalar(T),
}

/// Bytes of a cache line, and of the widest vector of any machine that we know.
pub const LINE_BYTES: usize = 64;

/// What lies in memory and is asked for ahead of its use; what a cache close by holds needs no asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ahead {
    /// The rows that are read.
    pub read: bool,
    /// The row that is written.
    pub write: bool,
}

/// A sum of weighted values: the first term's product, then one fused multiply-add for each later term, in order.
#[derive(Default)]
pub struct Sum<'a, T> {
    terms: ArrayVec<(T, &'a [T]), MAX_TERMS>,
}

impl<'a, T: Real> Sum<'a, T> {
    /// Adds a term, of [`MAX_TERMS`] at most: longer sums are several steps of a tape.
    #[inline(always)]
    pub fn add(&mut self, weight: T, values: &'a [T]) {
        self.terms.push((weight, values));
    }

    /// `to[i] = w0*v0[i]`, then `fma(w, v[i], to[i])` for each later term, then `scale * to[i]` if there is a scale. All
    /// values are as long as `to`.
    #[inline(always)]
    pub fn store(&self, to: &mut [T], scale: Option<T>, ahead: Ahead) {
        macro_rules! unrolled {
            ($($count:literal)*) => {
                match self.terms.len() {
                    $($count => self.of::<$count>(to, $count, scale, ahead),)*
                    count => self.of::<MAX_TERMS>(to, count, scale, ahead),
                }
            };
        }
        unrolled!(2 3 4 5 6 7 9)
    }

    /// The sum of `count` terms, `MOST` at most; its loop over the terms vanishes where `count` is a literal.
    #[inline(always)]
    fn of<const MOST: usize>(&self, to: &mut [T], count: usize, scale: Option<T>, ahead: Ahead) {
        let (mut weights, mut values): ([T; MOST], [&[T]; MOST]) = ([T::ZERO; MOST], [&[]; MOST]);
        for k in 0..count {
            let (weight, from) = self.terms[k];
            (weights[k], values[k]) = (weight, &from[..to.len()]);
        }
        let terms = Terms { to, weights: &weights[..count], values: &values[..count], scale };
        // Four of the widest vectors at a time, so that one's latency is hidden behind the others; one at the ends of a row.
        match LINE_BYTES / size_of::<T>() {
            16 => terms.in_blocks::<64, 16>(ahead),
            _ => terms.in_blocks::<32, 8>(ahead),
        }
    }
}

/// The terms of a sum, of which each has as many values as there are places for sums.
struct Terms<'s, 'a, T> {
    to: &'s mut [T],
    weights: &'s [T],
    values: &'s [&'a [T]],
    scale: Option<T>,
}

impl<T: Real> Terms<'_, '_, T> {
    /// The sum in blocks of `N` cells, then of `V`, then of one. Where there are `V` cells at all, the last block does
    /// cells again that the one before did: that costs less than single cells.
    #[inline(always)]
    fn in_blocks<const N: usize, const V: usize>(mut self, ahead: Ahead) {
        let len = self.to.len();
        if len < V {
            for start in 0..len {
                self.block::<1>(start);
            }
            return;
        }
        // Whole lines are written at a time: vectors that straddle two of them take twice as long.
        let lead = self.to.as_ptr().align_offset(LINE_BYTES);
        let mut start = 0;
        if lead > 0 && lead < V {
            self.block::<V>(0);
            start = lead;
        }
        while len - start >= N {
            if ahead.write {
                prefetch::<T, N, true>(self.to, start);
            }
            // Of the terms of a linear stencil the last is the one that no row has read before.
            if ahead.read
                && let [.., leading] = self.values
            {
                prefetch::<T, N, false>(leading, start);
            }
            self.block::<N>(start);
            start += N;
        }
        if len - start > V && len >= N {
            self.block::<N>(len - N);
        } else {
            while start < len {
                self.block::<V>(start.min(len - V));
                start += V;
            }
        }
    }

    /// The sums of `N` cells from `start` on.
    #[inline(always)]
    fn block<const N: usize>(&mut self, start: usize) {
        debug_assert!(start + N <= self.to.len());
        let mut total = [T::ZERO; N];
        for (k, (&weight, values)) in self.weights.iter().zip(self.values).enumerate() {
            // SAFETY: `start + N` is at most the number of places, and so of each term's values. A check a term and
            // block takes as many instructions as the sum.
            let values = unsafe { &*values.as_ptr().add(start).cast::<[T; N]>() };
            for i in 0..N {
                total[i] = if k == 0 { weight * values[i] } else { weight.mul_add(values[i], total[i]) };
            }
        }
        if let Some(scale) = self.scale {
            for total in &mut total {
                *total = scale * *total;
            }
        }
        // SAFETY: as above.
        unsafe { *self.to.as_mut_ptr().add(start).cast::<[T; N]>() = total };
    }
}

/// How far ahead of its use a line is asked for: a few blocks, far enough for memory to answer.
#[cfg(target_arch = "x86_64")]
const AHEAD_BYTES: usize = 2048;

/// Asks for the lines that a block of `N` values will soon need as the block at `start` is needed now, to be written if
/// `WRITE`. The hardware asks ahead by itself, but stops at the end of each page: 2d5pt becomes a tenth faster on
/// 8192² and a quarter on 2304².
#[inline(always)]
fn prefetch<T, const N: usize, const WRITE: bool>(values: &[T], start: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_ET0, _MM_HINT_T0, _mm_prefetch};
        let ahead = values.as_ptr().wrapping_add(start).wrapping_byte_add(AHEAD_BYTES).cast::<i8>();
        for line in 0..size_of::<[T; N]>() / LINE_BYTES {
            let at = ahead.wrapping_add(line * LINE_BYTES);
            // SAFETY: a prefetch is a hint; it faults at no address and changes no value. SSE is part of x86-64.
            unsafe { if WRITE { _mm_prefetch::<_MM_HINT_ET0>(at) } else { _mm_prefetch::<_MM_HINT_T0>(at) } };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (values, start);
}

/// `to[i] = from[i]`.
#[inline(always)]
pub fn copy<T: Real>(to: &mut [T], from: Source<'_, T>) {
    match from {
        Source::Lanes(from) => to.copy_from_slice(from),
        Source::Scalar(value) => to.fill(value),
    }
}

/// `to[i] = start + i`, the cell's index along the row.
#[inline(always)]
pub fn index<T: Real>(to: &mut [T], start: usize) {
    for (i, to) in to.iter_mut().enumerate() {
        *to = T::from_f64((start + i) as f64);
    }
}

#[inline(always)]
fn map1<T: Real>(to: &mut [T], a: Source<'_, T>, f: impl Fn(T) -> T) {
    match a {
        Source::Lanes(a) => to.iter_mut().zip(a).for_each(|(to, &a)| *to = f(a)),
        Source::Scalar(a) => to.fill(f(a)),
    }
}

#[inline(always)]
fn map2<T: Real>(to: &mut [T], a: Source<'_, T>, b: Source<'_, T>, f: impl Fn(T, T) -> T) {
    use Source::{Lanes, Scalar};
    match (a, b) {
        (Lanes(a), Lanes(b)) => to.iter_mut().zip(a).zip(b).for_each(|((to, &a), &b)| *to = f(a, b)),
        (Lanes(a), Scalar(b)) => to.iter_mut().zip(a).for_each(|(to, &a)| *to = f(a, b)),
        (Scalar(a), Lanes(b)) => to.iter_mut().zip(b).for_each(|(to, &b)| *to = f(a, b)),
        (Scalar(a), Scalar(b)) => to.fill(f(a, b)),
    }
}

/// `scale * (a + b)` or `scale * (a - b)`; the tape scales nothing else.
#[inline(always)]
pub fn scaled<T: Real>(op: Binary, to: &mut [T], scale: T, a: Source<'_, T>, b: Source<'_, T>) {
    match op {
        Binary::Sub => map2(to, a, b, |a, b| scale * (a - b)),
        _ => map2(to, a, b, |a, b| scale * (a + b)),
    }
}

/// `a * (b * c)`.
#[inline(always)]
pub fn product<T: Real>(to: &mut [T], a: Source<'_, T>, b: Source<'_, T>, c: Source<'_, T>) {
    map3(to, a, b, c, |a, b, c| a * (b * c));
}

/// `a * b + c`, rounded once; a scalar among the factors comes first.
#[inline(always)]
pub fn fma<T: Real>(to: &mut [T], a: Source<'_, T>, b: Source<'_, T>, c: Source<'_, T>) {
    map3(to, a, b, c, |a, b, c| a.mul_add(b, c));
}

/// `yes` where `condition` is not zero, else `no`.
#[inline(always)]
pub fn select<T: Real>(to: &mut [T], condition: Source<'_, T>, yes: Source<'_, T>, no: Source<'_, T>) {
    match condition {
        Source::Scalar(condition) => copy(to, if condition != T::ZERO { yes } else { no }),
        condition => {
            map3(to, condition, yes, no, |condition, yes, no| if condition != T::ZERO { yes } else { no });
        }
    }
}

#[inline(always)]
fn map3<T: Real>(to: &mut [T], a: Source<'_, T>, b: Source<'_, T>, c: Source<'_, T>, f: impl Fn(T, T, T) -> T) {
    use Source::{Lanes, Scalar};
    match (a, b, c) {
        (Scalar(a), b, c) => map2(to, b, c, |b, c| f(a, b, c)),
        (a, Scalar(b), c) => map2(to, a, c, |a, c| f(a, b, c)),
        (a, b, Scalar(c)) => map2(to, a, b, |a, b| f(a, b, c)),
        (Lanes(a), Lanes(b), Lanes(c)) => {
            to.iter_mut().zip(a).zip(b).zip(c).for_each(|(((to, &a), &b), &c)| *to = f(a, b, c));
        }
    }
}

/// A one-operand operator on lanes.
#[inline(always)]
pub fn apply1<T: Real>(op: Unary, to: &mut [T], a: Source<'_, T>) {
    macro_rules! each {
        ($($name:ident)*) => {
            match op {
                $(Unary::$name => map1(to, a, |a| unary(Unary::$name, a)),)*
            }
        };
    }
    each!(Neg Abs Sqrt Exp Log Sin Cos Tanh)
}

/// A two-operand operator on lanes.
#[inline(always)]
pub fn apply2<T: Real>(op: Binary, to: &mut [T], a: Source<'_, T>, b: Source<'_, T>) {
    macro_rules! each {
        ($($name:ident)*) => {
            match op {
                $(Binary::$name => map2(to, a, b, |a, b| binary(Binary::$name, a, b)),)*
            }
        };
    }
    each!(Add Sub Mul Div Min Max Pow Less LessEqual Greater GreaterEqual Equal NotEqual)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_of_any_length_is_a_product_and_then_fused_multiply_adds() {
        fn check<T: Real>() {
            for (len, count) in
                [0, 1, 3, 4, 31, 32, 33, 64, 67, 131].into_iter().flat_map(|len| (1..=MAX_TERMS).map(move |n| (len, n)))
            {
                let value = |term: usize, i: usize| T::from_f64(((i * 37 + term) as f64).sin());
                let weight = |term: usize| T::from_f64((term as f64).cos());
                let values: Vec<Vec<T>> = (0..count).map(|term| (0..len).map(|i| value(term, i)).collect()).collect();
                let mut total = vec![T::ONE; len];
                let ahead = Ahead { read: count % 2 == 0, write: len % 2 == 0 };
                let mut sum = Sum::default();
                values.iter().enumerate().for_each(|(term, values)| sum.add(weight(term), values));
                let scale = (len % 3 == 0).then(|| T::from_f64(0.3));
                sum.store(&mut total, scale, ahead);
                for (i, total) in total.iter().enumerate() {
                    let first = weight(0) * value(0, i);
                    let expected = (1..count).fold(first, |sum, term| weight(term).mul_add(value(term, i), sum));
                    let expected = scale.map_or(expected, |scale| scale * expected);
                    assert_eq!(total.to_bits64(), expected.to_bits64());
                }
            }
        }
        check::<f32>();
        check::<f64>();
    }

    #[test]
    fn three_operands_in_every_mix_of_lanes_and_scalars() {
        let (a, b, c) = ([0.0, 2.0, f64::NAN], [4.0, 5.0, 6.0], [-7.0, 8.0, 9.0]);
        for mix in 0..8 {
            let pick = |bit: usize, lanes: &'static [f64; 3]| {
                if mix >> bit & 1 == 1 { Source::Scalar(lanes[1]) } else { Source::Lanes(lanes) }
            };
            let at = |bit: usize, lanes: &[f64; 3], i: usize| lanes[if mix >> bit & 1 == 1 { 1 } else { i }];
            let (a, b, c) = (Box::leak(Box::new(a)), Box::leak(Box::new(b)), Box::leak(Box::new(c)));
            let mut to = [0.0; 3];
            fma(&mut to, pick(0, a), pick(1, b), pick(2, c));
            for (i, found) in to.iter().enumerate() {
                let expected = at(0, a, i).mul_add(at(1, b, i), at(2, c, i));
                assert!(*found == expected || expected.is_nan() && found.is_nan());
            }
            product(&mut to, pick(0, a), pick(1, b), pick(2, c));
            for (i, found) in to.iter().enumerate() {
                let expected = at(0, a, i) * (at(1, b, i) * at(2, c, i));
                assert!(*found == expected || expected.is_nan() && found.is_nan());
            }
            select(&mut to, pick(0, a), pick(1, b), pick(2, c));
            for (i, found) in to.iter().enumerate() {
                assert_eq!(*found, if at(0, a, i) != 0.0 { at(1, b, i) } else { at(2, c, i) });
            }
        }
    }
}

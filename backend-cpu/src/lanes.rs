//! Operations on lanes: one loop each, simple enough for the compiler to vectorise.
//!
//! Everything is inlined into the row sweep, which is compiled once for each instruction set, so that a fused
//! multiply-add is one instruction wherever the machine has it.

use abide_core::Real;
use abide_core::expr::{Binary, Unary, binary, unary};

/// An operand of a chunk: its values, or one value for all of them.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a, T> {
    /// One value per cell; as long as the chunk.
    Lanes(&'a [T]),
    /// The same value everywhere.
    Scalar(T),
}

/// Computes `to[i] = from[i]`.
#[inline(always)]
pub fn copy<T: Real>(to: &mut [T], from: Source<'_, T>) {
    match from {
        Source::Lanes(from) => to.copy_from_slice(from),
        Source::Scalar(value) => to.fill(value),
    }
}

/// Computes `to[i] = start + i`, the cell's index along the row.
#[inline(always)]
pub fn index<T: Real>(to: &mut [T], start: isize) {
    for (i, to) in to.iter_mut().enumerate() {
        *to = T::from_f64((start + i as isize) as f64);
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

/// Computes `scale * (a + b)` or `scale * (a - b)`; the tape scales no other operation.
#[inline(always)]
pub fn scaled<T: Real>(op: Binary, to: &mut [T], scale: T, a: Source<'_, T>, b: Source<'_, T>) {
    match op {
        Binary::Sub => map2(to, a, b, |a, b| scale * (a - b)),
        _ => map2(to, a, b, |a, b| scale * (a + b)),
    }
}

/// Computes `a * (b * c)`.
#[inline(always)]
pub fn product<T: Real>(to: &mut [T], a: Source<'_, T>, b: Source<'_, T>, c: Source<'_, T>) {
    map3(to, a, b, c, |a, b, c| a * (b * c));
}

/// Computes `a * b + c`, rounded once; a scalar among the factors comes first.
#[inline(always)]
pub fn fma<T: Real>(to: &mut [T], a: Source<'_, T>, b: Source<'_, T>, c: Source<'_, T>) {
    map3(to, a, b, c, |a, b, c| a.mul_add(b, c));
}

/// Selects `yes` where `condition` is not zero, else `no`.
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
fn map3<T: Real>(
    to: &mut [T],
    a: Source<'_, T>,
    b: Source<'_, T>,
    c: Source<'_, T>,
    f: impl Fn(T, T, T) -> T,
) {
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

/// Applies a one-operand operator to lanes.
#[inline(always)]
pub fn apply1<T: Real>(op: Unary, to: &mut [T], a: Source<'_, T>) {
    macro_rules! each {
        ($($name:ident)*) => {
            match op {
                $(Unary::$name => map1(to, a, |a| unary(Unary::$name, a)),)*
            }
        };
    }
    abide_core::with_unary_operators!(each)
}

/// Applies a two-operand operator to lanes.
#[inline(always)]
pub fn apply2<T: Real>(op: Binary, to: &mut [T], a: Source<'_, T>, b: Source<'_, T>) {
    macro_rules! each {
        ($($name:ident)*) => {
            match op {
                $(Binary::$name => map2(to, a, b, |a, b| binary(Binary::$name, a, b)),)*
            }
        };
    }
    abide_core::with_binary_operators!(each)
}

#[cfg(test)]
mod tests {
    use super::*;

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

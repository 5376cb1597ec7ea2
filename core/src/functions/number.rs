//! Numbers as the elementary functions see them: a few operations with one possible result each.

use std::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Sub};

use crate::real::DType;

/// What the formulas of functions compute with: `f32`, `f64`, or the record of what is done with either.
///
/// Every operation is either exact or rounded once, to nearest even, so the bits of a formula do not depend on
/// who evaluates it.
pub trait Number:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    /// A condition.
    type Truth: Copy + BitAnd<Output = Self::Truth> + BitOr<Output = Self::Truth>;
    /// The type of which numbers are.
    const TYPE: DType;

    /// Returns a constant, rounded to the type.
    fn constant(self, value: f64) -> Self;
    /// Returns `self * a + b`, rounded once.
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// Returns `self * a - product`, exactly; `product` is the rounded product of both.
    fn residue(self, a: Self, product: Self) -> Self;
    /// Returns the absolute value.
    fn absolute(self) -> Self;
    /// Returns the absolute value with the sign of another number.
    fn with_sign_of(self, sign: Self) -> Self;
    /// Returns the whole number nearest to `self * factor`, ties to even; its magnitude is below 2²² in f32 and
    /// 2⁵¹ in f64.
    fn nearest(self, factor: Self) -> Self;
    /// Returns `self * 2^n` where this and the result are normal and `n` is whole.
    fn shifted(self, n: Self) -> Self;
    /// Returns `m` of a positive normal number `m * 2^n`: in 2/3..4/3 in f32, and in √½..√2 in f64.
    fn significand(self) -> Self;
    /// Returns the whole `n` of a positive normal number `m * 2^n`, `m` as by [`Number::significand`].
    fn exponent(self) -> Self;
    /// Returns the number of this index, which is whole and inside the table, in a table.
    fn entry(self, table: &'static [f64]) -> Self;
    /// Returns whether this is less than `other`.
    fn less(self, other: Self) -> Self::Truth;
    /// Returns whether both are equal.
    fn same(self, other: Self) -> Self::Truth;
    /// Returns whether this is no number.
    fn is_nan(self) -> Self::Truth;
    /// Returns one of two numbers.
    fn choose(condition: Self::Truth, yes: Self, no: Self) -> Self;
}

/// Returns what belongs to the type of a number.
#[inline(always)]
pub(super) fn by_type<N: Number, A>(single: A, double: A) -> A {
    match N::TYPE {
        DType::F32 => single,
        DType::F64 => double,
    }
}

/// Returns a polynomial's value by Horner's rule; its coefficients, the lowest first, may lack a number type.
#[inline(always)]
pub(super) fn polynomial<N: Number>(x: N, coefficients: &'static [f64]) -> N {
    let mut rest = coefficients.iter().rev();
    let mut value = x.constant(rest.next().copied().unwrap_or(0.0));
    for &coefficient in rest {
        value = value.mul_add(x, x.constant(coefficient));
    }
    value
}

/// No number is rare: the condition of functions that have one formula.
#[inline(always)]
pub(super) fn never<N: Number>(x: N) -> N::Truth {
    x.less(x)
}

/// Returns the smaller of two numbers; the first where either is not one.
#[inline(always)]
pub(super) fn at_most<N: Number>(x: N, most: N) -> N {
    N::choose(most.less(x), most, x)
}

/// Returns the sum of two numbers, of which the first is not the smaller, as its rounded value and the rest.
#[inline(always)]
pub(super) fn sum<N: Number>(large: N, small: N) -> [N; 2] {
    let total = large + small;
    [total, small - (total - large)]
}

/// Returns the product of two numbers as its rounded value and the rest.
#[inline(always)]
pub(super) fn product<N: Number>(a: N, b: N) -> [N; 2] {
    let total = a * b;
    [total, a.residue(b, total)]
}

macro_rules! number {
    ($real:ident, $tag:ident, $word:ident, $fraction:literal, $round:literal, $bias:literal, $lowest:expr) => {
        impl Number for $real {
            type Truth = bool;
            const TYPE: DType = DType::$tag;

            #[inline(always)]
            fn constant(self, value: f64) -> Self {
                value as $real
            }
            #[inline(always)]
            fn mul_add(self, a: Self, b: Self) -> Self {
                $real::mul_add(self, a, b)
            }
            #[inline(always)]
            fn residue(self, a: Self, product: Self) -> Self {
                $real::mul_add(self, a, -product)
            }
            #[inline(always)]
            fn absolute(self) -> Self {
                self.abs()
            }
            #[inline(always)]
            fn with_sign_of(self, sign: Self) -> Self {
                self.copysign(sign)
            }
            #[inline(always)]
            fn nearest(self, factor: Self) -> Self {
                // The sum has no bits below one.
                $real::mul_add(self, factor, $round) - $round
            }
            #[inline(always)]
            fn shifted(self, n: Self) -> Self {
                // The low bits of the sum are n.
                let n = (n + $round).to_bits() << $fraction;
                $real::from_bits(self.to_bits().wrapping_add(n))
            }
            #[inline(always)]
            fn significand(self) -> Self {
                const LOWEST: $word = ($lowest as $real).to_bits();
                let above = self.to_bits().wrapping_sub(LOWEST) & ((1 << $fraction) - 1);
                $real::from_bits(above + LOWEST)
            }
            #[inline(always)]
            fn exponent(self) -> Self {
                const LOWEST: $word = ($lowest as $real).to_bits();
                // Never negative, so that one shift is enough.
                let biased =
                    self.to_bits().wrapping_sub(LOWEST).wrapping_add($bias << $fraction) >> $fraction;
                const ROUND: $real = $round;
                $real::from_bits(ROUND.to_bits() | biased) - (ROUND + $bias as $real)
            }
            #[inline(always)]
            fn entry(self, table: &'static [f64]) -> Self {
                table.get(self as usize).map_or(0.0, |&value| value as $real)
            }
            #[inline(always)]
            fn less(self, other: Self) -> bool {
                self < other
            }
            #[inline(always)]
            fn same(self, other: Self) -> bool {
                self == other
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                $real::is_nan(self)
            }
            #[inline(always)]
            fn choose(condition: bool, yes: Self, no: Self) -> Self {
                if condition { yes } else { no }
            }
        }
    };
}

// 1.5 * 2^23 and 1.5 * 2^52: what is added to them is rounded to whole numbers.
number!(f32, F32, u32, 23, 12_582_912.0, 127, 2.0 / 3.0);
// Above √½ only the high word has bits, so that a processor of 32 bits has to look at no other.
number!(f64, F64, u64, 52, 6_755_399_441_055_744.0, 1023, f64::from_bits(0x3fe6_a09e_0000_0000));

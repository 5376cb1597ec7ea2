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
    /// Returns `self - a * b`, which is a number of the type.
    fn minus_exactly(self, a: Self, b: Self) -> Self;
    /// Returns the absolute value.
    fn absolute(self) -> Self;
    /// Returns the absolute value with the sign of another number.
    fn with_sign_of(self, sign: Self) -> Self;
    /// Returns the anchor of the whole number nearest to `self * factor`, ties to even: a number whose lowest bits are
    /// the whole one. Its magnitude is below 2²² in f32 and 2⁵¹ in f64.
    fn anchored(self, factor: Self) -> Self;
    /// Returns the whole number of this anchor.
    fn whole(self) -> Self;
    /// Returns whether the whole number of this anchor has a bit in two's complement, the lowest being 0.
    fn has_bit(self, bit: u8) -> Self::Truth;
    /// Returns this with the opposite sign where the whole number of an anchor has a bit.
    fn negated(self, anchor: Self, bit: u8) -> Self;
    /// Returns `self * 2^n` for an anchor of `n`, where this and the result are normal.
    fn raised(self, anchor: Self) -> Self;
    /// Returns `self * 2^-n` for an anchor of `n`, where this and the result are normal.
    fn lowered(self, anchor: Self) -> Self;
    /// Returns `m` of a positive normal number `m * 2^n`, from the lowest `m` to below twice it. The lowest has no bits
    /// below the 21 highest of a significand.
    fn significand(self, lowest: f64) -> Self;
    /// Returns `-n` of a positive normal number `m * 2^n`, `m` as by [`Number::significand`]; a zero is positive.
    fn inverse_exponent(self, lowest: f64) -> Self;
    /// Returns `2^-n` of a positive normal number `m * 2^n` that is normal too, `m` as by [`Number::significand`].
    fn inverse_power(self, lowest: f64) -> Self;
    /// Returns 1 / self, rounded once, where both are normal.
    fn reciprocal(self) -> Self;
    /// Returns a number within 4 hundredths of `self^(-1/3)`, with the sign of `self`, which is normal: the bits of a
    /// number are about its logarithm.
    fn near_inverse_cube_root(self) -> Self;
    /// Returns the number of this index, which is whole and inside the table, in a table.
    fn entry(self, table: &'static [f64]) -> Self;
    /// Returns whether this is less than `other`.
    fn less(self, other: Self) -> Self::Truth;
    /// Returns whether both are equal.
    fn same(self, other: Self) -> Self::Truth;
    /// Returns whether this is no number.
    fn is_nan(self) -> Self::Truth;
    /// Returns whether this is no number, or its magnitude below a limit.
    fn is_within(self, limit: Self) -> Self::Truth;
    /// Returns whether this is no number, or its magnitude not below a limit. In f64 only the high word of the limit has
    /// bits, and it is at most 2¹⁰¹⁶: who computes in 32 bits has to look at no other word.
    fn is_beyond(self, limit: Self) -> Self::Truth;
    /// Returns whether this is no number, or at most `low`, or not below `high`; both are limits as those of
    /// [`Number::is_beyond`], but the low word of a positive `low` has all bits.
    fn is_outside(self, low: Self, high: Self) -> Self::Truth;
    /// Returns one of two numbers.
    fn choose(condition: Self::Truth, yes: Self, no: Self) -> Self;

    /// Returns the whole number nearest to `self * factor`, as [`Number::anchored`] does.
    #[inline(always)]
    fn nearest(self, factor: Self) -> Self {
        self.anchored(factor).whole()
    }
    /// Returns `self * 2^n` where this and the result are normal and `n` is whole.
    #[inline(always)]
    fn shifted(self, n: Self) -> Self {
        self.raised(n.anchored(n.constant(1.0)))
    }
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
    ($real:ident, $tag:ident, $word:ident, $fraction:literal, $round:literal, $bias:literal, $inverse:literal) => {
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
            fn minus_exactly(self, a: Self, b: Self) -> Self {
                $real::mul_add(-a, b, self)
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
            fn anchored(self, factor: Self) -> Self {
                // The sum has no bits below one.
                $real::mul_add(self, factor, $round)
            }
            #[inline(always)]
            fn whole(self) -> Self {
                self - $round
            }
            #[inline(always)]
            fn has_bit(self, bit: u8) -> bool {
                self.to_bits() & (1 << bit) != 0
            }
            #[inline(always)]
            fn negated(self, anchor: Self, bit: u8) -> Self {
                const SIGN: u32 = $word::BITS - 1;
                let sign = anchor.to_bits() << (SIGN - u32::from(bit)) & (1 << SIGN);
                $real::from_bits(self.to_bits() ^ sign)
            }
            #[inline(always)]
            fn raised(self, anchor: Self) -> Self {
                $real::from_bits(self.to_bits().wrapping_add(anchor.to_bits() << $fraction))
            }
            #[inline(always)]
            fn lowered(self, anchor: Self) -> Self {
                $real::from_bits(self.to_bits().wrapping_sub(anchor.to_bits() << $fraction))
            }
            #[inline(always)]
            fn significand(self, lowest: f64) -> Self {
                let lowest = (lowest as $real).to_bits();
                let above = self.to_bits().wrapping_sub(lowest) & ((1 << $fraction) - 1);
                $real::from_bits(above + lowest)
            }
            #[inline(always)]
            fn inverse_exponent(self, lowest: f64) -> Self {
                let lowest = (lowest as $real).to_bits();
                // Never negative, so that one shift is enough.
                let biased =
                    self.to_bits().wrapping_sub(lowest).wrapping_add($bias << $fraction) >> $fraction;
                const ROUND: $real = $round;
                (ROUND + $bias as $real) - $real::from_bits(ROUND.to_bits() | biased)
            }
            #[inline(always)]
            fn inverse_power(self, lowest: f64) -> Self {
                let lowest = (lowest as $real).to_bits();
                let n = self.to_bits().wrapping_sub(lowest) & ($word::MAX << $fraction);
                $real::from_bits((1.0 as $real).to_bits().wrapping_sub(n))
            }
            #[inline(always)]
            fn reciprocal(self) -> Self {
                1.0 / self
            }
            #[inline(always)]
            fn near_inverse_cube_root(self) -> Self {
                // Of the high word alone in f64: a third by a product, which needs no division.
                const LOW: u32 = $word::BITS - 32;
                const SIGN: $word = 1 << ($word::BITS - 1);
                let third = (((self.to_bits() & !SIGN) >> LOW) as u64 * 0x5555_5556) >> 32;
                $real::from_bits((($inverse - third) as $word) << LOW | self.to_bits() & SIGN)
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
            fn is_beyond(self, limit: Self) -> bool {
                (self.abs() >= limit) | $real::is_nan(self)
            }
            #[inline(always)]
            fn is_within(self, limit: Self) -> bool {
                (self.abs() < limit) | $real::is_nan(self)
            }
            #[inline(always)]
            fn is_outside(self, low: Self, high: Self) -> bool {
                (self <= low) | (high <= self) | $real::is_nan(self)
            }
            #[inline(always)]
            fn choose(condition: bool, yes: Self, no: Self) -> Self {
                if condition { yes } else { no }
            }
        }
    };
}

// 1.5 * 2^23 and 1.5 * 2^52: what is added to them is rounded to whole numbers.
number!(f32, F32, u32, 23, 12_582_912.0, 127, 0x54a1_f800_u64);
number!(f64, F64, u64, 52, 6_755_399_441_055_744.0, 1023, 0x553e_e900_u64);

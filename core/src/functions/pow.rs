//! Powers: `e^(y log x)`, the logarithm and its product with `y` as sums of two numbers, as in SLEEF's `pow` (Shibata
//! and Petrogalli, IEEE TPDS 31 (2020) 1316).

use std::f64::consts::LOG2_E;

use super::exp;
use super::log;
use super::number::{Number, at_most, by_type, polynomial, product, sum};

/// ln 2, of which the first part times any exponent is exact.
const LN_2: [[f64; 2]; 2] = exp::LN_2;

/// 1/12 and 1/80 as sums of two numbers of the type.
const TWELFTH: [[f64; 2]; 2] =
    [[0.083_333_335_816_860_2, -2.483_526_939_656_144_4e-9], [1.0 / 12.0, 4.625_929_269_271_485e-18]];
const EIGHTIETH: [[f64; 2]; 2] =
    [[0.012500000186264515, -1.8626451492309571e-10], [0.0125, -6.938893903907229e-19]];

/// (log((2 + s) / (2 - s)) / s - 1 - s²/12 - s⁴/80) / s⁶ of s²: within 2⁻⁴⁰ and 2⁻⁷² of the logarithm (`fpminimax` of
/// Sollya).
const SINGLE: [f64; 3] =
    of_half([0.142_859_324_812_889_1, 0.110_884_025_692_939_76, 0.098_403_364_419_937_13]);
const DOUBLE: [f64; 7] = of_half([
    0.142_857_142_857_165_72,
    0.111_111_111_100_095_4,
    0.090_909_093_022_117_35,
    0.076_922_864_887_568_43,
    0.066_678_799_283_233_16,
    0.058_425_556_486_684_9,
    0.059_551_880_335_867_03,
]);

/// Returns the coefficients of s⁶ and so on for twice the `s` of these.
const fn of_half<const LEN: usize>(mut coefficients: [f64; LEN]) -> [f64; LEN] {
    let (mut power, mut at) = (1.0 / 64.0, 0);
    while at < LEN {
        coefficients[at] *= power;
        power /= 4.0;
        at += 1;
    }
    coefficients
}

/// A sum of two numbers.
type Pair<N> = [N; 2];

/// Returns the product of two pairs.
#[inline(always)]
fn times<N: Number>(a: Pair<N>, b: Pair<N>) -> Pair<N> {
    let [high, low] = product(a[0], b[0]);
    [high, a[1].mul_add(b[0], a[0].mul_add(b[1], low))]
}

/// Returns ln(m 2^n) of a significand `m` and `-n`.
#[inline(always)]
fn logarithm<N: Number>(m: N, less: N) -> Pair<N> {
    let c = |value: f64| m.constant(value);
    let pair = |of: [[f64; 2]; 2]| by_type::<N, _>(of[0], of[1]).map(c);
    // s = f / (1 + f/2), and what the quotient lacks.
    let f = m - c(1.0);
    let under = f.mul_add(c(0.5), c(1.0));
    let under_low = f.mul_add(c(0.5), c(1.0) - under);
    let inverse = under.reciprocal();
    let s = f * inverse;
    let s_low = s.mul_add(-under_low, -s.residue(under, f)) * inverse;
    let [square, square_low] = product(s, s);
    let square = [square, (s + s).mul_add(s_low, square_low)];
    let rest = polynomial(square[0], by_type::<N, &'static [f64]>(&SINGLE, &DOUBLE));
    // s²/80 as a sum of two numbers as well: times an exponent of the result, its rounding would be seen.
    let [eightieth, eightieth_low] = pair(EIGHTIETH);
    let [small, lost] = product(square[0], eightieth);
    let small_low =
        square[0].mul_add(square[0].mul_add(rest, eightieth_low), square[1].mul_add(eightieth, lost));
    let [twelfth, twelfth_low] = pair(TWELFTH);
    let [third, third_low] = sum(twelfth, small);
    let above = times(times([s, s_low], square), [third, third_low + (twelfth_low + small_low)]);
    let [near, near_low] = sum(s, above[0]);
    let [high, low] = pair(LN_2);
    let total = less.mul_add(-high, near);
    // What the sum lost: the product is exact.
    let lost = near - less.mul_add(high, total);
    sum(total, lost + less.mul_add(-low, near_low + (s_low + above[1])))
}

/// Returns the product of `y` and the logarithm of m 2^n.
#[inline(always)]
fn logarithm_of_power<N: Number>(m: N, less: N, y: N) -> Pair<N> {
    let [log, log_low] = logarithm(m, less);
    let [all, all_low] = product(y, log);
    [all, y.mul_add(log_low, all_low)]
}

/// Returns an anchor of `n` and `p` with e^x = p 2^n for a pair `x`.
#[inline(always)]
fn parts<N: Number>([x, small]: Pair<N>) -> (N, N) {
    let [high, low] = by_type::<N, _>(LN_2[0], LN_2[1]).map(|part| x.constant(part));
    let anchor = x.anchored(x.constant(LOG2_E));
    let n = anchor.whole();
    // The first sum is exact.
    let r = n.mul_add(-high, x) + n.mul_add(-low, small);
    (anchor, polynomial(r, by_type::<N, &'static [f64]>(&exp::SINGLE, &exp::DOUBLE)))
}

/// Returns m 2^n, of `m` and `-n`, to the power of `y`.
#[inline(always)]
fn power<N: Number>(m: N, less: N, y: N) -> N {
    let c = |value: f64| y.constant(value);
    let [all, all_low] = logarithm_of_power(m, less, y);
    // Beyond these the result is infinite, or zero.
    let [least, most] = by_type::<N, _>([-104.0, 89.0], [-746.0, 710.0]).map(c);
    let is_out = all.less(least) | most.less(all);
    let all = N::choose(all.less(least), least, at_most(all, most));
    let (anchor, value) = parts([all, N::choose(is_out, c(0.0), all_low)]);
    exp::scaled(value, anchor.whole())
}

/// The largest exponent whose product with a logarithm is finite.
#[inline(always)]
fn most<N: Number>(y: N) -> N {
    y.constant(by_type::<N, _>(1e36, 1e300))
}

/// Returns `-n` of a base m 2^n.
#[inline(always)]
fn inverse_exponent<N: Number>(base: N) -> N {
    base.inverse_exponent(by_type::<N, _>(log::LOWEST[0], log::LOWEST[1]))
}

/// Returns `m` of a base m 2^n.
#[inline(always)]
fn significand<N: Number>(base: N) -> N {
    base.significand(by_type::<N, _>(log::LOWEST[0], log::LOWEST[1]))
}

/// Checks whether the base is no positive normal number, or a very large one, or the result perhaps no normal number.
#[inline(always)]
pub(super) fn is_rare<N: Number>(x: N, y: N) -> N::Truth {
    // |log₂ x| is less than one more than the exponent.
    let size = y.absolute();
    let most = size.mul_add(inverse_exponent(x).absolute(), size);
    log::is_rare(x) | most.is_beyond(y.constant(by_type::<N, _>(124.0, 1020.0)))
}

/// Returns a positive normal number to a power that is a normal number.
#[inline(always)]
pub(super) fn common<N: Number>(x: N, y: N) -> N {
    let (anchor, value) = parts(logarithm_of_power(significand(x), inverse_exponent(x), y));
    value.raised(anchor)
}

/// Checks whether a number that is not negative is whole.
#[inline(always)]
fn is_whole<N: Number>(size: N) -> N::Truth {
    // Rounding serves below this; as far beyond it numbers still have halves, and from twice it on all are whole.
    let limit = size.constant(by_type::<N, _>(4_194_304.0, 2_251_799_813_685_248.0));
    let one = size.constant(1.0);
    let near = N::choose(size.less(limit), size, size - limit);
    near.nearest(one).same(near) | (limit + limit).less(size)
}

pub(super) use self::full as other;

/// Returns a number to a power, with the special values of C99, F.9.4.4.
#[inline(always)]
pub(super) fn full<N: Number>(x: N, y: N) -> N {
    let c = |value: f64| x.constant(value);
    let (least, largest, bits) = by_type::<N, _>(
        (f32::MIN_POSITIVE.into(), f32::MAX.into(), 24_u8),
        (f64::MIN_POSITIVE, f64::MAX, 54),
    );
    let (zero, one, infinity, most) = (c(0.0), c(1.0), c(f64::INFINITY), most(y));
    let (base, size) = (x.absolute(), y.absolute());
    let is_small = base.less(c(least));
    let normal = N::choose(is_small, base * c((1_u64 << bits) as f64), base);
    let less = inverse_exponent(normal) + N::choose(is_small, c(bits.into()), zero);
    let near = N::choose(most.less(size), most.with_sign_of(y), y);
    let value = power(significand(normal), less, near);
    // Zero and infinity as bases.
    let is_falling = y.less(zero);
    let value = N::choose(base.same(zero), N::choose(is_falling, infinity, zero), value);
    let is_endless = c(largest).less(base);
    let value = N::choose(is_endless, N::choose(is_falling, zero, infinity), value);
    // Negative bases: the power has their sign where it is odd.
    let is_negative = one.with_sign_of(x).less(zero);
    let of_negative = N::choose(is_whole(size * c(0.5)), value, N::choose(is_whole(size), -value, value));
    let of_negative =
        N::choose(is_whole(size), of_negative, N::choose(is_endless | base.same(zero), value, c(f64::NAN)));
    let value = N::choose(is_negative, of_negative, value);
    let value = N::choose(x.is_nan() | y.is_nan(), c(f64::NAN), value);
    N::choose(x.same(one) | y.same(zero), one, value)
}

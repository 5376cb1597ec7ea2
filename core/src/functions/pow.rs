//! Powers: `e^(y log x)`, the logarithm and its product with `y` as sums of two numbers, as in SLEEF's `pow` (Shibata
//! and Petrogalli, IEEE TPDS 31 (2020) 1316).

use super::exp;
use super::number::{Number, at_most, by_type, polynomial, product, sum};

/// ln 2, of which the first part times any exponent is exact.
const LN_2: [[f64; 2]; 2] = exp::LN_2;

/// 1/3 and 1/5 as sums of two numbers of the type.
const THIRD: [[f64; 2]; 2] =
    [[0.333_333_343_267_440_8, -9.934_107_758_624_577e-9], [1.0 / 3.0, 1.850_371_707_708_594e-17]];
const FIFTH: [[f64; 2]; 2] =
    [[0.200_000_002_980_232_24, -2.980_232_283_178_452_2e-9], [0.2, -1.110_223_024_625_156_6e-17]];

/// (log((1 + s) / (1 - s)) / 2s - 1 - s²/3 - s⁴/5) / s⁶ of s²: within 2⁻⁴⁰ and 2⁻⁷² of the logarithm (`fpminimax` of
/// Sollya).
const SINGLE: [f64; 3] = [0.142_859_324_812_889_1, 0.110_884_025_692_939_76, 0.098_403_364_419_937_13];
const DOUBLE: [f64; 7] = [
    0.142_857_142_857_165_72,
    0.111_111_111_100_095_4,
    0.090_909_093_022_117_35,
    0.076_922_864_887_568_43,
    0.066_678_799_283_233_16,
    0.058_425_556_486_684_9,
    0.059_551_880_335_867_03,
];

/// A sum of two numbers.
type Pair<N> = [N; 2];

/// Returns the product of two pairs.
#[inline(always)]
fn times<N: Number>(a: Pair<N>, b: Pair<N>) -> Pair<N> {
    let [high, low] = product(a[0], b[0]);
    [high, low + a[0].mul_add(b[1], a[1] * b[0])]
}

/// Returns the sum of two pairs, of which the first is the larger.
#[inline(always)]
fn plus<N: Number>(a: Pair<N>, b: Pair<N>) -> Pair<N> {
    let [high, low] = sum(a[0], b[0]);
    [high, low + (a[1] + b[1])]
}

/// Returns ln(m 2^n) for a significand `m`.
#[inline(always)]
fn logarithm<N: Number>(m: N, n: N) -> Pair<N> {
    let pair = |of: [[f64; 2]; 2]| by_type::<N, _>(of[0], of[1]).map(|part| m.constant(part));
    let f = m - m.constant(1.0);
    let [under, under_low] = sum(m.constant(2.0), f);
    let inverse = m.constant(1.0) / under;
    let s = f * inverse;
    // What the quotient lacks.
    let s_low = (-s.residue(under, f) - s * under_low) * inverse;
    let s = [s, s_low];
    let square = times(s, s);
    let rest = polynomial(square[0], by_type::<N, &'static [f64]>(&SINGLE, &DOUBLE));
    let fifth = plus(pair(FIFTH), [square[0] * rest, m.constant(0.0)]);
    let third = plus(pair(THIRD), times(square, fifth));
    let above = times(s, times(square, third));
    let half = plus(s, above);
    let [high, low] = pair(LN_2);
    let [total, lower] = sum(n * high, half[0] + half[0]);
    sum(total, lower + n.mul_add(low, half[1] + half[1]))
}

/// Returns m 2^n to the power of `y`.
#[inline(always)]
fn power<N: Number>(m: N, n: N, y: N) -> N {
    let c = |value: f64| y.constant(value);
    let [log, log_low] = logarithm(m, n);
    let [all, all_low] = product(y, log);
    let all_low = y.mul_add(log_low, all_low);
    // Beyond these the result is infinite, or zero.
    let [least, most] = by_type::<N, _>([-104.0, 89.0], [-746.0, 710.0]).map(c);
    let is_out = all.less(least) | most.less(all);
    let all = N::choose(all.less(least), least, at_most(all, most));
    exp::of_pair([all, N::choose(is_out, c(0.0), all_low)])
}

/// The largest exponent whose product with a logarithm is finite.
#[inline(always)]
fn most<N: Number>(y: N) -> N {
    y.constant(by_type::<N, _>(1e36, 1e300))
}

/// Checks whether the base is no positive normal number, or the exponent no finite one.
#[inline(always)]
pub(super) fn is_rare<N: Number>(x: N, y: N) -> N::Truth {
    let (least, largest) =
        by_type::<N, _>((f32::MIN_POSITIVE.into(), f32::MAX.into()), (f64::MIN_POSITIVE, f64::MAX));
    let is_rare_base = x.less(x.constant(least)) | x.constant(largest).less(x) | x.is_nan();
    is_rare_base | most(y).less(y.absolute()) | y.is_nan()
}

/// Returns a positive normal number to a finite power.
#[inline(always)]
pub(super) fn common<N: Number>(x: N, y: N) -> N {
    power(x.significand(), x.exponent(), y)
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
    let n = normal.exponent() - N::choose(is_small, c(bits.into()), zero);
    let near = N::choose(most.less(size), most.with_sign_of(y), y);
    let value = power(normal.significand(), n, near);
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

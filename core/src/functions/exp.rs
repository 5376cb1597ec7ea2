//! The exponential functions: `x = n ln 2 + r`, and a polynomial of `r` (Tang, ACM TOMS 15 (1989) 144, without its
//! table; coefficients by `fpminimax` of Sollya).

use std::f64::consts::LOG2_E;

use super::number::{Number, at_most, by_type, polynomial, sum};

/// ln 2, of which the first part times any exponent is exact.
pub(super) const LN_2: [[f64; 2]; 2] = [
    [0.693_145_751_953_125, 1.428_606_765_330_187e-6],
    [0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10],
];

/// e^r for |r| <= 0.3466: within 2⁻²⁷.
pub(super) const SINGLE: [f64; 7] = [
    1.0,
    1.0,
    0.499_999_791_383_743_3,
    0.166_665_181_517_601,
    0.041_671_454_906_463_62,
    0.008_368_954_062_461_853,
    0.001_365_704_345_516_860_5,
];

/// The same within 2⁻⁵⁸.
pub(super) const DOUBLE: [f64; 12] = [
    1.0,
    1.0,
    0.500_000_000_000_001_2,
    0.166_666_666_666_667,
    0.041_666_666_666_518_91,
    0.008_333_333_333_307_22,
    0.001_388_888_894_624_707,
    0.000_198_412_699_173_455_94,
    2.480_149_063_608_836e-5,
    2.755_721_633_628_630_3e-6,
    2.763_105_941_165_715_3e-7,
    2.511_784_958_014_507_7e-8,
];

/// Returns the whole `n` nearest to x / ln 2, and `x - n ln 2` as a sum of two numbers.
#[inline(always)]
fn reduced<N: Number>(x: N) -> (N, [N; 2]) {
    let [high, low] = by_type::<N, _>(LN_2[0], LN_2[1]).map(|part| x.constant(part));
    let n = x.nearest(x.constant(LOG2_E));
    let (first, second) = (n.mul_add(-high, x), n * low);
    let r = first - second;
    (n, [r, (first - r) - second])
}

/// Returns (e^r - 1 - r) / r² for a reduced `r`.
#[inline(always)]
fn tail<N: Number>(r: N) -> N {
    polynomial(r, by_type::<N, &'static [f64]>(SINGLE.split_at(2).1, DOUBLE.split_at(2).1))
}

/// Returns an anchor of `n` and `y` with e^x = y 2^n.
#[inline(always)]
fn parts<N: Number>(x: N) -> (N, N) {
    let [high, low] = by_type::<N, _>(LN_2[0], LN_2[1]).map(|part| x.constant(part));
    let anchor = x.anchored(x.constant(LOG2_E));
    let n = anchor.whole();
    // The inner sum is exact.
    let r = n.mul_add(-low, n.mul_add(-high, x));
    (anchor, polynomial(r, by_type::<N, &'static [f64]>(&SINGLE, &DOUBLE)))
}

/// Checks whether the result is no normal number, or nearly so.
#[inline(always)]
pub(super) fn is_rare<N: Number>(x: N) -> N::Truth {
    x.is_beyond(x.constant(by_type::<N, _>(87.0, 708.0)))
}

/// Returns e^x where the result is a normal number.
#[inline(always)]
pub(super) fn common<N: Number>(x: N) -> N {
    let (anchor, y) = parts(x);
    y.raised(anchor)
}

pub(super) use self::full as other;

/// Returns e^x.
#[inline(always)]
pub(super) fn full<N: Number>(x: N) -> N {
    // Beyond these the result is infinite, or zero.
    let [least, most] = by_type::<N, _>([-104.0, 89.0], [-746.0, 710.0]).map(|end| x.constant(end));
    let x = N::choose(x.less(least), least, x);
    let x = at_most(x, most);
    let (anchor, y) = parts(x);
    N::choose(x.is_nan(), x, scaled(y, anchor.whole()))
}

/// Returns e to the power of a sum of two numbers, of which the second is small, as a sum of two numbers; it is a normal
/// number.
#[inline(always)]
pub(super) fn precise<N: Number>([x, small]: [N; 2]) -> [N; 2] {
    let (n, [r, low]) = reduced(x);
    let [near, rest] = sum(x.constant(1.0), r);
    let above = r * r * tail(r);
    // The small parts times e^r.
    let all = (low + small).mul_add(near + above, above) + rest;
    let power = n.constant(1.0).shifted(n);
    sum(near, all).map(|part| part * power)
}

/// Returns `y * 2^n`, rounded once, for `y` near 1 and an `n` that no power of two in the type may have.
#[inline(always)]
pub(super) fn scaled<N: Number>(y: N, n: N) -> N {
    let half = n.nearest(n.constant(0.5));
    y.shifted(half) * y.constant(1.0).shifted(n - half)
}

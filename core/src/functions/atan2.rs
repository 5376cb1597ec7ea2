//! The angle of a point: the quotient `t` of the smaller coordinate `a` and the larger `b`, or `(a - b) / (a + b)`, as a
//! sum of two numbers, and `k π/4 ± atan t` with a polynomial for `|t| <= 1/2` (fdlibm's `e_atan2.c`, Sun Microsystems,
//! 1993, has other reductions and loses the quotient's rest). Coefficients by the fit of `erf.rs`.

use super::number::{Number, by_type, polynomial, product, sum};

/// π/4 as a sum of two numbers of the type.
const QUARTER: [[f64; 2]; 2] = [
    [0.785_398_185_253_143_3, -2.185_569_414_336_896_4e-8],
    [std::f64::consts::FRAC_PI_4, 3.061_616_997_868_383e-17],
];

/// (atan(t) / t - 1) / t² of t²: within 2⁻³¹ and 2⁻⁶² of the angle.
const SINGLE: [f64; 6] = [
    -0.333_333_283_662_796,
    0.199_995_577_335_357_67,
    -0.142_731_904_983_520_5,
    0.109_492_205_083_370_21,
    -0.080_123_692_750_930_79,
    0.039_090_111_851_692_2,
];
const DOUBLE: [f64; 13] = [
    -0.333_333_333_333_333_15,
    0.199_999_999_999_938_4,
    -0.142_857_142_850_086_4,
    0.111_111_110_706_381_37,
    -0.090_909_077_238_602_27,
    0.076_922_779_922_116_35,
    -0.066_662_293_668_850_68,
    0.058_778_522_904_285_195,
    -0.052_302_551_780_174_4,
    0.045_903_334_451_446_8,
    -0.037_139_732_861_629_29,
    0.023_684_138_845_183_677,
    -0.008_383_605_786_679_906,
];

/// The coordinates' sizes, and whether the second argument's is the smaller.
struct Octant<N: Number> {
    small: N,
    large: N,
    is_steep: N::Truth,
}

#[inline(always)]
fn octant<N: Number>(y: N, x: N) -> Octant<N> {
    let (height, width) = (y.absolute(), x.absolute());
    let is_steep = width.less(height);
    let [small, large] = [N::choose(is_steep, width, height), N::choose(is_steep, height, width)];
    Octant { small, large, is_steep }
}

/// A quotient below this is the angle: its cube is nothing beside it.
#[inline(always)]
fn flat<N: Number>(x: N) -> N {
    x.constant(by_type::<N, _>(2.0_f64.powi(-30), 2.0_f64.powi(-60)))
}

/// Checks whether a coordinate is no number, nothing beside the other, or the larger one far from 1.
#[inline(always)]
pub(super) fn is_rare<N: Number>(y: N, x: N) -> N::Truth {
    let [least, most] = [-50, 50].map(|power| y.constant(2.0_f64.powi(power)));
    let of = octant(y, x);
    of.small.less(of.large * flat(x)) | of.large.less(least) | most.less(of.large) | y.is_nan() | x.is_nan()
}

/// Returns whether the angle of two positive numbers near 1, of which the first is not the larger, is reduced by π/4,
/// and its tangent then.
#[inline(always)]
fn tangent<N: Number>(small: N, large: N) -> (N::Truth, [N; 2]) {
    let is_far = (large * large.constant(0.5)).less(small);
    let [total, total_low] = sum(large, small);
    let zero = large.constant(0.0);
    // The difference is exact.
    let above = N::choose(is_far, small - large, small);
    let under = N::choose(is_far, total, large);
    let under_low = N::choose(is_far, total_low, zero);
    let inverse = under.reciprocal();
    let t = above * inverse;
    // What the quotient lacks.
    (is_far, [t, (-t.residue(under, above) - t * under_low) * inverse])
}

/// Returns the angle of a point whose octant and tangent are known.
#[inline(always)]
fn turned<N: Number>(y: N, x: N, is_steep: N::Truth, is_far: N::Truth, [t, t_low]: [N; 2]) -> N {
    let c = |value: f64| y.constant(value);
    let is_left = c(1.0).with_sign_of(x).less(c(0.0));
    let quarters = N::choose(is_far, c(1.0), c(0.0));
    let quarters = N::choose(is_steep, c(2.0) - quarters, quarters);
    let quarters = N::choose(is_left, c(4.0) - quarters, quarters);
    let square = t * t;
    let low = (t * square).mul_add(polynomial(square, by_type::<N, &'static [f64]>(&SINGLE, &DOUBLE)), t_low);
    let [t, low] = [t, low].map(|part| {
        let part = N::choose(is_steep, -part, part);
        N::choose(is_left, -part, part)
    });
    let [quarter, quarter_low] = by_type::<N, _>(QUARTER[0], QUARTER[1]).map(c);
    let [angle, angle_low] = product(quarters, quarter);
    let [value, rest] = sum(angle, t);
    (value + (rest + (quarters.mul_add(quarter_low, angle_low) + low))).with_sign_of(y)
}

/// Returns the angle of a point whose coordinates are neither small nor large.
#[inline(always)]
pub(super) fn common<N: Number>(y: N, x: N) -> N {
    let of = octant(y, x);
    let (is_far, t) = tangent(of.small, of.large);
    turned(y, x, of.is_steep, is_far, t)
}

pub(super) use self::full as other;

/// Returns the angle of a point, with the special values of C99, F.9.1.4.
#[inline(always)]
pub(super) fn full<N: Number>(y: N, x: N) -> N {
    let c = |value: f64| y.constant(value);
    let (zero, one) = (c(0.0), c(1.0));
    let largest = c(by_type::<N, _>(f32::MAX.into(), f64::MAX));
    let of = octant(y, x);
    // Points at infinity and zero as points at 1.
    let small = N::choose(largest.less(of.small), one, N::choose(largest.less(of.large), zero, of.small));
    let large = N::choose(largest.less(of.large) | of.large.same(zero), one, of.large);
    let quotient = small / large;
    let is_flat = quotient.less(flat(x));
    // Both times the power of two that brings the larger near 1: two factors, as one could be subnormal.
    let (least, scale) = by_type::<N, _>((-100, 30), (-900, 200));
    let factor = N::choose(large.less(c(2.0_f64.powi(least))), c(2.0_f64.powi(scale)), one);
    let [small, large] = [small, large].map(|part| part * factor);
    let less = large.inverse_exponent(1.0);
    let half = less.nearest(c(0.5));
    let [first, second] = [half, less - half].map(|power| one.shifted(power));
    let [small, large] = [small, large].map(|part| part * first * second);
    let (is_far, [t, t_low]) = tangent(small, large);
    let t = [N::choose(is_flat, quotient, t), N::choose(is_flat, zero, t_low)];
    let value = turned(y, x, of.is_steep, is_far, t);
    N::choose(y.is_nan() | x.is_nan(), c(f64::NAN), value)
}

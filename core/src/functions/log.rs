//! The logarithms: `x = m 2^n` with `m` near 1, and a polynomial of `s = (m - 1) / (m + 1)` in f64, as in fdlibm's
//! `e_log.c` (Sun Microsystems, 1993), or of `m - 1` in f32; coefficients by `fpminimax` of Sollya.

use super::exp::LN_2;
use super::number::{Number, by_type, polynomial};
use crate::real::DType;

/// (log(1 + f) - f + f²/2) / f³ for |f| <= 1/3: within 2⁻²⁷ of the logarithm.
const SINGLE: [f64; 8] = [
    0.333_332_151_174_545_3,
    -0.249_997_973_442_077_64,
    0.200_104_460_120_201_1,
    -0.166_805_058_717_727_66,
    0.140_053_048_729_896_55,
    -0.121_839_717_030_525_21,
    0.139_869_153_499_603_27,
    -0.128_930_404_782_295_23,
];

/// (log((1 + s) / (1 - s)) / s - 2) / s², of s², for |s| <= 0.1716: within 2⁻⁵⁹ of the logarithm.
const DOUBLE: [f64; 7] = [
    0.666_666_666_666_673_4,
    0.399_999_999_994_170_74,
    0.285_714_287_418_838_6,
    0.222_221_986_226_504_2,
    0.181_835_618_492_639_1,
    0.153_141_118_806_386_45,
    0.147_953_539_078_604_76,
];

/// Returns ln(m 2^n) for a significand `m`, and what `extra` adds to it, which is small.
#[inline(always)]
pub(super) fn of_parts<N: Number>(m: N, n: N, extra: Option<N>) -> N {
    let [high, low] = by_type::<N, _>(LN_2[0], LN_2[1]).map(|part| m.constant(part));
    let f = m - m.constant(1.0);
    let low = extra.map_or(n * low, |extra| n.mul_add(low, extra));
    if N::TYPE == DType::F32 {
        let square = f * f;
        let rest = f.mul_add(polynomial(f, &SINGLE), m.constant(-0.5));
        return n.mul_add(high, f + square.mul_add(rest, low));
    }
    let s = f / (f + m.constant(2.0));
    let square = s * s;
    let half = m.constant(0.5) * f * f;
    let rest = s.mul_add(square.mul_add(polynomial(square, &DOUBLE), half), low);
    n.mul_add(high, f - (half - rest))
}

/// Checks whether the argument is no positive normal number.
#[inline(always)]
pub(super) fn is_rare<N: Number>(x: N) -> N::Truth {
    let (least, most) =
        by_type::<N, _>((f32::MIN_POSITIVE.into(), f32::MAX.into()), (f64::MIN_POSITIVE, f64::MAX));
    x.less(x.constant(least)) | x.constant(most).less(x) | x.is_nan()
}

/// Returns ln x of a positive normal number.
#[inline(always)]
pub(super) fn common<N: Number>(x: N) -> N {
    of_parts(x.significand(), x.exponent(), None)
}

/// Returns ln x.
#[inline(always)]
pub(super) fn full<N: Number>(x: N) -> N {
    let (least, most, bits) = by_type::<N, _>(
        (f32::MIN_POSITIVE.into(), f32::MAX.into(), 24_u8),
        (f64::MIN_POSITIVE, f64::MAX, 54),
    );
    let is_small = x.less(x.constant(least));
    let grown = x * x.constant((1_u64 << bits) as f64);
    let normal = N::choose(is_small, grown, x);
    let n = normal.exponent() - N::choose(is_small, x.constant(bits.into()), x.constant(0.0));
    let value = of_parts(normal.significand(), n, None);
    let value = N::choose(x.constant(most).less(x), x, value);
    let zero = x.constant(0.0);
    let value = N::choose(x.same(zero), x.constant(f64::NEG_INFINITY), value);
    N::choose(x.less(zero) | x.is_nan(), x.constant(f64::NAN), value)
}

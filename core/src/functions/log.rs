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

/// The lowest significands: those of f64 are about √½.
pub(super) const LOWEST: [f64; 2] = [2.0 / 3.0, f64::from_bits(0x3fe6_a09e_0000_0000)];

/// The coefficients of log(1 + f), in f32 and f64.
pub(super) type Coefficients = (&'static [f64], &'static [f64]);

/// Returns ln((1 + f) 2^n) of `f` and `-n`.
#[inline(always)]
pub(super) fn of_parts<N: Number>(f: N, less: N, (single, double): Coefficients) -> N {
    let [high, low] = by_type::<N, _>(LN_2[0], LN_2[1]).map(|part| f.constant(part));
    // Signs are such that of a negative zero, with 0 as exponent, remains one.
    if N::TYPE == DType::F32 {
        let half = f.mul_add(-polynomial(f, single), f.constant(0.5));
        let below = (f * f).mul_add(half, less * low);
        return less.mul_add(-high, f - below);
    }
    let under = f + f.constant(2.0);
    let inverse = under.reciprocal();
    let near = f * inverse;
    let s = near.mul_add(-under, f).mul_add(inverse, near);
    let square = s * s;
    let below = s.mul_add(square.mul_add(-polynomial(square, double), f), less * low);
    // The exponent's part is exact, so that what its sum with f lost is known.
    let total = less.mul_add(-high, f);
    let lost = f - less.mul_add(high, total);
    total + (lost - below)
}

/// Checks whether the argument is no positive normal number, or a very large one.
#[inline(always)]
pub(super) fn is_rare<N: Number>(x: N) -> N::Truth {
    // The largest subnormal number, and a large one.
    let [least, most] = by_type::<N, _>(
        [f64::from(f32::from_bits(0x7f_ffff)), f64::from(f32::MAX)],
        [f64::from_bits(0xf_ffff_ffff_ffff), 2.0_f64.powi(1000)],
    );
    x.is_outside(x.constant(least), x.constant(most))
}

/// Returns ln x of a positive normal number.
#[inline(always)]
pub(super) fn common<N: Number>(x: N) -> N {
    let lowest = by_type::<N, _>(LOWEST[0], LOWEST[1]);
    of_parts(x.significand(lowest) - x.constant(1.0), x.inverse_exponent(lowest), (&SINGLE, &DOUBLE))
}

pub(super) use self::full as other;

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
    let lowest = by_type::<N, _>(LOWEST[0], LOWEST[1]);
    let less =
        normal.inverse_exponent(lowest) + N::choose(is_small, x.constant(bits.into()), x.constant(0.0));
    let value = of_parts(normal.significand(lowest) - x.constant(1.0), less, (&SINGLE, &DOUBLE));
    let value = N::choose(x.constant(most).less(x), x, value);
    let zero = x.constant(0.0);
    let value = N::choose(x.same(zero), x.constant(f64::NEG_INFINITY), value);
    N::choose(x.less(zero) | x.is_nan(), x.constant(f64::NAN), value)
}

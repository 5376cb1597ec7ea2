//! `e^x - 1`: of `e^x = 2^n e^r`, both less one; the sum of the first two terms of `e^r - 1` is not rounded
//! (coefficients by `fpminimax` of Sollya).

use super::exp::{self, reduced};
use super::number::{Number, by_type, polynomial, product, sum};

pub(super) use super::exp::is_rare;

/// (e^r - 1 - r - r²/2) / r³ for |r| <= 0.3466: within 2⁻²⁸ and 2⁻⁵⁷ of e^r.
const SINGLE: [f64; 4] = [
    0.166_665_211_319_923_4,
    0.041_666_388_511_657_715,
    0.008_368_679_322_302_341,
    0.001_394_186_867_401_003_8,
];
const DOUBLE: [f64; 9] = [
    0.166_666_666_666_666_88,
    0.041_666_666_666_602_83,
    0.008_333_333_333_312_999,
    0.001_388_888_892_725_266_3,
    0.000_198_412_699_068_215_04,
    2.480_150_811_477_083_5e-5,
    2.755_722_443_622_209e-6,
    2.762_540_952_772_466e-7,
    2.511_560_018_852_711_4e-8,
];

/// Returns e^x - 1 where e^x is a normal number.
#[inline(always)]
pub(super) fn common<N: Number>(x: N) -> N {
    let c = |value: f64| x.constant(value);
    let (n, [r, low]) = reduced(x);
    let [square, square_low] = product(r, r);
    let [first, rest] = sum(r, c(0.5) * square);
    let tail = polynomial(r, by_type::<N, &'static [f64]>(&SINGLE, &DOUBLE));
    let tail = (r * square).mul_add(tail, c(0.5).mul_add(square_low, low)) + rest;
    let [above, above_low] = sum(first, tail);
    let power = c(1.0).shifted(n);
    let whole = power - c(1.0);
    // Where the power is so large that its sum with 1 is rounded.
    let lost = (power - whole) - c(1.0);
    let [value, value_low] = sum(whole, power * above);
    let value = value + (value_low + power.mul_add(above_low, lost));
    N::choose(x.same(c(0.0)), x, value)
}

/// Returns e^x - 1.
#[inline(always)]
pub(super) fn full<N: Number>(x: N) -> N {
    N::choose(is_rare(x), exp::full(x) - x.constant(1.0), common(x))
}

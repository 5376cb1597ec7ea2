//! `e^x - 1` from `x = n ln 2 + r`: `2^n ((r - (2^-n - 1)) + (e^r - 1 - r))`, where the first sum is not rounded, and `e^r`
//! is from 3/4 to 3/2, so that little is lost where 1 is subtracted. Coefficients by the fit of `erf.rs`.

use std::f64::consts::LOG2_E;

use super::exp;
use super::number::{Number, by_type, polynomial, sum};

/// (e^r - 1 - r) / r² from log 3/4 to log 3/2: within 2⁻³¹ and 2⁻⁶⁰ of e^r - 1.
const TAIL_SINGLE: [f64; 6] = [
    0.5,
    0.166_666_701_436_042_79,
    0.041_666_578_501_462_936,
    0.008_332_013_152_539_73,
    0.001_391_870_318_911_969_7,
    0.000_209_578_443_900_682_03,
];
const TAIL_DOUBLE: [f64; 11] = [
    0.5,
    0.166_666_666_666_666_6,
    0.041_666_666_666_667_504,
    0.008_333_333_333_339_805,
    0.001_388_888_888_816_168,
    0.000_198_412_698_234_353_7,
    2.480_158_946_673_612_3e-5,
    2.755_732_928_999_440_6e-6,
    2.755_461_634_467_715_6e-7,
    2.506_923_736_312_316e-8,
    2.209_794_120_006_105_7e-9,
];

/// Checks whether the power of two is so large or small that 1 beside it, or it beside 1, is rounded.
#[inline(always)]
pub(super) fn is_rare<N: Number>(x: N) -> N::Truth {
    x.is_beyond(x.constant(by_type::<N, _>(16.875, 36.875)))
}

/// Returns e^x - 1 where the power of two is not rare.
#[inline(always)]
pub(super) fn common<N: Number>(x: N) -> N {
    let c = |value: f64| x.constant(value);
    let [high, low] = by_type::<N, _>(exp::LN_2[0], exp::LN_2[1]).map(c);
    // r is around half of log 9/8. A little to either side, results are below a power of two with the errors of one above.
    let anchor = (x - c(0.058_891_517_828_191_73)).anchored(c(LOG2_E));
    let n = anchor.whole();
    // Exact, as in `exp.rs`.
    let first = n.mul_add(-high, x);
    let r = n.mul_add(-low, first);
    // (e^x - 1) / 2^n = (r - below) + (e^r - 1 - r). Signs are such that of a negative zero remains one.
    let below = c(1.0).lowered(anchor) - c(1.0);
    let sum = first - below;
    let lost = n.mul_add(low, (sum + below) - first);
    let tail = polynomial(r, by_type::<N, &'static [f64]>(&TAIL_SINGLE, &TAIL_DOUBLE));
    (sum - (r * r).mul_add(-tail, lost)).raised(anchor)
}

/// Returns e^x - 1 where e^x is a normal number, far from 1.
#[inline(always)]
fn careful<N: Number>(x: N) -> N {
    let (one, zero) = (x.constant(1.0), x.constant(0.0));
    let [power, low] = exp::precise([x, zero]);
    let is_large = zero.less(x);
    let [value, rest] = sum(N::choose(is_large, power, -one), N::choose(is_large, -one, power));
    value + (rest + low)
}

/// Returns e^x - 1 of a rare argument.
#[inline(always)]
pub(super) fn other<N: Number>(x: N) -> N {
    N::choose(exp::is_rare(x), exp::full(x) - x.constant(1.0), careful(x))
}

/// Returns e^x - 1.
#[inline(always)]
pub(super) fn full<N: Number>(x: N) -> N {
    N::choose(is_rare(x), other(x), common(x))
}

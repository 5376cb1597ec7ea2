//! `log(1 + x)`: of `1 + x = (1 + f) 2^n` the exponent comes from the rounded sum, and `f = x 2^-n - (1 - 2^-n)` is exact,
//! or what it lacks is small beside the result, because significands begin at 3/4. Coefficients by the fit of `erf.rs`.

use super::log::{self, Coefficients};
use super::number::{Number, by_type};

/// The lowest significand: below 1/2 the exponent is 0, and from there on numbers have no more digits than `f` may have.
const LOWEST: f64 = 0.75;

/// (log(1 + f) - f + f²/2) / f³ for -1/4 <= f <= 1/2, and (log((1 + s) / (1 - s)) / s - 2) / s², of s², for |s| <= 1/5:
/// within 2⁻²⁷ and 2⁻⁶² of the logarithm.
const COEFFICIENTS: Coefficients = (
    &[
        0.333_334_505_558_013_9,
        -0.250_001_043_081_283_57,
        0.199_908_241_629_600_52,
        -0.166_469_871_997_833_25,
        0.144_781_783_223_152_16,
        -0.131_639_286_875_724_8,
        0.104_701_623_320_579_53,
        -0.045_127_443_969_249_725,
    ],
    &[
        0.666_666_666_666_666,
        0.400_000_000_000_563_85,
        0.285_714_285_559_334_4,
        0.222_222_242_823_356_7,
        0.181_816_668_061_542_79,
        0.153_910_797_470_894_8,
        0.131_741_617_490_725_47,
        0.138_391_291_966_883_74,
    ],
);

/// Checks whether the argument is not above -1, or so large that its inverse may be subnormal.
#[inline(always)]
pub(super) fn is_rare<N: Number>(x: N) -> N::Truth {
    x.is_outside(x.constant(-1.0), x.constant(by_type::<N, _>(2.0_f64.powi(125), 2.0_f64.powi(1000))))
}

/// Returns log(1 + x) of a number above -1 that is not very large.
#[inline(always)]
pub(super) fn common<N: Number>(x: N) -> N {
    let one = x.constant(1.0);
    let total = one + x;
    let power = total.inverse_power(LOWEST);
    log::of_parts(x.mul_add(power, -(one - power)), total.inverse_exponent(LOWEST), COEFFICIENTS)
}

/// Returns log(1 + x) of a rare argument.
#[inline(always)]
pub(super) fn other<N: Number>(x: N) -> N {
    N::choose(x.is_nan(), x, log::full(x + x.constant(1.0)))
}

/// Returns log(1 + x).
#[inline(always)]
pub(super) fn full<N: Number>(x: N) -> N {
    N::choose(is_rare(x), other(x), common(x))
}

//! The hyperbolic tangent: a polynomial below 1, and `1 - 2 / (e^2x + 1)` beyond, where the errors of the quotient are
//! small beside the difference. Which of the two it is decides what is called rare.

use std::f64::consts::{LN_2, LOG2_E};

use super::exp;
use super::number::{Number, at_most, by_type, polynomial};
use crate::real::DType;

/// (tanh x - x) / x³ of x², for |x| <= 1: within 2⁻³⁰ and 2⁻⁵⁶ of the tangent (by the fit of `erf.rs`).
const SINGLE: [f64; 8] = [
    -0.333_333_283_662_796,
    0.133_331_820_368_766_78,
    -0.053_951_773_792_505_264,
    0.021_779_967_471_957_207,
    -0.008_585_669_100_284_576,
    0.003_068_087_389_692_664,
    -0.000_834_991_573_356_092,
    0.000_119_999_123_853_631_32,
];
const DOUBLE: [f64; 15] = [
    -0.333_333_333_333_329_43,
    0.133_333_333_332_927_32,
    -0.053_968_253_953_387_696,
    0.021_869_488_259_256_054,
    -0.008_863_232_446_647_941,
    0.003_592_105_576_791_243,
    -0.001_455_721_207_608_964_4,
    0.000_589_618_343_627_463_9,
    -0.000_238_043_156_615_783,
    9.476_711_458_126_347e-5,
    -3.608_549_613_918_42e-5,
    1.234_049_284_042_309_6e-5,
    -3.419_268_402_812_605e-6,
    6.543_752_069_206_206e-7,
    -6.267_733_400_124_525e-8,
];

/// The coefficients of half of e^2r.
const HALF_SINGLE: [f64; exp::SINGLE.len()] = half_of_twice(exp::SINGLE);
const HALF_DOUBLE: [f64; exp::DOUBLE.len()] = half_of_twice(exp::DOUBLE);

/// Returns the coefficients of half of a polynomial's value for twice its argument.
const fn half_of_twice<const LEN: usize>(mut coefficients: [f64; LEN]) -> [f64; LEN] {
    let (mut power, mut at) = (0.5, 0);
    while at < LEN {
        coefficients[at] *= power;
        power *= 2.0;
        at += 1;
    }
    coefficients
}

/// Checks whether the argument is below 1, or no number.
#[inline(always)]
pub(super) fn is_rare<N: Number>(x: N) -> N::Truth {
    x.is_within(x.constant(1.0))
}

/// Returns the hyperbolic tangent of a number of at least 1.
#[inline(always)]
pub(super) fn common<N: Number>(x: N) -> N {
    let c = |value: f64| x.constant(value);
    // Beyond, the tangent is 1 once it is rounded.
    let size = at_most(x.absolute(), c(by_type::<N, _>(10.0, 22.0)));
    let anchor = size.anchored(c(2.0 * LOG2_E));
    let n = anchor.whole();
    let r = match N::TYPE {
        // What the constant lacks is near enough to nothing.
        DType::F32 => n.mul_add(c(-0.5 * LN_2), size),
        DType::F64 => {
            let [high, low] = exp::LN_2[1].map(|part| c(-0.5 * part));
            n.mul_add(low, n.mul_add(high, size))
        }
    };
    let half = polynomial(r, by_type::<N, &'static [f64]>(&HALF_SINGLE, &HALF_DOUBLE)).raised(anchor);
    (c(1.0) - (half + c(0.5)).reciprocal()).with_sign_of(x)
}

/// Returns the hyperbolic tangent of a number of at most 1.
#[inline(always)]
pub(super) fn other<N: Number>(x: N) -> N {
    let square = x * x;
    let factor = square * polynomial(square, by_type::<N, &'static [f64]>(&SINGLE, &DOUBLE));
    // The sum of a negative zero and what it lacks is a positive one.
    N::choose(x.same(x.constant(0.0)), x, factor.mul_add(x, x))
}

/// Returns the hyperbolic tangent.
#[inline(always)]
pub(super) fn full<N: Number>(x: N) -> N {
    N::choose(is_rare(x), other(x), common(x))
}

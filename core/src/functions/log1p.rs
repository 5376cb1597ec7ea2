//! `log(1 + x)`: the logarithm of the rounded sum, and what the sum lost divided by it, as in fdlibm's `s_log1p.c` (Sun
//! Microsystems, 1993).

use super::log;
use super::number::{Number, by_type};

/// Checks whether the argument is not above -1, or not finite.
#[inline(always)]
pub(super) fn is_rare<N: Number>(x: N) -> N::Truth {
    let most = x.constant(by_type::<N, _>(f32::MAX.into(), f64::MAX));
    let least = x.constant(-1.0);
    x.less(least) | x.same(least) | most.less(x) | x.is_nan()
}

/// Returns log(1 + x) of a finite number above -1.
#[inline(always)]
pub(super) fn common<N: Number>(x: N) -> N {
    let one = x.constant(1.0);
    let total = one + x;
    let second = total - one;
    let lost = (one - (total - second)) + (x - second);
    let value = log::of_parts(total.significand(), total.exponent(), Some(lost / total));
    N::choose(x.same(x.constant(0.0)), x, value)
}

/// Returns log(1 + x).
#[inline(always)]
pub(super) fn full<N: Number>(x: N) -> N {
    let value = N::choose(is_rare(x), log::full(x + x.constant(1.0)), common(x));
    N::choose(x.is_nan(), x, value)
}

//! The cube root: `x^(-1/3)` from the bits of `x`, a polynomial of what that lacks, and Newton's step for the root with the
//! remainder of its cube (as Kahan and Bindel, 1991), of the third order in f64. Coefficients by the fit of `erf.rs`.

use super::number::{Number, by_type, polynomial};
use crate::real::DType;

/// (1 - d)^(-1/3) for |d| <= 0.1025: within 2⁻¹⁸ and 2⁻²³.
const SINGLE: [f64; 4] =
    [0.999_997_973_442_077_6, 0.333_328_425_884_246_8, 0.223_749_458_789_825_44, 0.174_563_229_084_015_5];
const DOUBLE: [f64; 5] = [
    1.000_000_005_000_502_2,
    0.333_328_975_684_807_4,
    0.222_214_536_773_889_08,
    0.174_493_574_505_435_12,
    0.145_866_360_090_810_75,
];

/// Between these, powers of two, no step of the formula is subnormal, or infinite.
const LIMITS: [[i32; 2]; 2] = [[-100, 127], [-960, 1000]];

#[inline(always)]
fn limits<N: Number>(x: N) -> [N; 2] {
    by_type::<N, _>(LIMITS[0], LIMITS[1]).map(|power| x.constant(2.0_f64.powi(power)))
}

/// Checks whether the argument is outside of the limits of the formula.
#[inline(always)]
pub(super) fn is_rare<N: Number>(x: N) -> N::Truth {
    let [least, most] = limits(x);
    x.is_within(least) | x.is_beyond(most)
}

/// Returns the cube root of a number inside the limits.
#[inline(always)]
pub(super) fn common<N: Number>(x: N) -> N {
    let c = |value: f64| x.constant(value);
    let near = x.near_inverse_cube_root();
    let off = (near * near).mul_add(-(x * near), c(1.0));
    let inverse = near * polynomial(off, by_type::<N, &'static [f64]>(&SINGLE, &DOUBLE));
    let square = inverse * inverse;
    let near = x * square;
    let rest = (near * near).mul_add(-near, x);
    let third = match N::TYPE {
        DType::F32 => c(1.0 / 3.0),
        DType::F64 => (rest * (square * inverse)).mul_add(c(2.0 / 9.0), c(1.0 / 3.0)),
    };
    (rest * square).mul_add(third, near)
}

pub(super) use self::full as other;

/// Returns the cube root.
#[inline(always)]
pub(super) fn full<N: Number>(x: N) -> N {
    let c = |value: f64| x.constant(value);
    let [least, most] = limits(x);
    // Powers of two that are multiples of three, and exact.
    let (bits, largest) = by_type::<N, _>((48, f64::from(f32::MAX)), (162, f64::MAX));
    let power = |sign: i32| c(2.0_f64.powi(sign * bits));
    let third = |sign: i32| c(2.0_f64.powi(sign * bits / 3));
    let size = x.absolute();
    let (is_small, is_large) = (size.less(least), most.less(size));
    let choose = |small: N, large: N, other: N| N::choose(is_small, small, N::choose(is_large, large, other));
    let value = common(choose(x * power(1), x * power(-1), x)) * choose(third(-1), third(1), c(1.0));
    let is_itself = size.same(c(0.0)) | c(largest).less(size) | x.is_nan();
    N::choose(is_itself, x, value)
}

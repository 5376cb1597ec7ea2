//! The cube root: a polynomial for `m^(-1/3)`, a step of third order, and one of Newton's with the exact remainder (as
//! Kahan and Bindel, 1991; coefficients by `remez` of Sollya).

use super::number::{Number, by_type, polynomial, product};

/// m^(-1/3) for a significand `m`: within 2⁻¹⁴.
const INVERSE: [f64; 5] = [
    1.893_415_451_049_804_7,
    -1.934_509_515_762_329,
    1.664_266_109_466_552_7,
    -0.766_126_275_062_561,
    0.142_935_812_473_297_12,
];

/// Checks whether the argument is no normal number.
#[inline(always)]
pub(super) fn is_rare<N: Number>(x: N) -> N::Truth {
    let (least, most) =
        by_type::<N, _>((f32::MIN_POSITIVE.into(), f32::MAX.into()), (f64::MIN_POSITIVE, f64::MAX));
    let size = x.absolute();
    size.less(x.constant(least)) | x.constant(most).less(size) | x.is_nan()
}

/// Returns the cube root of a positive normal number.
#[inline(always)]
fn root<N: Number>(x: N) -> N {
    let c = |value: f64| x.constant(value);
    let n = x.exponent();
    let third = n.nearest(c(1.0 / 3.0));
    // -1, 0 or 1.
    let left = third.mul_add(c(-3.0), n);
    let m = x.significand();
    let a = m.shifted(left);
    let two = c(0.793_700_525_984_099_8);
    let half = c(1.259_921_049_894_873_2);
    let scale = N::choose(c(0.5).less(left), two, N::choose(left.less(c(-0.5)), half, c(1.0)));
    let inverse = polynomial(m, &INVERSE) * scale;
    let cube = inverse * inverse * inverse;
    let off = a.mul_add(-cube, c(1.0));
    let inverse = (inverse * off).mul_add(off.mul_add(c(2.0 / 9.0), c(1.0 / 3.0)), inverse);
    let square = inverse * inverse;
    let near = a * square;
    // The remainder of its cube.
    let [near_square, low] = product(near, near);
    let [near_cube, lower] = product(near_square, near);
    let rest = ((a - near_cube) - lower) - low * near;
    (rest * square).mul_add(c(1.0 / 3.0), near).shifted(third)
}

/// Returns the cube root of a normal number.
#[inline(always)]
pub(super) fn common<N: Number>(x: N) -> N {
    root(x.absolute()).with_sign_of(x)
}

/// Returns the cube root.
#[inline(always)]
pub(super) fn full<N: Number>(x: N) -> N {
    // The powers of two are multiples of three.
    let (least, most, bits) = by_type::<N, _>(
        (f32::MIN_POSITIVE.into(), f32::MAX.into(), 24_u8),
        (f64::MIN_POSITIVE, f64::MAX, 54),
    );
    let size = x.absolute();
    let is_small = size.less(x.constant(least));
    let value = root(N::choose(is_small, size * x.constant((1_u64 << bits) as f64), size));
    let value = N::choose(is_small, value * x.constant((-f64::from(bits) / 3.0).exp2()), value);
    let is_itself = size.same(x.constant(0.0)) | x.constant(most).less(size) | x.is_nan();
    N::choose(is_itself, x, value.with_sign_of(x))
}

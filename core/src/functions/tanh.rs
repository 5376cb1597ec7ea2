//! The hyperbolic tangent: a polynomial near 0, and `1 - 2 / (e^2x + 1)` with the rest of each rounding.

pub(super) use self::common as full;
use super::exp;
pub(super) use super::number::never as is_rare;
use super::number::{Number, at_most, by_type, polynomial, sum};

/// (tanh x - x) / x³ of x², for |x| <= 1/2: within 2⁻³¹ and 2⁻⁵⁸ of the tangent (`fpminimax` of Sollya).
const SINGLE: [f64; 5] = [
    -0.333_333_283_662_796,
    0.133_330_106_735_229_5,
    -0.053_904_063_999_652_86,
    0.021_319_011_226_296_425,
    -0.006_679_538_171_738_386,
];
const DOUBLE: [f64; 10] = [
    -0.333_333_333_333_331_65,
    0.133_333_333_333_004_23,
    -0.053_968_253_945_963_46,
    0.021_869_487_787_405_5,
    -0.008_863_221_043_516_589,
    0.003_591_954_038_604_832_5,
    -0.001_454_490_284_512_505_3,
    0.000_583_305_135_752_084_3,
    -0.000_217_839_517_411_109_5,
    5.680_735_283_470_077_4e-5,
];

/// Returns the hyperbolic tangent.
#[inline(always)]
pub(super) fn common<N: Number>(x: N) -> N {
    let c = |value: f64| x.constant(value);
    let square = x * x;
    let small = (square * x).mul_add(polynomial(square, by_type::<N, &'static [f64]>(&SINGLE, &DOUBLE)), x);
    let size = x.absolute();
    // Beyond, the tangent is 1 once it is rounded.
    let most = c(by_type::<N, _>(10.0, 22.0));
    let near = at_most(size, most);
    let [e, e_low] = exp::precise([near + near, c(0.0)]);
    let [under, rest] = sum(e, c(1.0));
    let under_low = rest + e_low;
    let part = c(2.0) / under;
    // What the quotient lacks: the remainder divided by twice the quotient's reciprocal.
    let part_low = (-part.residue(under, c(2.0)) - part * under_low) * (part * c(0.5));
    let [value, rest] = sum(c(1.0), -part);
    let large = value + (rest - part_low);
    N::choose(size.less(c(0.5)), small, large).with_sign_of(x)
}

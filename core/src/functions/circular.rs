//! Sine and cosine: `x = n π/2 + r`, and fdlibm's polynomials of `r` (`k_sin.c` and `k_cos.c`, Sun Microsystems, 1993;
//! coefficients by `fpminimax` of Sollya).
//!
//! Up to some size of `x` the multiples of π/2 are subtracted in three parts (Cody and Waite, 1980): the first rounded to
//! the type, because its difference with `x` is exact, the second so short that `n` times it is. Beyond, only those
//! digits of 2/π count that matter for `x` modulo 2π (Payne and Hanek, SIGNUM Newsletter 18 (1983) 19): `x` and 2/π are
//! whole digits in a base whose products are exact.

use super::number::{Number, by_type, polynomial, product, sum};

/// π/2 in parts: the number of the type below it, one of 14 bits in f32 and of 33 in f64, and the rest.
const PARTS: [[f64; 3]; 2] = [
    [1.570_796_251_296_997, 7.549_533_620_476_723e-8, 2.563_344_068_257_089_6e-12],
    [std::f64::consts::FRAC_PI_2, 6.123_233_995_384_61e-17, 3.521_559_865_183_2e-27],
];

/// π/2 as a sum of two numbers of the type.
const HALF_PI: [[f64; 2]; 2] = [
    [1.570_796_370_506_286_6, -4.371_138_828_673_793e-8],
    [std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17],
];

/// The largest arguments whose multiples of π/2 are exact in parts.
const MOST: [f64; 2] = [1500.0, 262_144.0];

/// (sin r - r) / r³ of r², for |r| <= 0.7855: within 2⁻³² and 2⁻⁵⁷ of the sine.
const SINE: ([f64; 4], [f64; 6]) = (
    [
        -0.166_666_671_633_720_4,
        0.008_333_371_952_176_094,
        -0.000_198_499_110_411_109_22,
        2.800_544_280_000_955_7e-6,
    ],
    [
        -0.166_666_666_666_666_3,
        0.008_333_333_333_321_919,
        -0.000_198_412_698_294_585_1,
        2.755_731_358_226_442e-6,
        -2.505_074_232_064_201_4e-8,
        1.589_594_363_745_077e-10,
    ],
);

/// (cos r - 1) / r² of r²: within 2⁻³³ and 2⁻⁶⁴ of the cosine.
const COSINE: ([f64; 4], [f64; 7]) = (
    [-0.5, 0.041_666_645_556_688_31, -0.001_388_731_412_589_55, 2.443_316_952_849_272_6e-5],
    [
        -0.5,
        0.041_666_666_666_666_6,
        -0.001_388_888_888_887_447_8,
        2.480_158_728_967_501_6e-5,
        -2.755_731_440_201_029e-7,
        2.087_572_939_504_147_3e-9,
        -1.135_993_874_153_831e-11,
    ],
);

/// The bits of a digit of 2/π, and of the significand of a number.
const DIGIT_BITS: [f64; 2] = [11.0, 24.0];
const SIGNIFICAND_BITS: [f64; 2] = [24.0, 53.0];

/// The digits of 2/π behind the point, after three zeros.
#[rustfmt::skip]
const SINGLE_DIGITS: [f64; 23] = [
    0.0, 0.0, 0.0, 1_303.0, 1_632.0, 1_756.0, 1_252.0, 522.0, 1_191.0, 1_924.0, 1_879.0, 1_679.0, 1_357.0, 443.0, 1_037.0, 1_457.0, 598.0, 807.0, 1_091.0, 1_154.0, 127.0, 1_186.0, 1_594.0,
];
#[rustfmt::skip]
const DOUBLE_DIGITS: [f64; 54] = [
    0.0, 0.0, 0.0, 10_680_707.0, 7_228_996.0, 1_387_004.0, 2_578_385.0, 16_069_853.0, 12_639_074.0, 9_804_092.0, 4_427_841.0, 16_666_979.0, 11_263_675.0, 12_935_607.0, 2_387_514.0, 4_345_298.0, 14_681_673.0, 3_074_569.0, 13_734_428.0, 16_653_803.0, 1_880_361.0, 10_960_616.0, 8_533_493.0, 3_062_596.0, 8_710_556.0, 7_349_940.0, 6_258_241.0, 3_772_886.0, 3_769_171.0, 3_798_172.0, 8_675_211.0, 12_450_088.0, 3_874_808.0, 9_961_438.0, 366_607.0, 15_675_153.0, 9_132_554.0, 7_151_469.0, 3_571_407.0, 2_607_881.0, 12_013_382.0, 4_155_038.0, 6_285_869.0, 7_677_882.0, 13_102_053.0, 15_825_725.0, 473_591.0, 9_065_106.0, 15_363_067.0, 6_271_263.0, 9_264_392.0, 5_636_912.0, 4_652_155.0, 7_056_368.0,
];

/// The anchor of a multiple of π/2, and the angle that remains as a number and what that has too much.
type Reduced<N> = (N, [N; 2]);

/// Returns the reduction of an argument of at most [`MOST`].
#[inline(always)]
fn reduced<N: Number>(x: N) -> Reduced<N> {
    let [p1, p2, p3] = by_type::<N, _>(PARTS[0], PARTS[1]).map(|part| x.constant(part));
    let anchor = x.anchored(x.constant(std::f64::consts::FRAC_2_PI));
    let n = anchor.whole();
    // Exact, and a multiple of the last place of x or of the first part. Signs are such that a negative zero remains one.
    let first = x.minus_exactly(n, p1);
    let r = n.mul_add(-p2, first);
    (anchor, [r, n.mul_add(p3, n.mul_add(p2, r - first))])
}

/// Returns the multiple of π/2 of a large argument that is not negative, and the angle that remains as a sum of two
/// numbers; of any other some numbers.
#[inline(always)]
fn reduced_large<N: Number>(x: N) -> (N, [N; 2]) {
    let c = |value: f64| x.constant(value);
    let bits = by_type::<N, _>(DIGIT_BITS[0], DIGIT_BITS[1]);
    let (up, down) = (c(bits.exp2()), c((-bits).exp2()));
    let table = by_type::<N, &'static [f64]>(&SINGLE_DIGITS, &DOUBLE_DIGITS);
    let whole_bits = c(by_type::<N, _>(SIGNIFICAND_BITS[0], SIGNIFICAND_BITS[1]));
    // x = whole 2^(bits · group + shift), shift at least 0 and less than the bits of a digit.
    let power = -x.inverse_exponent(1.0) - whole_bits;
    let group = (power - c((bits - 1.0) / 2.0)).nearest(c(1.0 / bits));
    let group = N::choose(group.less(c(-2.0)), c(-2.0), group);
    let shift = power - group * c(bits);
    let whole = x.significand(1.0).shifted(whole_bits);
    let third = whole.nearest(c((-2.0 * bits).exp2()));
    let rest = third.mul_add(-c((2.0 * bits).exp2()), whole);
    let second = rest.nearest(down);
    let first = second.mul_add(-up, rest);
    // The digits of the product from that of weight 1 on; those before are multiples of 2π.
    let mut digits = [c(0.0); 9];
    for (k, digit) in digits.iter_mut().enumerate() {
        let at = |j: usize| (group + c((2 + k + j) as f64)).entry(table);
        *digit = third.mul_add(at(2), second.mul_add(at(1), first * at(0)));
    }
    let mut carry = c(0.0);
    for digit in digits.iter_mut().rev() {
        let all = *digit + carry;
        carry = all.nearest(down);
        *digit = carry.mul_add(-up, all);
    }
    // Their values in quarter turns, the first two less whole turns.
    let mut weight = c(1.0).shifted(shift);
    let mut turns = [c(0.0); 9];
    for (turn, digit) in turns.iter_mut().zip(digits) {
        *turn = digit * weight;
        weight = weight * down;
    }
    let within = |turn: N| turn.nearest(c(0.25)).mul_add(c(-4.0), turn);
    let start = within(turns[0]) + within(turns[1]);
    let n = start.nearest(c(1.0));
    let near = (start - n) + turns[2];
    let more = near.nearest(c(1.0));
    let [a, low] = sum(near - more, turns[3]);
    let [a, lower] = sum(a, turns[4]);
    let last = turns[5] + (turns[6] + (turns[7] + turns[8]));
    let [half_pi, half_pi_low] = by_type::<N, _>(HALF_PI[0], HALF_PI[1]).map(c);
    let [r, r_low] = product(a, half_pi);
    let low = (low + lower) + last;
    (n + more, [r, r_low + a.mul_add(half_pi_low, low * half_pi)])
}

/// Returns the reduction of any finite argument.
#[inline(always)]
fn reduced_any<N: Number>(x: N) -> Reduced<N> {
    let (anchor, [r, above]) = reduced(x);
    let (large_n, [large_r, large_low]) = reduced_large(x.absolute());
    // Where the argument is negative, so is all of it.
    let signed = |value: N| N::choose(x.less(x.constant(0.0)), -value, value);
    let is_large = is_rare(x);
    let choose = |large: N, small: N| N::choose(is_large, large, small);
    let anchor = choose(signed(large_n).anchored(x.constant(1.0)), anchor);
    (anchor, [choose(signed(large_r), r), choose(signed(-large_low), above)])
}

/// Returns sine and cosine of a reduced angle.
#[inline(always)]
fn both<N: Number>([r, above]: [N; 2]) -> [N; 2] {
    let square = r.mul_add(r, -(r * (above + above)));
    let sine = polynomial(square, by_type::<N, &'static [f64]>(&SINE.0, &SINE.1));
    let cosine = polynomial(square, by_type::<N, &'static [f64]>(&COSINE.0, &COSINE.1));
    [r - (r * square).mul_add(-sine, above), square.mul_add(cosine, r.constant(1.0))]
}

/// Returns sine or cosine of the angle of a reduction.
#[inline(always)]
fn turned<N: Number>((anchor, r): Reduced<N>, is_cosine: bool) -> N {
    let [sine, cosine] = both(r);
    let is_odd = anchor.has_bit(0);
    let value = if is_cosine { N::choose(is_odd, -sine, cosine) } else { N::choose(is_odd, cosine, sine) };
    value.negated(anchor, 1)
}

/// Checks whether an argument is large, or no number.
#[inline(always)]
pub(super) fn is_rare<N: Number>(x: N) -> N::Truth {
    x.is_beyond(x.constant(by_type::<N, _>(MOST[0], MOST[1])))
}

/// Returns a number, or none where the argument is infinite or none.
#[inline(always)]
fn of_finite<N: Number>(x: N, value: N) -> N {
    let largest = x.constant(by_type::<N, _>(f32::MAX.into(), f64::MAX));
    let is_none = largest.less(x.absolute()) | x.is_nan();
    N::choose(is_none, x.constant(f64::NAN), value)
}

/// The sine.
pub(super) mod sin {
    pub(in crate::functions) use super::is_rare;
    use super::{Number, of_finite, reduced, reduced_any, turned};

    /// Returns the sine of an argument that is not large.
    #[inline(always)]
    pub fn common<N: Number>(x: N) -> N {
        turned(reduced(x), false)
    }

    pub(in crate::functions) use self::full as other;

    /// Returns the sine.
    #[inline(always)]
    pub fn full<N: Number>(x: N) -> N {
        of_finite(x, turned(reduced_any(x), false))
    }
}

/// The cosine.
pub(super) mod cos {
    pub(in crate::functions) use super::is_rare;
    use super::{Number, of_finite, reduced, reduced_any, turned};

    /// Returns the cosine of an argument that is not large.
    #[inline(always)]
    pub fn common<N: Number>(x: N) -> N {
        turned(reduced(x), true)
    }

    pub(in crate::functions) use self::full as other;

    /// Returns the cosine.
    #[inline(always)]
    pub fn full<N: Number>(x: N) -> N {
        of_finite(x, turned(reduced_any(x), true))
    }
}

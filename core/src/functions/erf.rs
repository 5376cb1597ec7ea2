//! The error function: `x + x p(x²)` below 3/4, and beyond `1 - e^(g(x) - x²)`, where `g` is the logarithm of
//! `e^(x²) erfc(x)`, the square and the power as sums of two numbers. Coefficients are the weighted least squares at
//! Chebyshev's points in 200 bits, the weights moved towards a minimax fit (Lawson, 1961), each rounded before the next
//! is found.

pub(super) use self::common as full;
pub(super) use self::common as other;
use super::exp;
pub(super) use super::number::never as is_rare;
use super::number::{Number, at_most, by_type, polynomial, product, sum};

/// erf(x) / x - 1 of x², for |x| <= 3/4: within 2⁻²⁹ and 2⁻⁵⁶ of the error function.
const NEAR_SINGLE: [f64; 6] = [
    0.128_379_166_126_251_22,
    -0.376_126_199_960_708_6,
    0.112_833_850_085_735_32,
    -0.026_834_884_658_455_85,
    0.005_114_718_805_998_564,
    -0.000_675_154_151_394_963_3,
];
const NEAR_DOUBLE: [f64; 11] = [
    0.128_379_167_095_512_6,
    -0.376_126_389_031_838_87,
    0.112_837_916_709_590_33,
    -0.026_866_170_645_547_114,
    0.005_223_977_626_123_722,
    -0.000_854_832_680_521_533_9,
    0.000_120_553_118_478_574_18,
    -1.492_470_528_544_726_7e-5,
    1.643_781_901_871_211_4e-6,
    -1.599_608_319_830_121_3e-7,
    1.166_109_810_927_291_2e-8,
];

/// log(e^(x²) erfc(x)) of x - 3/4, for 3/4 <= x <= 4 and 6: within 2⁻²⁷ and 2⁻⁵⁵ of the error function.
const FAR_SINGLE: [f64; 8] = [
    -0.679_367_244_243_621_8,
    -0.725_874_364_376_068_1,
    0.192_156_761_884_689_33,
    -0.052_943_337_708_711_624,
    0.012_825_307_436_287_403,
    -0.002_464_136_807_247_996_3,
    0.000_325_042_288_750_410_1,
    -2.156_653_681_595_344e-5,
];
const FAR_DOUBLE: [f64; 19] = [
    -0.679_367_260_678_887_1,
    -0.725_873_667_980_675_8,
    0.192_148_458_080_080_44,
    -0.052_899_989_565_890_27,
    0.012_705_625_090_132_752,
    -0.002_270_446_072_577_664,
    0.000_129_614_017_493_688_96,
    0.000_105_902_280_806_191_13,
    -5.431_635_171_208_406e-5,
    1.435_454_009_791_06e-5,
    -1.436_006_722_150_890_8e-6,
    -7.053_789_131_331_728e-7,
    4.725_792_330_513_964e-7,
    -1.628_792_769_241_217_1e-7,
    3.876_195_760_625_812_4e-8,
    -6.582_368_341_714_571e-9,
    7.673_094_587_359_944e-10,
    -5.515_152_572_902_254_6e-11,
    1.841_753_369_458_118_7e-12,
];

/// Returns the error function.
#[inline(always)]
pub(super) fn common<N: Number>(x: N) -> N {
    let c = |value: f64| x.constant(value);
    let [near, far] =
        by_type::<N, [&'static [f64]; 2]>([&NEAR_SINGLE, &FAR_SINGLE], [&NEAR_DOUBLE, &FAR_DOUBLE]);
    let small = polynomial(x * x, near).mul_add(x, x);
    let size = x.absolute();
    // Beyond, the function is 1 once it is rounded.
    let most = c(by_type::<N, _>(4.0, 6.0));
    let size_near = at_most(size, most);
    let [square, square_low] = product(size_near, size_near);
    // Both are below 1 where the first is the smaller, with the same exponent: then too the rest is exact.
    let [power, rest] = sum(-square, polynomial(size_near - c(0.75), far));
    let [e, e_low] = exp::precise([power, rest - square_low]);
    let [value, rest] = sum(c(1.0), -e);
    let large = value + (rest - e_low);
    N::choose(size.less(c(0.75)), small, large).with_sign_of(x)
}

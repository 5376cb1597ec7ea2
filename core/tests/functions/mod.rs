//! The elementary functions against values that know nothing of their formulas.

mod double;

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use abide_core::expr::{Binary, Unary, binary, unary};
use abide_core::functions::{Form, Function};
use abide_core::{DType, Real};

use double::{Double, ulps};

/// The most units in the last place by which each function is off, in f32 and f64, as the documentation says.
const BOUNDS: [(Function, f64); 11] = [
    (Function::Exp, 0.90),
    // The sum of the roundings of its formula just below 1/4: 0.944.
    (Function::Log, 0.95),
    (Function::Sin, 0.90),
    (Function::Cos, 0.90),
    (Function::Tanh, 0.99),
    (Function::Cbrt, 0.75),
    (Function::Expm1, 0.95),
    (Function::Log1p, 0.97),
    (Function::Erf, 0.78),
    (Function::Pow, 0.93),
    (Function::Atan2, 0.96),
];

fn bound(function: Function) -> f64 {
    BOUNDS.iter().find(|(of, _)| *of == function).unwrap().1
}

/// Returns a function by its operator.
fn value<T: Real>(function: Function, x: T, y: T) -> T {
    let one = Unary::ALL.iter().find(|op| op.function() == Some(function));
    match one {
        Some(&op) => unary(op, x),
        None => {
            let two = Binary::ALL.iter().find(|op| op.function() == Some(function));
            binary(*two.unwrap(), x, y)
        }
    }
}

/// Returns the true value, as a number and a power of two.
fn truth(function: Function, x: f64, y: f64) -> (Double, i32) {
    let of = Double::from(x);
    match function {
        Function::Exp => of.exp_parts(),
        Function::Log => (of.ln(), 0),
        Function::Sin => (of.sin_cos()[0], 0),
        Function::Cos => (of.sin_cos()[1], 0),
        Function::Tanh => (of.tanh(), 0),
        Function::Cbrt => (of.cbrt(), 0),
        Function::Expm1 => (of.exp_m1(), 0),
        Function::Log1p => (of.ln_1p(), 0),
        Function::Erf => (of.erf(), 0),
        Function::Pow => of.pow_parts(y.into()),
        Function::Atan2 => (of.atan2(y.into()), 0),
    }
}

/// Numbers in 0..1, the same ones each time.
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn range(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }
}

/// Returns arguments of a function whose value is an ordinary number, and that the series can take.
fn arguments(function: Function, random: &mut Random, number: usize) -> [f64; 2] {
    let x = match (function, number % 3) {
        (Function::Exp, 0) => random.range(-745.0, 709.7),
        (Function::Exp, _) => random.range(-2.0, 2.0),
        (Function::Log | Function::Pow, 0) => random.range(-1000.0, 1000.0).exp2(),
        (Function::Log | Function::Pow, 1) => random.range(0.5, 2.0),
        (Function::Log | Function::Pow, _) => {
            1.0 + random.range(-1.0, 1.0) * random.range(-40.0, -1.0).exp2()
        }
        // The formula changes at 262144.
        (Function::Sin | Function::Cos, 0) => random.range(-3e5, 3e5),
        (Function::Sin | Function::Cos, 1) => (random.range(0.0, 2e5)).round() * std::f64::consts::FRAC_PI_2,
        (Function::Sin | Function::Cos, _) => random.range(-4.0, 4.0),
        (Function::Tanh, 0) => random.range(-25.0, 25.0),
        (Function::Tanh, _) => random.range(-1.0, 1.0),
        (Function::Cbrt, 0) => random.range(-1000.0, 1000.0).exp2(),
        (Function::Cbrt, _) => random.range(-9.0, 9.0),
        (Function::Expm1, 0) => random.range(-50.0, 700.0),
        (Function::Expm1, _) => random.range(-1.0, 1.0),
        (Function::Log1p, 0) => random.range(-40.0, 1000.0).exp2(),
        (Function::Log1p, _) => random.range(-0.999, 3.0),
        (Function::Erf, 0) => random.range(-6.5, 6.5),
        // The formula changes at 3/4, near which it is farthest off.
        (Function::Erf, 1) => random.range(0.5, 1.0),
        (Function::Erf, _) => random.range(-40.0, 1.0).exp2(),
        (Function::Atan2, 0) => random.range(-300.0, 300.0).exp2(),
        (Function::Atan2, _) => random.range(-2.0, 2.0),
    };
    if function == Function::Atan2 {
        return [x, abscissa(x, number, random)];
    }
    let y = random.range(-744.0, 709.0) / x.ln();
    [x, if number.is_multiple_of(2) || y.abs() > 1e300 { random.range(-0.7, 0.7) } else { y }]
}

/// Returns an abscissa for this ordinate: of any size, of about its size, or near a border of two reductions.
fn abscissa(y: f64, number: usize, random: &mut Random) -> f64 {
    let side = if number.is_multiple_of(2) { 1.0 } else { -1.0 };
    match number % 5 {
        0 => side * random.range(-300.0, 300.0).exp2(),
        1 => y * random.range(-70.0, 70.0).exp2() * side,
        2 => y * [0.5, 1.0, 2.0][number % 3] * (1.0 + random.range(-1e-3, 1e-3)) * side,
        _ => random.range(-2.0, 2.0),
    }
}

fn worst(function: Function, count: usize, seed: u64) -> (f64, [f64; 2]) {
    let mut random = Random(seed);
    (0..count).fold((0.0, [0.0; 2]), |worst, number| {
        let [x, y] = arguments(function, &mut random, number);
        let off = ulps(value(function, x, y), truth(function, x, y), 53, -1022);
        if off <= worst.0 { worst } else { (off, [x, y]) }
    })
}

/// Checks parts of some work on all threads of the machine; returns the largest error of all, and where it is.
fn worst_of<At: Copy + Send + Sync>(parts: usize, part: impl Fn(usize) -> (f64, At) + Sync) -> (f64, At) {
    let (next, threads) = (AtomicUsize::new(1), std::thread::available_parallelism().map_or(1, |n| n.get()));
    let larger = |a: (f64, At), b: (f64, At)| if b.0 > a.0 { b } else { a };
    let first = part(0);
    std::thread::scope(|scope| {
        let work = || {
            let own =
                std::iter::from_fn(|| Some(next.fetch_add(1, Relaxed)).filter(|&number| number < parts));
            own.map(&part).fold(first, larger)
        };
        let workers: Vec<_> = (0..threads.min(parts)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).fold(first, larger)
    })
}

/// Takes the largest error of each function and where it is; fails once all are reported.
fn check_all<At: std::fmt::Debug>(dtype: &str, found: impl Iterator<Item = (Function, (f64, At))>) {
    let mut wrong = Vec::new();
    for (function, (off, at)) in found {
        println!("{} {dtype}: {off:.4} at {at:?}", function.name());
        if off > bound(function) {
            wrong.push(format!("{} is {off} off at {at:?}", function.name()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Checks so many parts of so many random arguments each against series in twice the precision.
fn check_random(parts: usize, count: usize) {
    let seed = |part: usize| (part as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let worst_of = |function| worst_of(parts, |part| worst(function, count, seed(part)));
    check_all("f64", chosen().map(|function| (function, worst_of(function))));
}

/// Returns the functions that the environment names, with commas between them; all where it names none.
fn chosen() -> impl Iterator<Item = Function> {
    let named = std::env::var("ABIDE_FUNCTIONS").unwrap_or_default();
    let is_named = move |name| named.is_empty() || named.split(',').any(|other| other == name);
    Function::ALL.iter().copied().filter(move |function| is_named(function.name()))
}

#[test]
fn doubles_are_near_their_true_values() {
    check_random(1, 20_000);
}

#[test]
#[ignore = "10⁷ of each function: minutes"]
fn many_doubles_are_near_their_true_values() {
    check_random(100, 100_000);
}

#[test]
#[ignore = "10⁹ of each function: four hours of a core"]
fn a_billion_doubles_are_near_their_true_values() {
    check_random(10_000, 100_000);
}

/// How many arguments are computed at once, by vector instructions.
const AT_ONCE: usize = 512;

/// Returns the largest error of a function among every so many of the f32 between some bits, against the same function
/// in f64, and its argument.
fn worst_single(function: Function, bits: RangeInclusive<u32>, stride: usize) -> (f64, f32) {
    let mut worst = (0.0, 0.0);
    let mut bits = bits.step_by(stride);
    loop {
        let arguments: Vec<f32> = bits.by_ref().take(AT_ONCE).map(f32::from_bits).collect();
        if arguments.is_empty() {
            return worst;
        }
        let mut values = arguments.clone();
        function.replace(&mut values, |_| 0.0, false);
        let mut expected: Vec<f64> = arguments.iter().map(|&x| x.into()).collect();
        function.replace(&mut expected, |_| 0.0, false);
        for ((&x, &got), &expected) in arguments.iter().zip(&values).zip(&expected) {
            let near = expected as f32;
            let same = got.to_bits() == near.to_bits() || (got.is_nan() && near.is_nan());
            if same {
                continue;
            }
            assert!(got.is_finite() && near.is_finite(), "{}({x:e}) is {got:e}", function.name());
            let exponent = (f64::from(near.abs().max(f32::MIN_POSITIVE)).to_bits() >> 52) as i32 - 1023;
            let off = (f64::from(got) - expected).abs() * 2.0_f64.powi(23 - exponent);
            if off > worst.0 {
                worst = (off, x);
            }
        }
    }
}

/// Checks every so many of all f32 against the same function in f64.
fn check_singles(stride: usize) {
    // Numbers of one sign and exponent are a part, two exponents of NaN and infinity among them.
    let part = |number: usize| (number as u32) << 23..=((number as u32) << 23 | 0x7f_ffff);
    let worst_of = |function| worst_of(512, |number| worst_single(function, part(number), stride));
    let functions = chosen().filter(|function| function.arguments() == 1);
    check_all("f32", functions.map(|function| (function, worst_of(function))));
}

#[test]
fn singles_are_near_their_true_values() {
    check_singles(8191);
}

#[test]
#[ignore = "all f32: some four hours of a core"]
fn all_singles_are_near_their_true_values() {
    check_singles(1);
}

#[test]
fn powers_of_singles_are_near_their_true_values() {
    let mut random = Random(7);
    let mut worst = (0.0, [0.0; 2]);
    for number in 0..100_000 {
        let x = match number % 3 {
            0 => random.range(-120.0, 120.0).exp2(),
            1 => random.range(0.5, 2.0),
            _ => 1.0 + random.range(-1e-3, 1e-3),
        } as f32;
        let y = (random.range(-100.0, 88.0) / f64::from(x).ln()) as f32;
        let expected = value(Function::Pow, f64::from(x), f64::from(y));
        if !(1e-44..3.4e38).contains(&expected) {
            continue;
        }
        let exponent = (expected.log2().floor() as i32).max(-126);
        let off = (f64::from(value(Function::Pow, x, y)) - expected).abs() * 2.0_f64.powi(23 - exponent);
        if off > worst.0 {
            worst = (off, [x, y]);
        }
    }
    assert!(worst.0 <= bound(Function::Pow), "{worst:?}");
}

/// Returns pairs of f32: any bits, both near 1, near the borders of octants, and near each other in size.
fn pair(number: usize, random: &mut Random) -> [f32; 2] {
    let any = |random: &mut Random| f32::from_bits((random.unit() * 4_294_967_296.0) as u32);
    match number % 4 {
        0 => [any(random), any(random)],
        1 => [random.range(-1.0, 1.0) as f32, random.range(-1.0, 1.0) as f32],
        2 => {
            let x = random.range(-1.0, 1.0);
            let y = x * [0.5, 1.0, -1.0, 2.0][number / 4 % 4] * (1.0 + random.range(-5e-4, 5e-4));
            [y as f32, x as f32]
        }
        _ => {
            let x = any(random);
            [x * random.range(-40.0, 40.0).exp2() as f32, x]
        }
    }
}

/// Returns the largest error of so many random angles of pairs of f32, against the same function in f64, and its pair.
fn worst_angle(count: usize, seed: u64) -> (f64, [f32; 2]) {
    let mut random = Random(seed);
    let mut worst = (0.0, [0.0; 2]);
    for number in 0..count {
        let [y, x] = pair(number, &mut random);
        let (got, expected) =
            (value(Function::Atan2, y, x), value(Function::Atan2, f64::from(y), f64::from(x)));
        if x.is_nan() || y.is_nan() {
            assert!(got.is_nan() && expected.is_nan(), "atan2({y:e}, {x:e}) is {got:e}");
            continue;
        }
        assert_eq!(got.is_sign_negative(), y.is_sign_negative(), "atan2({y:e}, {x:e}) is {got:e}");
        let exponent =
            (f64::from((expected.abs() as f32).max(f32::MIN_POSITIVE)).to_bits() >> 52) as i32 - 1023;
        let off = (f64::from(got) - expected).abs() * 2.0_f64.powi(23 - exponent);
        assert!(!off.is_nan(), "atan2({y:e}, {x:e}) is {got:e}");
        if off > worst.0 {
            worst = (off, [y, x]);
        }
    }
    worst
}

/// Checks so many parts of so many pairs.
fn check_angles(parts: usize, count: usize) {
    let (off, at) = worst_of(parts, |part| worst_angle(count, part as u64 + 11));
    println!("atan2 f32: {off:.4} at {at:?}");
    assert!(off <= bound(Function::Atan2), "{off} at {at:?}");
}

#[test]
fn angles_of_singles_are_near_their_true_values() {
    check_angles(1, 200_000);
}

#[test]
#[ignore = "10⁸ pairs: a minute"]
fn many_angles_of_singles_are_near_their_true_values() {
    check_angles(100, 1_000_000);
}

/// `reference.csv` is made by `reference.py`, which knows neither the formulas nor the series.
#[test]
fn values_are_those_of_a_library_of_many_digits() {
    for line in include_str!("reference.csv").lines().skip(1) {
        let mut parts = line.split(',');
        let function = parts.next().and_then(Function::named).unwrap();
        let [x, y, high, low] = [(); 4].map(|()| parts.next().unwrap().parse::<f64>().unwrap());
        let off = ulps(value(function, x, y), (Double(high, low), 0), 53, -1022);
        assert!(off <= bound(function), "{line}: {off}");
        // The series of sine and cosine reduce no large angles.
        if matches!(function, Function::Sin | Function::Cos) && x.abs() > 1e6 {
            continue;
        }
        let (truth, power) = truth(function, x, y);
        let truth = truth.scaled(power);
        let off = ((truth.0 - high) + (truth.1 - low)).abs() / high.abs();
        // Where the low part is subnormal, so are its errors.
        assert!(off <= 1e-28 || high.abs() < 1e-290, "{line}: {off:e}");
    }
}

/// The special values of C99, annex F.9.
#[test]
fn special_values_are_those_of_the_standard() {
    use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};
    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;
    let one = [
        (
            Function::Exp,
            [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (NAN, NAN), (1e4, INF), (-1e4, 0.0)],
        ),
        (
            Function::Log,
            [(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-INF, NAN), (NAN, NAN), (-1.0, NAN)],
        ),
        (
            Function::Sin,
            [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN), (1e-38, 1e-38), (-1e-38, -1e-38)],
        ),
        (
            Function::Cos,
            [(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN), (NAN, NAN), (1e-30, 1.0), (-1e-30, 1.0)],
        ),
        (
            Function::Cbrt,
            [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN), (-27.0, -3.0), (8.0, 2.0)],
        ),
        (
            Function::Expm1,
            [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1.0), (NAN, NAN), (1e4, INF), (-1e4, -1.0)],
        ),
        (
            Function::Log1p,
            [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-1.0, -INF), (NAN, NAN), (-2.0, NAN), (-INF, NAN)],
        ),
        (
            Function::Tanh,
            [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (NAN, NAN), (1e4, 1.0), (1e-38, 1e-38)],
        ),
        (
            Function::Erf,
            [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (NAN, NAN), (1e300, 1.0), (-6.0, -1.0)],
        ),
    ];
    fn check<T: Real>(function: Function, x: f64, y: f64, expected: f64) {
        let got = value(function, T::from_f64(x), T::from_f64(y));
        let same = got.to_bits64() == T::from_f64(expected).to_bits64()
            || (got.to_f64().is_nan() && expected.is_nan());
        assert!(same, "{}({x:e}, {y:e}) is {got}, not {expected:e}", function.name());
    }
    for (function, values) in one {
        for (x, expected) in values {
            check::<f32>(function, x, 0.0, expected);
            check::<f64>(function, x, 0.0, expected);
        }
    }
    let two = [
        (0.0, -3.0, INF),
        (-0.0, -3.0, -INF),
        (0.0, -2.0, INF),
        (-0.0, -2.0, INF),
        (-0.0, -0.5, INF),
        (0.0, -INF, INF),
        (-0.0, -INF, INF),
        (0.0, 3.0, 0.0),
        (-0.0, 3.0, -0.0),
        (-0.0, 2.0, 0.0),
        (-0.0, 0.5, 0.0),
        (-1.0, INF, 1.0),
        (-1.0, -INF, 1.0),
        (1.0, NAN, 1.0),
        (1.0, INF, 1.0),
        (NAN, 0.0, 1.0),
        (INF, 0.0, 1.0),
        (-2.0, 0.5, NAN),
        (-2.0, 3.0, -8.0),
        (-2.0, 2.0, 4.0),
        (-2.0, -1.0, -0.5),
        (0.5, -INF, INF),
        (2.0, -INF, 0.0),
        (0.5, INF, 0.0),
        (-2.0, INF, INF),
        (-INF, -3.0, -0.0),
        (-INF, -2.0, 0.0),
        (-INF, -0.5, 0.0),
        (-INF, 3.0, -INF),
        (-INF, 2.0, INF),
        (-INF, 0.5, INF),
        (INF, -1.0, 0.0),
        (INF, 0.5, INF),
        (NAN, 1.0, NAN),
        (2.0, NAN, NAN),
        (-3.0, 9_007_199_254_740_992.0, INF),
        (4.0, 0.5, 2.0),
        (2.0, 10.0, 1024.0),
    ];
    for (x, y, expected) in two {
        check::<f32>(Function::Pow, x, y, expected);
        check::<f64>(Function::Pow, x, y, expected);
    }
    let angles = [
        (0.0, 0.0, 0.0),
        (-0.0, 0.0, -0.0),
        (0.0, -0.0, PI),
        (-0.0, -0.0, -PI),
        (0.0, 1.0, 0.0),
        (-0.0, 1.0, -0.0),
        (0.0, -1.0, PI),
        (-0.0, -1.0, -PI),
        (1.0, 0.0, FRAC_PI_2),
        (1.0, -0.0, FRAC_PI_2),
        (-1.0, 0.0, -FRAC_PI_2),
        (-1.0, -0.0, -FRAC_PI_2),
        (1.0, INF, 0.0),
        (-1.0, INF, -0.0),
        (1.0, -INF, PI),
        (-1.0, -INF, -PI),
        (0.0, -INF, PI),
        (-0.0, INF, -0.0),
        (INF, 1.0, FRAC_PI_2),
        (INF, -0.0, FRAC_PI_2),
        (-INF, -1.0, -FRAC_PI_2),
        (INF, INF, FRAC_PI_4),
        (-INF, INF, -FRAC_PI_4),
        (INF, -INF, 3.0 * FRAC_PI_4),
        (-INF, -INF, -3.0 * FRAC_PI_4),
        (1.0, 1.0, FRAC_PI_4),
        (-1.0, 1.0, -FRAC_PI_4),
        (1.0, -1.0, 3.0 * FRAC_PI_4),
        (-1.0, -1.0, -3.0 * FRAC_PI_4),
        (NAN, 1.0, NAN),
        (1.0, NAN, NAN),
        (NAN, INF, NAN),
        (0.0, NAN, NAN),
    ];
    for (y, x, expected) in angles {
        check::<f32>(Function::Atan2, y, x, expected);
        check::<f64>(Function::Atan2, y, x, expected);
    }
    check::<f64>(Function::Atan2, 5e-324, 1.0, 5e-324);
    check::<f64>(Function::Atan2, -5e-324, 4.0, -0.0);
    check::<f64>(Function::Atan2, 5e-324, 5e-324, FRAC_PI_4);
    check::<f64>(Function::Atan2, f64::MAX, -f64::MAX, 3.0 * FRAC_PI_4);
    check::<f32>(Function::Atan2, 1e-45, 1e-45, FRAC_PI_4);
    check::<f32>(Function::Atan2, f32::MAX.into(), f32::MAX.into(), FRAC_PI_4);
    check::<f64>(Function::Erf, 5e-324, 0.0, 5e-324);
    check::<f64>(Function::Erf, -5e-324, 0.0, -5e-324);
    check::<f32>(Function::Erf, 1e-45, 0.0, 1e-45);
    check::<f32>(Function::Erf, 4.0, 0.0, 1.0);
    check::<f64>(Function::Exp, -745.2, 0.0, 0.0);
    check::<f64>(Function::Exp, -745.1, 0.0, 5e-324);
    check::<f32>(Function::Exp, -104.0, 0.0, 0.0);
    check::<f32>(Function::Exp, -103.0, 0.0, 1e-45);
    check::<f64>(Function::Pow, -1.0, 9_007_199_254_740_991.0, -1.0);
    check::<f64>(Function::Pow, -1.0, 4_503_599_627_370_495.0, -1.0);
    check::<f64>(Function::Pow, -1.0, 4_503_599_627_370_495.5, NAN);
}

/// The argument nearest to a multiple of π/2 of all doubles (Muller, Elementary Functions, 3rd edition, 11.3.2).
#[test]
fn the_hardest_angle_is_reduced() {
    let x = 6_381_956_970_095_103.0 * 2.0_f64.powi(797);
    assert_eq!(value(Function::Cos, x, 0.0), -4.687_165_924_254_628e-19);
}

/// Loops over many numbers give the bits of one number, whichever of them are rare.
#[test]
fn many_at_once_have_the_bits_of_each() {
    fn check<T: Real>() {
        let mut random = Random(3);
        for &function in Function::ALL {
            for rare in [false, true] {
                let mut values: Vec<T> = (0..37)
                    .map(|i| match (rare, i % 5) {
                        (true, 0) => {
                            T::from_f64([1e300, -1e300, 1e-310, 0.0, f64::NAN, -4.0, 1e6, 900.0][i % 8])
                        }
                        _ => T::from_f64(random.range(0.1, 60.0)),
                    })
                    .collect();
                let others: Vec<T> = (0..37).map(|_| T::from_f64(random.range(-3.0, 3.0))).collect();
                for turned in [false, true] {
                    let before = values.clone();
                    function.replace(&mut values, |i| others[i], turned);
                    for (i, &got) in values.iter().enumerate() {
                        let (x, y) = if turned { (others[i], before[i]) } else { (before[i], others[i]) };
                        let x = if function.arguments() == 1 { before[i] } else { x };
                        let expected = value(function, x, y);
                        assert!(
                            got.to_bits64() == expected.to_bits64()
                                || (got.to_f64().is_nan() && expected.to_f64().is_nan()),
                            "{}({x}, {y}): {got}, not {expected}",
                            function.name()
                        );
                    }
                }
            }
        }
    }
    check::<f32>();
    check::<f64>();
}

/// What the planner counts is what is done for arguments that are not rare.
#[test]
fn operators_count_the_operations_of_their_formulas() {
    let counted = |function: Function| {
        let steps = function.record(DType::F64, Form::Common).steps;
        steps.iter().map(|step| step.flops()).sum::<usize>()
    };
    let functions = Unary::ALL.iter().filter_map(|op| Some((op.function()?, op.flops())));
    let functions = functions.chain(Binary::ALL.iter().filter_map(|op| Some((op.function()?, op.flops()))));
    let all: Vec<(Function, usize)> = functions.collect();
    assert_eq!(all.len(), Function::ALL.len(), "each is an operator");
    for (function, flops) in all {
        assert_eq!(flops, counted(function), "{}", function.name());
    }
}

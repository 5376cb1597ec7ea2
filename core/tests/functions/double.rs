//! Elementary functions in twice the precision of f64, by their series: some 100 bits.

use std::ops::{Add, Div, Mul, Neg, Sub};
use std::sync::LazyLock;

/// A number as the sum of two, of which the second is less than half a unit in the last place of the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Double(pub f64, pub f64);

const ONE: Double = Double(1.0, 0.0);
/// ln 2 and π/2 as sums of three numbers.
const LN_2: [f64; 3] = [std::f64::consts::LN_2, 2.3190468138462996e-17, 5.707708438416212e-34];
const HALF_PI: [f64; 3] = [std::f64::consts::FRAC_PI_2, 6.123233995736766e-17, -1.4973849048591698e-33];
/// 2 / √π.
const TWO_BY_ROOT_PI: Double = Double(std::f64::consts::FRAC_2_SQRT_PI, 1.533545961316588e-17);

/// 1/n.
static INVERSES: LazyLock<[Double; 1024]> =
    LazyLock::new(|| std::array::from_fn(|n| ONE / (n as f64).into()));
/// 1/n!.
static INVERSE_FACTORIALS: LazyLock<[Double; 40]> = LazyLock::new(|| {
    let mut factorial = ONE;
    std::array::from_fn(|n| {
        factorial = factorial * (n.max(1) as f64).into();
        ONE / factorial
    })
});
/// Powers of e: e^(n / 64) with n from -32 to 32.
static POWERS: LazyLock<[Double; 65]> = LazyLock::new(|| {
    std::array::from_fn(|n| horner((n as f64 / 64.0 - 0.5).into(), &INVERSE_FACTORIALS[..34]))
});

/// Returns the value of a polynomial, `c[0] + c[1] x + …`.
fn horner(x: Double, coefficients: &[Double]) -> Double {
    let mut all = coefficients.iter().rev();
    let last = *all.next().unwrap();
    all.fold(last, |sum, &coefficient| sum * x + coefficient)
}

fn two_sum(a: f64, b: f64) -> Double {
    let sum = a + b;
    let other = sum - a;
    Double(sum, (a - (sum - other)) + (b - other))
}

fn two_product(a: f64, b: f64) -> Double {
    let product = a * b;
    Double(product, a.mul_add(b, -product))
}

impl From<f64> for Double {
    fn from(value: f64) -> Double {
        Double(value, 0.0)
    }
}

impl Add for Double {
    type Output = Double;
    fn add(self, other: Double) -> Double {
        let (high, low) = (two_sum(self.0, other.0), two_sum(self.1, other.1));
        let first = two_sum(high.0, high.1 + low.0);
        two_sum(first.0, first.1 + low.1)
    }
}

impl Neg for Double {
    type Output = Double;
    fn neg(self) -> Double {
        Double(-self.0, -self.1)
    }
}

impl Sub for Double {
    type Output = Double;
    fn sub(self, other: Double) -> Double {
        self + -other
    }
}

impl Mul for Double {
    type Output = Double;
    fn mul(self, other: Double) -> Double {
        let all = two_product(self.0, other.0);
        two_sum(all.0, all.1 + (self.0 * other.1 + self.1 * other.0))
    }
}

impl Div for Double {
    type Output = Double;
    fn div(self, other: Double) -> Double {
        let first = self.0 / other.0;
        let rest = self - other * first.into();
        let second = rest.0 / other.0;
        let rest = rest - other * second.into();
        two_sum(first, second) + (rest.0 / other.0).into()
    }
}

impl Double {
    /// Returns the number times a power of two, which must not make it subnormal.
    pub fn scaled(self, power: i32) -> Double {
        let half = power / 2;
        let [a, b] = [half, power - half].map(|n| 2.0_f64.powi(n));
        Double(self.0 * a * b, self.1 * a * b)
    }

    fn abs(self) -> Double {
        if self.0 < 0.0 { -self } else { self }
    }

    /// Returns `k` and `n` with this = k ln 2 + n, and e^n - 1.
    fn reduced(self) -> (i32, Double) {
        let k = (self.0 / LN_2[0]).round();
        let n = LN_2.iter().fold(self, |rest, &part| rest - two_product(k, part));
        let nearest = (n.0 * 64.0).round();
        let r = n - (nearest / 64.0).into();
        let above = r * horner(r, &INVERSE_FACTORIALS[1..14]);
        let power = POWERS[(nearest + 32.0) as usize];
        let above = if nearest == 0.0 { above } else { power * above + (power - ONE) };
        (k as i32, above)
    }

    /// Returns e to this power as a number near 1 and a power of two.
    pub fn exp_parts(self) -> (Double, i32) {
        let (k, above) = self.reduced();
        (ONE + above, k)
    }

    /// Returns e to this power.
    pub fn exp(self) -> Double {
        let (value, k) = self.exp_parts();
        value.scaled(k)
    }

    /// Returns e to this power, less one.
    pub fn exp_m1(self) -> Double {
        if self.0.abs() > 800.0 {
            return if self.0 < 0.0 { -ONE } else { f64::INFINITY.into() };
        }
        match self.reduced() {
            (0, above) => above,
            _ => self.exp() - ONE,
        }
    }

    /// Returns ln(1 + this).
    pub fn ln_1p(self) -> Double {
        let all = ONE + self;
        let n = all.0.log2().round() as i32;
        let s = match n {
            0 => self / (self + 2.0.into()),
            _ => {
                let m = all.scaled(-n);
                (m - ONE) / (m + ONE)
            }
        };
        let square = s * s;
        let odd = (0..24).rev().map(|i| INVERSES[2 * i + 1]);
        let sum = s * odd.fold(Double(0.0, 0.0), |sum, inverse| sum * square + inverse);
        LN_2.iter().rev().fold(Double(0.0, 0.0), |all, &part| two_product(f64::from(n), part) + all)
            + sum
            + sum
    }

    /// Returns the natural logarithm.
    pub fn ln(self) -> Double {
        // Far from 1 the exponent is taken off first, because 1 + (x - 1) is not exact.
        let n = self.0.log2().round() as i32;
        let whole =
            LN_2.iter().rev().fold(Double(0.0, 0.0), |all, &part| two_product(f64::from(n), part) + all);
        whole + (self.scaled(-n) - ONE).ln_1p()
    }

    /// Returns sine and cosine of an angle of at most some tens.
    pub fn sin_cos(self) -> [Double; 2] {
        let quarter = (self.0 / HALF_PI[0]).round();
        let r = HALF_PI.iter().fold(self, |rest, &part| rest - two_product(quarter, part));
        turned(r, quarter as i64)
    }

    /// Returns the hyperbolic tangent.
    pub fn tanh(self) -> Double {
        let above = (self + self).exp_m1();
        if above.0.is_infinite() { ONE } else { above / (above + 2.0.into()) }
    }

    /// Returns the cube root.
    pub fn cbrt(self) -> Double {
        let guess = Double::from(self.0.cbrt());
        let square = guess * guess;
        guess - (square * guess - self) / (square * 3.0.into())
    }

    /// Returns the error function: `2 / √π e^(-x²) Σ 2ⁿ x^(2n + 1) / (2n + 1)!!`, of terms of one sign.
    pub fn erf(self) -> Double {
        let square = self * self;
        let (mut term, mut sum) = (self, self);
        let mut odd = 1;
        while term.0.abs() > 1e-34 * sum.0.abs() {
            odd += 2;
            term = term * (square + square) * INVERSES[odd];
            sum = sum + term;
        }
        TWO_BY_ROOT_PI * (-square).exp() * sum
    }

    /// Returns the angle of the point of this ordinate, which is not 0, and an abscissa; their quotient has at least
    /// the size of a normal number.
    pub fn atan2(self, abscissa: Double) -> Double {
        let (height, width) = (self.abs(), abscissa.abs());
        let is_steep = height.0 > width.0;
        let tangent = if is_steep { width / height } else { height / width };
        // A step of Newton's from the library's angle: sin(a - b) = (t cos b - sin b) cos a, and the rest of the
        // sine's series is below the precision.
        let near = Double::from(tangent.0.atan());
        let angle = match tangent.0 < 1e-20 {
            true => tangent,
            false => {
                let [sine, cosine] = near.sin_cos();
                near + (tangent * cosine - sine) * cosine
            }
        };
        let half = HALF_PI.iter().rev().fold(Double(0.0, 0.0), |all, &part| all + part.into());
        let angle = if is_steep { half - angle } else { angle };
        let angle = if abscissa.0 < 0.0 { half + half - angle } else { angle };
        if self.0 < 0.0 { -angle } else { angle }
    }

    /// Returns this to a power, as a number near 1 and a power of two.
    pub fn pow_parts(self, power: Double) -> (Double, i32) {
        (self.ln() * power).exp_parts()
    }
}

/// Returns sine and cosine of a small angle and a number of quarter turns.
fn turned(r: Double, quarter: i64) -> [Double; 2] {
    let square = -(r * r);
    let every_second = |first: usize| {
        (first..34).step_by(2).rev().map(|i| INVERSE_FACTORIALS[i]).reduce(|sum, next| sum * square + next)
    };
    let (sine, cosine) = (r * every_second(1).unwrap(), every_second(0).unwrap());
    match quarter.rem_euclid(4) {
        0 => [sine, cosine],
        1 => [cosine, -sine],
        2 => [-sine, -cosine],
        _ => [-cosine, sine],
    }
}

/// Returns the distance of a value from the true one in units in the last place of the type whose values have so
/// many bits and this smallest exponent.
pub fn ulps(value: f64, (truth, power): (Double, i32), bits: i32, least: i32) -> f64 {
    let exponent = (truth.abs().0.log2().floor() as i32 + power).max(least);
    // Both near 1, so that nothing is lost.
    let scale = -power;
    let near = Double::from(value * 2.0_f64.powi(scale / 2) * 2.0_f64.powi(scale - scale / 2));
    let off = (near - truth).abs().0;
    // In halves, of which neither overflows.
    let grown = bits - 1 - (exponent - power);
    off * 2.0_f64.powi(grown / 2) * 2.0_f64.powi(grown - grown / 2)
}

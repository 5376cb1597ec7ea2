//! The quotients of `quotients.cuh` in exact arithmetic, at precisions that are small enough for all pairs of significands.

use super::QUOTIENTS;

/// A number of a small precision: `significand` · 2^`exponent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Number {
    significand: i128,
    exponent: i32,
}

/// Arithmetic that rounds each result once to a precision in bits, to nearest and ties to even, without limits of the exponent.
#[derive(Clone, Copy)]
struct Arithmetic {
    precision: u32,
}

impl Arithmetic {
    /// Rounds `significand` · 2^`exponent`. Equal results are the same, because their significands have as many bits as the precision.
    fn round(self, significand: i128, exponent: i32) -> Number {
        let size = significand.unsigned_abs();
        if size == 0 {
            return Number { significand: 0, exponent: 0 };
        }
        let bits = u128::BITS - size.leading_zeros();
        if bits <= self.precision {
            let missing = self.precision - bits;
            return Number { significand: significand << missing, exponent: exponent - missing as i32 };
        }
        let excess = bits - self.precision;
        let (kept, cut, half) = (size >> excess, size & ((1 << excess) - 1), 1 << (excess - 1));
        let up = cut > half || (cut == half && kept % 2 == 1);
        let (mut kept, mut exponent) = (kept + u128::from(up), exponent + excess as i32);
        if kept >> self.precision == 1 {
            (kept, exponent) = (kept >> 1, exponent + 1);
        }
        Number { significand: significand.signum() * kept as i128, exponent }
    }

    /// Returns a · b.
    fn multiply(self, a: Number, b: Number) -> Number {
        self.round(a.significand * b.significand, a.exponent + b.exponent)
    }

    /// Returns a · b + c, rounded once.
    fn fused(self, a: Number, b: Number, c: Number) -> Number {
        let (product, exponent) = (a.significand * b.significand, a.exponent + b.exponent);
        let common = exponent.min(c.exponent);
        let sum = (product << (exponent - common)) + (c.significand << (c.exponent - common));
        self.round(sum, common)
    }

    /// Returns a / b of positive numbers, correctly rounded: from its first bits, and one more that is set if any bit follows.
    fn divide(self, a: Number, b: Number) -> Number {
        let shift = 2 * self.precision + 2;
        let dividend = a.significand << shift;
        let follows = i128::from(dividend % b.significand != 0);
        let exponent = a.exponent - b.exponent - shift as i32 - 1;
        self.round(dividend / b.significand * 2 + follows, exponent)
    }

    /// Returns a / b from y = 1 / b as the kernels compute it, without and with the correction.
    fn quotient(self, a: Number, b: Number, y: Number) -> [Number; 2] {
        let minus = |x: Number| Number { significand: -x.significand, ..x };
        let q = self.multiply(a, y);
        let rest = self.fused(q, b, minus(a));
        [q, self.fused(minus(rest), y, q)]
    }

    /// Counts the pairs of significands whose quotient differs from the correctly rounded one, without and with the correction.
    fn wrong(self) -> [usize; 2] {
        let significands = || {
            let all = 1 << (self.precision - 1)..1 << self.precision;
            all.map(|significand| Number { significand, exponent: 0 })
        };
        let mut wrong = [0; 2];
        for b in significands() {
            let y = self.divide(Number { significand: 1, exponent: 0 }, b);
            for a in significands() {
                let right = self.divide(a, b);
                for (wrong, found) in wrong.iter_mut().zip(self.quotient(a, b, y)) {
                    *wrong += usize::from(found != right);
                }
            }
        }
        wrong
    }
}

#[test]
fn quotients_of_all_significands_are_correctly_rounded() {
    let formula = "q = a * y, rest = fma(q, b, -a), corrected = fma(-rest, y, q);";
    assert!(QUOTIENTS.contains(formula), "the kernels' formula is another one than this test's");
    for precision in 3..=12 {
        let [uncorrected, corrected] = Arithmetic { precision }.wrong();
        assert_eq!(corrected, 0, "at a precision of {precision} bits");
        assert!(uncorrected > 0, "at a precision of {precision} bits the correction does nothing");
    }
}

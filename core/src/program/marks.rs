//! Marks: the multiples of a number that a computed scalar reaches.

use super::Program;
use crate::error::{Error, Result};

/// The multiples of a number, at each of which a run halts: after the first step at which a computed scalar has
/// reached the next one. A run whose scalar is not a number ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Marks {
    /// The number of the scalar among [`Program::scalars`].
    pub scalar: usize,
    /// The distance from one mark to the next, above 0, in the scalar's unit.
    pub by: f64,
}

impl Marks {
    /// Makes the marks of a program's scalar.
    pub fn new(program: &Program, scalar: &str, by: f64) -> Result<Marks> {
        if !(by.is_finite() && by > 0.0) {
            return Err(Error::invalid(
                format!("marks of {scalar}"),
                format!("{by} is no distance from one to the next"),
                "give a number above 0, as in time=0.5",
            ));
        }
        Ok(Marks { scalar: program.scalar(scalar)?, by })
    }

    /// Returns the number of the last mark at or below a value. Below the first it is negative; of a value
    /// that is no number, or beyond what can be counted one by one, there is none.
    pub fn number(&self, value: f64) -> Option<i64> {
        /// All whole numbers up to here are values of an f64.
        const MOST: f64 = (1u64 << 53) as f64;
        let mut number = (value / self.by).floor();
        if number.is_nan() || number.abs() >= MOST {
            return None;
        }
        // The quotient is rounded, and what counts is the multiple.
        while number * self.by > value {
            number -= 1.0;
        }
        while (number + 1.0) * self.by <= value {
            number += 1.0;
        }
        Some(number as i64)
    }

    /// Returns the first mark above a value; NaN, which no value reaches, where [`Marks::number`] has none.
    pub fn next(&self, value: f64) -> f64 {
        self.number(value).map_or(f64::NAN, |number| (number + 1) as f64 * self.by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::cloverleaf;

    #[test]
    fn the_next_mark_lies_above_and_the_last_below() {
        let mut random = fastrand::Rng::with_seed(5);
        for by in [0.1, 0.5, 1.0, 1.0 / 3.0, 1e-300, 7e250] {
            let marks = Marks { scalar: 0, by };
            for count in (0..2000).map(|_| random.i64(-9_000_000_000_000..9_000_000_000_000)) {
                let exact = count as f64 * by;
                for value in [exact.next_down(), exact, exact.next_up(), exact + 0.4 * by] {
                    let (number, next) = (marks.number(value).unwrap(), marks.next(value));
                    assert!(number as f64 * by <= value && next > value, "{by} {value}: {number} {next}");
                    assert_eq!(next, (number + 1) as f64 * by);
                }
                assert_eq!(marks.number(exact), Some(count), "{by} {count}");
            }
            assert!(marks.next(f64::NAN).is_nan() && marks.next(f64::INFINITY).is_nan());
        }
        assert!(Marks { scalar: 0, by: 1e-9 }.next(1e16).is_nan());
    }

    #[test]
    fn marks_are_of_a_scalar_and_apart() {
        let program = cloverleaf().unwrap();
        assert_eq!(Marks::new(&program, "time", 0.5).unwrap().next(0.0), 0.5);
        for (scalar, by) in [("time", 0.0), ("time", -1.0), ("time", f64::NAN), ("speed", 1.0)] {
            assert!(Marks::new(&program, scalar, by).is_err(), "{scalar} {by}");
        }
    }
}

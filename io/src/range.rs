//! The values at the ends of a colour map.

use std::str::FromStr;

use abide_core::{Array, Error, Real, Result, with_array};

/// The values at the two ends of the colour map.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// The value shown darkest.
    pub low: f64,
    /// The value shown brightest.
    pub high: f64,
}

impl Range {
    /// Returns the range from the smallest to the largest finite value; `None` where no value is finite.
    pub fn of(values: &Array) -> Option<Range> {
        let finite = |least: Option<Range>, x: f64| match least {
            _ if !x.is_finite() => least,
            None => Some(Range { low: x, high: x }),
            Some(r) => Some(Range { low: r.low.min(x), high: r.high.max(x) }),
        };
        with_array!(values, v => v.iter().fold(None, |range, &x| finite(range, x.to_f64())))
    }

    /// Returns the smallest range that holds both.
    pub fn union(self, other: Range) -> Range {
        Range { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    /// Returns where a value lies between the ends, 0 to 1; `None` for NaN and infinity.
    pub(super) fn place(self, value: f64) -> Option<f64> {
        // Halved, so that the width of a range as wide as the type does not overflow.
        let width = 0.5 * self.high - 0.5 * self.low;
        let place = if width > 0.0 { (0.5 * value - 0.5 * self.low) / width } else { 0.0 };
        value.is_finite().then(|| place.clamp(0.0, 1.0))
    }
}

impl FromStr for Range {
    type Err = Error;

    /// Reads `LOW:HIGH`.
    fn from_str(text: &str) -> Result<Range> {
        let ends = text.split_once(':').and_then(|(low, high)| Some((low.parse().ok()?, high.parse().ok()?)));
        match ends {
            Some((low, high)) if f64::is_finite(low) && f64::is_finite(high) && low < high => {
                Ok(Range { low, high })
            }
            _ => Err(Error::invalid(
                format!("range `{text}`"),
                "not two finite numbers, the smaller first",
                "write it like 0:1",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_leaves_out_what_is_not_finite() {
        let values = Array::F64(vec![f64::NAN, 2.0, f64::INFINITY, -1.0]);
        assert_eq!(Range::of(&values), Some(Range { low: -1.0, high: 2.0 }));
        assert_eq!(Range::of(&Array::F32(vec![f32::NAN])), None);
        let wide = Range { low: f64::MIN, high: f64::MAX };
        assert_eq!(wide.place(0.0), Some(0.5));
        assert_eq!(wide.place(f64::NAN), None);
        assert_eq!(Range { low: 3.0, high: 3.0 }.place(3.0), Some(0.0));
    }

    #[test]
    fn ranges_parse() {
        assert_eq!("-1:2.5".parse::<Range>(), Ok(Range { low: -1.0, high: 2.5 }));
        for bad in ["1", "2:1", "1:1", "nan:1", "0:inf", ":"] {
            assert!(bad.parse::<Range>().is_err(), "{bad}");
        }
    }
}

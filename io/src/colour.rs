//! Numbers as colours: viridis, with a colour of its own for NaN and infinity.

use std::str::FromStr;

use abide_core::{Array, Error, Real, Result, Shape, memory, with_array};

/// The colour of NaN and infinity; viridis has no colour like it.
pub(super) const MARK: [u8; 3] = [255, 0, 255];

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

/// How values become colours, and what stands beside them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Colours {
    /// The values at the ends of the colour map; `None` for those that are found from the values shown.
    pub range: Option<Range>,
    /// Whether a bar of the colours with its values stands beside the cells, and the field and the step above them.
    pub is_annotated: bool,
}

impl From<Option<Range>> for Colours {
    fn from(range: Option<Range>) -> Colours {
        Colours { range, is_annotated: false }
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

/// The plane of a domain that a picture shows: a line as a strip, a box by its middle slice.
pub(super) struct Plane {
    pub(super) width: usize,
    pub(super) height: usize,
    offset: usize,
    strip: bool,
}

/// The height of the strip that shows a line, in pixels.
const STRIP: usize = 32;

impl Plane {
    pub(super) fn of(shape: &Shape) -> Plane {
        let [z, y, x] = shape.padded();
        if shape.dimensions() == 1 {
            return Plane { width: x, height: STRIP, offset: 0, strip: true };
        }
        Plane { width: x, height: y, offset: z / 2 * y * x, strip: false }
    }

    /// Makes a pixel of every value of the plane, rows from the top.
    pub(super) fn pixels<P: Copy>(&self, values: &Array, mut pixel: impl FnMut(f64) -> P) -> Result<Vec<P>> {
        let mut pixels = memory::reserved(self.width * self.height, "a picture", "write .npy")?;
        let rows = if self.strip { 1 } else { self.height };
        let shown = self.offset..self.offset + rows * self.width;
        with_array!(values, v => pixels.extend(v[shown].iter().map(|&x| pixel(x.to_f64()))));
        for _ in rows..self.height {
            pixels.extend_from_within(..self.width);
        }
        Ok(pixels)
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

    #[test]
    fn a_line_is_a_strip_and_a_box_its_middle_slice() {
        let line = Shape::new(&[3]).unwrap();
        let pixels = Plane::of(&line).pixels(&Array::F32(vec![1.0, 2.0, 3.0]), |x| x).unwrap();
        assert_eq!(pixels.len(), 3 * STRIP);
        assert_eq!(pixels[3 * (STRIP - 1)..], [1.0, 2.0, 3.0]);
        let cube = Shape::new(&[3, 1, 2]).unwrap();
        let pixels = Plane::of(&cube).pixels(&Array::F64((0..6).map(f64::from).collect()), |x| x).unwrap();
        assert_eq!(pixels, [2.0, 3.0]);
    }
}

//! Numbers as colours, and the plane of a domain that a picture shows.

use abide_core::domain::axis_name;
use abide_core::{Array, Real, Result, Shape, memory, with_array};

use super::{Colormap, Range};

/// How values become colours, and what stands beside them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Colours {
    /// The colour map.
    pub map: Colormap,
    /// The values at the ends of the colour map; `None` for those that are found from the values shown.
    pub range: Option<Range>,
    /// Whether a bar of the colours with its values and axes with indices stand beside the cells, and the field and the step
    /// above them.
    pub is_annotated: bool,
    /// Whether the rows are the members of a batch, which the axis beside them says.
    pub is_batch: bool,
}

impl Colours {
    /// Returns the range of the colours: the one that is given, or the map's for values of this range.
    pub fn ends(&self, values: Option<Range>) -> Option<Range> {
        self.range.or_else(|| values.map(|values| self.map.ends(values)))
    }
}

impl From<Option<Range>> for Colours {
    fn from(range: Option<Range>) -> Colours {
        Colours { range, ..Colours::default() }
    }
}

/// The plane of a domain that a picture shows: a line as a strip, a box by its middle slice.
pub(super) struct Plane {
    pub(super) width: usize,
    pub(super) height: usize,
    /// The names of the axes of rows and columns; none for the rows of a strip.
    pub(super) axes: [Option<&'static str>; 2],
    /// The plane of a box that is shown.
    pub(super) slice: Option<usize>,
    offset: usize,
    strip: bool,
}

/// The height of the strip that shows a line, in pixels.
const STRIP: usize = 32;

impl Plane {
    /// Returns the plane of a shape, whose rows are the members of a batch or cells.
    pub(super) fn of(shape: &Shape, is_batch: bool) -> Plane {
        let [z, y, x] = shape.padded();
        let columns = Some(axis_name(2));
        if shape.dimensions() == 1 {
            let axes = [None, columns];
            return Plane { width: x, height: STRIP, axes, slice: None, offset: 0, strip: true };
        }
        let axes = [Some(if is_batch { "member" } else { axis_name(1) }), columns];
        let slice = (shape.dimensions() == 3).then_some(z / 2);
        Plane { width: x, height: y, axes, slice, offset: z / 2 * y * x, strip: false }
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
    fn a_line_is_a_strip_and_a_box_its_middle_slice() {
        let line = Shape::new(&[3]).unwrap();
        let pixels = Plane::of(&line, false).pixels(&Array::F32(vec![1.0, 2.0, 3.0]), |x| x).unwrap();
        assert_eq!(pixels.len(), 3 * STRIP);
        assert_eq!(pixels[3 * (STRIP - 1)..], [1.0, 2.0, 3.0]);
        let cube = Shape::new(&[3, 1, 2]).unwrap();
        let pixels =
            Plane::of(&cube, false).pixels(&Array::F64((0..6).map(f64::from).collect()), |x| x).unwrap();
        assert_eq!(pixels, [2.0, 3.0]);
    }
}

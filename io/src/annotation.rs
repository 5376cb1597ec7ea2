//! What stands beside the cells of a picture: a line of words above them, and at their right a bar of the colours with the
//! values at its ends and in its middle.

use std::convert::Infallible;

use abide_core::{Result, memory};
use embedded_graphics::Drawable as _;
use embedded_graphics::Pixel;
use embedded_graphics::geometry::{OriginDimensions, Point, Size};
use embedded_graphics::mono_font::MonoTextStyle;
use embedded_graphics::mono_font::ascii::FONT_6X10;
use embedded_graphics::pixelcolor::BinaryColor;
use embedded_graphics::prelude::DrawTarget;
use embedded_graphics::text::{Baseline, Text};

use super::colour::{Plane, Range};

/// Pixels between parts.
const GAP: usize = 4;

/// The bar's width in pixels, and its least height: three lines of words stand beside it.
const BAR: (usize, usize) = (12, 48);

/// The size of a letter.
const LETTER: (usize, usize) = (6, 10);

/// The most letters of a value beside the bar.
const LETTERS: usize = 9;

/// A picture of a plane, with or without what stands beside it.
pub(super) struct Layout {
    plane: (usize, usize),
    is_annotated: bool,
}

/// The pixels of what stands beside the cells.
pub(super) struct Inks<P, F> {
    /// The ground.
    pub paper: P,
    /// Words.
    pub ink: P,
    /// The colour at a place of the bar: 0 at its foot, 1 at its top.
    pub at: F,
}

impl Layout {
    pub(super) fn of(plane: &Plane, is_annotated: bool) -> Layout {
        Layout { plane: (plane.width, plane.height), is_annotated }
    }

    /// Returns the picture's width and height in pixels.
    pub(super) fn size(&self) -> (usize, usize) {
        let (width, height) = self.plane;
        match self.is_annotated {
            true => (self.bar() + BAR.0 + LETTERS * LETTER.0 + 3 * GAP, self.top() + height.max(BAR.1)),
            false => (width, height),
        }
    }

    /// Returns the picture of these cells, whose colours have this range.
    ///
    /// # Errors
    ///
    /// [`abide_core::Error::Limit`] where there is no memory for it.
    pub(super) fn draw<P: Copy>(
        &self,
        cells: Vec<P>,
        inks: &Inks<P, impl Fn(f64) -> P>,
        range: Range,
        words: &str,
    ) -> Result<Vec<P>> {
        if !self.is_annotated {
            return Ok(cells);
        }
        let (width, height) = self.size();
        let mut pixels = memory::reserved(width * height, "a picture", "write .npy")?;
        pixels.resize(width * height, inks.paper);
        for (row, cells) in cells.chunks_exact(self.plane.0.max(1)).enumerate() {
            let begin = (self.top() + row) * width;
            pixels[begin..begin + cells.len()].copy_from_slice(cells);
        }
        let rows = height - self.top();
        for row in 0..rows {
            let begin = (self.top() + row) * width + self.bar();
            pixels[begin..begin + BAR.0].fill((inks.at)(1.0 - row as f64 / (rows - 1) as f64));
        }
        let mut canvas = Canvas { pixels, width, height, ink: inks.ink };
        canvas.write(words, GAP, GAP / 2);
        let beside = self.bar() + BAR.0 + GAP;
        let middle = 0.5 * range.low + 0.5 * range.high;
        for (value, row) in [(range.high, 0), (middle, (rows - LETTER.1) / 2), (range.low, rows - LETTER.1)] {
            canvas.write(&short(value), beside, self.top() + row);
        }
        Ok(canvas.pixels)
    }

    /// Returns where the cells begin, below the words.
    fn top(&self) -> usize {
        LETTER.1 + GAP
    }

    /// Returns where the bar begins, at the right of the cells.
    fn bar(&self) -> usize {
        self.plane.0 + 2 * GAP
    }
}

/// Returns what stands above a field's picture.
pub(super) fn heading(field: &str, step: u64) -> String {
    format!("{field}, step {step}")
}

/// Returns a number with four digits at most, in as few letters as are kept for it.
fn short(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || (1e-3..1e5).contains(&size) {
        // Digits before the point count too.
        let before = if size >= 1.0 { size.log10().floor() as usize + 1 } else { 1 };
        let fixed = format!("{value:.*}", 4_usize.saturating_sub(before));
        return match fixed.contains('.') {
            true => fixed.trim_end_matches('0').trim_end_matches('.').to_owned(),
            false => fixed,
        };
    }
    format!("{value:.2e}")
}

/// Pixels on which words are written.
struct Canvas<P> {
    pixels: Vec<P>,
    width: usize,
    height: usize,
    ink: P,
}

impl<P: Copy> Canvas<P> {
    /// Writes words whose upper left corner is here; what has no room is left out.
    fn write(&mut self, words: &str, x: usize, y: usize) {
        let style = MonoTextStyle::new(&FONT_6X10, BinaryColor::On);
        let at = Point::new(i32::try_from(x).unwrap_or(i32::MAX), i32::try_from(y).unwrap_or(i32::MAX));
        let Ok(_) = Text::with_baseline(words, at, style, Baseline::Top).draw(self);
    }
}

impl<P> OriginDimensions for Canvas<P> {
    fn size(&self) -> Size {
        let side = |length| u32::try_from(length).unwrap_or(u32::MAX);
        Size::new(side(self.width), side(self.height))
    }
}

impl<P: Copy> DrawTarget for Canvas<P> {
    type Color = BinaryColor;
    type Error = Infallible;

    fn draw_iter<I: IntoIterator<Item = Pixel<BinaryColor>>>(&mut self, pixels: I) -> Result<(), Infallible> {
        for Pixel(Point { x, y }, colour) in pixels {
            let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y)) else { continue };
            if colour.is_on() && x < self.width && y < self.height {
                self.pixels[y * self.width + x] = self.ink;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use abide_core::Shape;

    use super::*;

    fn drawn(width: usize, height: usize, words: &str) -> (Vec<i32>, usize, usize) {
        let plane = Plane::of(&Shape::new(&[height, width]).unwrap());
        let layout = Layout::of(&plane, true);
        let cells: Vec<i32> = (0..(width * height) as i32).map(|cell| 1000 + cell).collect();
        let inks = Inks { paper: -1, ink: -2, at: |place: f64| (place * 100.0).round() as i32 };
        let range = Range { low: -1.0, high: 3.0 };
        let (columns, rows) = layout.size();
        (layout.draw(cells, &inks, range, words).unwrap(), columns, rows)
    }

    #[test]
    fn cells_bar_and_words_have_their_places() {
        for (width, height) in [(1, 1), (7, 5), (40, 90)] {
            let (pixels, columns, rows) = drawn(width, height, "u");
            assert_eq!(pixels.len(), columns * rows);
            let top = LETTER.1 + GAP;
            for (x, y) in [(0, 0), (width - 1, height - 1)] {
                assert_eq!(pixels[(top + y) * columns + x], 1000 + (y * width + x) as i32);
            }
            let bar = width + 2 * GAP;
            assert_eq!(pixels[top * columns + bar], 100);
            assert_eq!(pixels[(rows - 1) * columns + bar + BAR.0 - 1], 0);
            let ink = |ys: std::ops::Range<usize>, from: usize| {
                ys.flat_map(|y| (from..columns).map(move |x| (x, y)))
                    .filter(|(x, y)| pixels[y * columns + x] == -2)
                    .count()
            };
            let beside = bar + BAR.0;
            assert!(ink(0..top, 0) > 4, "no word");
            assert!(ink(top..top + LETTER.1, beside) > 4, "no value at the top");
            assert!(ink(rows - LETTER.1..rows, beside) > 4, "no value at the foot");
            assert_eq!(pixels.iter().filter(|pixel| **pixel >= 1000).count(), width * height);
        }
    }

    #[test]
    fn words_without_room_are_left_out() {
        let (pixels, columns, rows) = drawn(3, 3, &"long words ".repeat(50));
        assert_eq!(pixels.len(), columns * rows);
    }

    #[test]
    fn values_are_short() {
        let cases = [
            (0.0, "0"),
            (-0.25, "-0.25"),
            (1.0 / 3.0, "0.333"),
            (1234.5, "1234"),
            (99_999.4, "99999"),
            (100.0, "100"),
            (12.5, "12.5"),
            (1e-3, "0.001"),
            (-1.5e-300, "-1.50e-300"),
            (6.02e23, "6.02e23"),
        ];
        for (value, expected) in cases {
            assert_eq!(short(value), expected);
        }
        assert!(cases.iter().all(|(value, _)| short(*value).len() <= LETTERS + 1));
    }
}

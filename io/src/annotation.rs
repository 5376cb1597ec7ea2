//! What stands beside the cells of a picture: a line of words above them, axes with the cells' indices at their left and below
//! them, and at their right a bar of the colours with its values.

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

use super::Range;
use super::colour::Plane;

/// Pixels between parts.
const GAP: usize = 4;

/// The bar's width in pixels, and its least height: three lines of words stand beside it.
const BAR: (usize, usize) = (12, 48);

/// The height in pixels from which the bar has five values instead of three.
const TALL: usize = 120;

/// The size of a letter.
const LETTER: (usize, usize) = (6, 10);

/// The most letters of a value beside the bar.
const LETTERS: usize = 9;

/// The length of the mark of an index or a value.
const TICK: usize = 3;

/// A picture of a plane, with or without what stands beside it.
pub(super) struct Layout {
    plane: (usize, usize),
    /// The names of the axes of rows and columns; none for the rows of a strip.
    axes: [Option<&'static str>; 2],
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
        Layout { plane: (plane.width, plane.height), axes: plane.axes, is_annotated }
    }

    /// Returns the picture's width and height in pixels.
    pub(super) fn size(&self) -> (usize, usize) {
        let (width, height) = self.plane;
        if !self.is_annotated {
            return (width, height);
        }
        let below = GAP + TICK + 2 * LETTER.1;
        (
            self.bar() + BAR.0 + TICK + LETTERS * LETTER.0 + 3 * GAP,
            self.top() + (height + below).max(BAR.1) + GAP / 2,
        )
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
            let begin = (self.top() + row) * width + self.left();
            pixels[begin..begin + cells.len()].copy_from_slice(cells);
        }
        let rows = self.plane.1.max(BAR.1);
        for row in 0..rows {
            let begin = (self.top() + row) * width + self.bar();
            pixels[begin..begin + BAR.0].fill((inks.at)(1.0 - row as f64 / (rows - 1) as f64));
        }
        let mut canvas = Canvas { pixels, width, height, ink: inks.ink };
        canvas.write(words, self.left(), GAP / 2);
        self.write_values(&mut canvas, range, rows);
        self.write_columns(&mut canvas);
        if let Some(name) = self.axes[0] {
            self.write_rows(&mut canvas, name);
        }
        Ok(canvas.pixels)
    }

    /// Writes the values beside the bar, which is of so many rows.
    fn write_values<P: Copy>(&self, canvas: &mut Canvas<P>, range: Range, rows: usize) {
        let last = if rows < TALL { 2 } else { 4 };
        let beside = self.bar() + BAR.0;
        for number in 0..=last {
            let share = number as f64 / last as f64;
            let value = (1.0 - share) * range.high + share * range.low;
            // What rounding leaves of 0.
            let is_zero = value.abs() < 1e-12 * range.high.abs().max(range.low.abs());
            let value = if is_zero { 0.0 } else { value };
            canvas.line((beside, self.top() + number * (rows - 1) / last), (TICK, 1));
            let row = number * (rows - LETTER.1) / last;
            canvas.write(&short(value), beside + TICK + GAP / 2, self.top() + row);
        }
    }

    /// Writes the axis below the cells.
    fn write_columns<P: Copy>(&self, canvas: &mut Canvas<P>) {
        let (width, height) = self.plane;
        let (left, below) = (self.left(), self.top() + height);
        canvas.line((left, below), (width, 1));
        let labels = below + 1 + TICK;
        let wide = LETTER.0 * digits(width);
        for index in ticks(width, wide + 2 * LETTER.0) {
            canvas.line((left + index, below), (1, 1 + TICK));
            let label = index.to_string();
            let long = LETTER.0 * label.len();
            let at = (left + index).saturating_sub(long / 2).min(left + width + GAP - long.min(left));
            canvas.write(&label, at, labels);
        }
        if let Some(name) = self.axes[1] {
            let at = left + width / 2 - (LETTER.0 * name.len() / 2).min(width / 2);
            canvas.write(name, at, labels + LETTER.1);
        }
    }

    /// Writes the axis at the left of the cells, its name from top to bottom.
    fn write_rows<P: Copy>(&self, canvas: &mut Canvas<P>, name: &str) {
        let (left, top, height) = (self.left(), self.top(), self.plane.1);
        canvas.line((left - 1, top), (1, height + 1));
        for index in ticks(height, 3 * LETTER.1) {
            canvas.line((left - 1 - TICK, top + index), (TICK, 1));
            let label = index.to_string();
            let at = left - TICK - GAP / 2 - LETTER.0 * label.len();
            canvas.write(&label, at, top + index - LETTER.1 / 2);
        }
        let begin = top + (height / 2).saturating_sub(LETTER.1 * name.len() / 2);
        for (number, letter) in name.chars().enumerate() {
            canvas.write(letter.encode_utf8(&mut [0; 4]), GAP / 2, begin + number * LETTER.1);
        }
    }

    /// Returns where the cells begin, below the words.
    fn top(&self) -> usize {
        LETTER.1 + GAP
    }

    /// Returns where the cells begin, at the right of the rows' axis.
    fn left(&self) -> usize {
        match self.axes[0] {
            Some(_) => GAP + LETTER.0 * (1 + digits(self.plane.1)) + TICK + GAP,
            None => GAP + LETTER.0 / 2,
        }
    }

    /// Returns where the bar begins, at the right of the cells.
    fn bar(&self) -> usize {
        self.left() + self.plane.0 + 3 * GAP
    }
}

/// Returns the digits of the largest index of so many.
fn digits(count: usize) -> usize {
    count.saturating_sub(1).to_string().len()
}

/// Returns the indices that are marked of so many, a round number apart and at least `room`, a pixel each.
fn ticks(count: usize, room: usize) -> impl Iterator<Item = usize> {
    let round = (0..).flat_map(|power| [1, 2, 5].map(|digit| digit * 10_usize.saturating_pow(power)));
    let step = round.into_iter().find(|step| *step >= room).unwrap_or(usize::MAX);
    (0..count).step_by(step)
}

/// Returns what stands above a field's picture.
pub(super) fn heading(field: &str, step: u64, plane: &Plane) -> String {
    match plane.slice {
        Some(slice) => format!("{field}, step {step}, z = {slice}"),
        None => format!("{field}, step {step}"),
    }
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
    /// Fills a box of this size, whose upper left corner is here.
    fn line(&mut self, (x, y): (usize, usize), (width, height): (usize, usize)) {
        for row in y..(y + height).min(self.height) {
            let [begin, end] = [x, x + width].map(|at| row * self.width + at.min(self.width));
            self.pixels[begin..end].fill(self.ink);
        }
    }

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
        let plane = Plane::of(&Shape::new(&[height, width]).unwrap(), false);
        let layout = Layout::of(&plane, true);
        let cells: Vec<i32> = (0..(width * height) as i32).map(|cell| 1000 + cell).collect();
        let inks = Inks { paper: -1, ink: -2, at: |place: f64| (place * 100.0).round() as i32 };
        let range = Range { low: -1.0, high: 3.0 };
        let (columns, rows) = layout.size();
        (layout.draw(cells, &inks, range, words).unwrap(), columns, rows)
    }

    #[test]
    fn cells_bar_axes_and_words_have_their_places() {
        for (width, height) in [(1, 1), (7, 5), (40, 90), (300, 200)] {
            let (pixels, columns, rows) = drawn(width, height, "u");
            assert_eq!(pixels.len(), columns * rows);
            let top = LETTER.1 + GAP;
            let left = pixels.iter().position(|pixel| *pixel == 1000).unwrap() % columns;
            for (x, y) in [(0, 0), (width - 1, height - 1)] {
                assert_eq!(pixels[(top + y) * columns + left + x], 1000 + (y * width + x) as i32);
            }
            let (bar, foot) = (left + width + 3 * GAP, top + height.max(BAR.1));
            assert_eq!(pixels[top * columns + bar], 100);
            assert_eq!(pixels[(foot - 1) * columns + bar + BAR.0 - 1], 0);
            let ink = |ys: std::ops::Range<usize>, xs: std::ops::Range<usize>| {
                ys.flat_map(|y| xs.clone().map(move |x| (x, y)))
                    .filter(|(x, y)| pixels[y * columns + x] == -2)
                    .count()
            };
            let beside = bar + BAR.0 + TICK;
            assert!(ink(0..top, left..columns) > 4, "no word");
            assert!(ink(top..top + LETTER.1, beside..columns) > 4, "no value at the top");
            assert!(ink(foot - LETTER.1..foot, beside..columns) > 4, "no value at the foot");
            let below = top + height;
            assert!(ink(below + 1 + TICK..below + 1 + TICK + LETTER.1, 0..bar) > 4, "no index below");
            assert!(ink(top..below, 0..left - 1) > 4 || height < 8, "no index at the left");
            assert_eq!(ink(below..below + 1, left..left + width), width, "no axis below");
            assert_eq!(ink(top..below, left - 1..left), height, "no axis at the left");
            assert_eq!(pixels.iter().filter(|pixel| **pixel >= 1000).count(), width * height);
        }
    }

    #[test]
    fn marks_stand_at_round_indices() {
        let of = |count, room| ticks(count, room).collect::<Vec<_>>();
        assert_eq!(of(512, 30), [0, 50, 100, 150, 200, 250, 300, 350, 400, 450, 500]);
        assert_eq!(of(100, 20), [0, 20, 40, 60, 80]);
        assert_eq!((of(1, 30), of(8192, 1001)), (vec![0], vec![0, 2000, 4000, 6000, 8000]));
    }

    #[test]
    fn a_strip_has_an_axis_below_alone() {
        let plane = Plane::of(&Shape::new(&[200]).unwrap(), false);
        let layout = Layout::of(&plane, true);
        assert_eq!(layout.axes, [None, Some("x")]);
        let cells = vec![1000; plane.width * plane.height];
        let inks = Inks { paper: -1, ink: -2, at: |_: f64| 0 };
        let pixels = layout.draw(cells, &inks, Range { low: 0.0, high: 1.0 }, "").unwrap();
        let (columns, rows) = layout.size();
        assert_eq!(pixels.len(), columns * rows);
        assert!((0..rows).all(|row| pixels[row * columns] == -1));
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

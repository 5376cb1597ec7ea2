//! Properties over temperature or pressure, as a picture: a panel each.

use abide::{Error, Result};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::evaluate::{Values, Wanted};

const WIDTH: u32 = 1080;
/// The height of a row of panels, and of what stands above them.
const ROW: u32 = 280;
const TITLE: u32 = 40;
const COLUMNS: usize = 2;
/// The most curves of a panel that a legend can distinguish.
pub const CURVES: usize = 8;

/// Curves of all properties over one quantity, one curve for each value of the other.
pub struct Curves<'a> {
    pub title: &'a str,
    /// The name and unit of the quantity along the axis, and its values.
    pub axis: (&'a str, &'a [f64]),
    /// The label of each curve, which distinguishes it from the others.
    pub labels: Vec<String>,
    /// The columns of a table of them.
    pub wanted: &'a Wanted,
    /// The values of the columns, curve after curve.
    pub values: &'a Values,
}

impl Curves<'_> {
    /// Draws all panels.
    pub fn draw(&self) -> Result<String> {
        let fault = |error: &dyn std::fmt::Display| {
            Error::invalid(
                "the picture of the properties",
                error.to_string(),
                "leave --output out, or take --csv",
            )
        };
        let columns = &self.wanted.columns;
        let rows = columns.len().div_ceil(COLUMNS);
        let size = (WIDTH, TITLE + ROW * rows as u32);
        let (name, along) = self.axis;
        let (first, last) = (along[0], along[along.len() - 1]);
        let right = if last > first { last } else { first + 1.0 };
        let mut svg = String::new();
        {
            let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
            area.fill(&WHITE).map_err(|e| fault(&e))?;
            let area = area.titled(self.title, ("sans-serif", 18)).map_err(|e| fault(&e))?;
            // All panels have the same curves: one legend stands above them, over none.
            let (legend, area) = area.split_vertically(if self.labels.len() > 1 {
                LEGEND * self.legend().len() as i32
            } else {
                0
            });
            for (row, labels) in self.legend().iter().enumerate().filter(|_| self.labels.len() > 1) {
                let middle = row as i32 * LEGEND + LEGEND / 2;
                for &(left, number) in labels {
                    let colour = Palette99::pick(number).to_rgba().stroke_width(2);
                    let line = PathElement::new([(left, middle), (left + LINE, middle)], colour);
                    legend.draw(&line).map_err(|e| fault(&e))?;
                    let style = ("sans-serif", 14).into_text_style(&legend);
                    let style = style.pos(Pos::new(HPos::Left, VPos::Center));
                    let text = Text::new(self.labels[number].clone(), (left + LINE + 6, middle), style);
                    legend.draw(&text).map_err(|e| fault(&e))?;
                }
            }
            let panels = area.split_evenly((rows, COLUMNS));
            for ((panel, (property, name_of)), values) in panels.iter().zip(columns).zip(self.values) {
                let finite = || values.iter().copied().filter(|value| value.is_finite());
                let (low, high) =
                    (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
                let (low, high) = if low < high {
                    (low - 0.05 * (high - low), high + 0.05 * (high - low))
                } else {
                    let middle = if low.is_finite() { low } else { 0.0 };
                    (middle - 0.5 * middle.abs().max(1e-9), middle + 0.5 * middle.abs().max(1e-9))
                };
                let (ticks, along_ticks) = (Ticks::of(low, high), Ticks::of(first, right));
                let mut chart = ChartBuilder::on(panel)
                    .caption(
                        format!("{}, {name_of} in {}", property.about, property.unit),
                        ("sans-serif", 14),
                    )
                    .margin(10)
                    .margin_right(along_ticks.width(right) / 2 + 10)
                    .x_label_area_size(36)
                    .y_label_area_size(ticks.width(low).max(ticks.width(high)) + 12)
                    .build_cartesian_2d(first..right, low..high)
                    .map_err(|e| fault(&e))?;
                chart
                    .configure_mesh()
                    .light_line_style(WHITE)
                    .x_desc(name)
                    .x_labels(6)
                    .x_label_formatter(&|x| along_ticks.label(*x))
                    .y_label_formatter(&|y| ticks.label(*y))
                    .draw()
                    .map_err(|e| fault(&e))?;
                for number in 0..self.labels.len() {
                    let colour = Palette99::pick(number).to_rgba();
                    let curve = &values[number * along.len()..(number + 1) * along.len()];
                    let points = along.iter().copied().zip(curve.iter().copied());
                    let points = points.filter(|(_, value)| value.is_finite());
                    chart
                        .draw_series(LineSeries::new(points, colour.stroke_width(2)))
                        .map_err(|e| fault(&e))?;
                }
            }
            area.present().map_err(|e| fault(&e))?;
        }
        Ok(svg)
    }

    /// Returns the rows of the legend: of each label its left end in pixels, and its number.
    fn legend(&self) -> Vec<Vec<(i32, usize)>> {
        let mut rows = vec![Vec::new()];
        let mut left = EDGE;
        for (number, label) in self.labels.iter().enumerate() {
            let width = LINE + 6 + LETTER * label.chars().count() as i32 + 24;
            if left + width > WIDTH as i32 && left > EDGE {
                rows.push(Vec::new());
                left = EDGE;
            }
            if let Some(row) = rows.last_mut() {
                row.push((left, number));
            }
            left += width;
        }
        rows
    }
}

/// The height of a row of the legend, the length of its lines, and its distance from the edge, in pixels.
const LEGEND: i32 = 22;
const LINE: i32 = 18;
const EDGE: i32 = 40;
/// The width of a letter of a label, in pixels, at the most.
const LETTER: i32 = 8;

/// How the numbers along an axis are written: with as many digits as distinguish neighbouring ticks.
struct Ticks {
    /// Less than this is 0: what a sum of steps has left.
    least: f64,
    digits: usize,
    is_scientific: bool,
}

impl Ticks {
    fn of(low: f64, high: f64) -> Ticks {
        let (width, largest) = (high - low, low.abs().max(high.abs()));
        // Some ten ticks stand along an axis, at round distances.
        let step = (width / 20.0).max(f64::MIN_POSITIVE);
        let is_scientific = !(1e-2..1e5).contains(&largest);
        let digits = if is_scientific { (largest / step).log10() } else { -step.log10() };
        Ticks { least: width * 1e-6, digits: digits.ceil().clamp(0.0, 9.0) as usize, is_scientific }
    }

    fn label(&self, value: f64) -> String {
        let digits = self.digits;
        let text = match value {
            value if value.abs() < self.least => return "0".to_owned(),
            value if self.is_scientific => format!("{value:.digits$e}"),
            value => format!("{value:.digits$}"),
        };
        // Trailing zeros carry no information.
        let (number, exponent) = text.split_once('e').map_or((&text[..], None), |(n, e)| (n, Some(e)));
        let number =
            if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
        exponent.map_or(number.to_owned(), |exponent| format!("{number}e{exponent}"))
    }

    /// Returns the width of a label, in pixels, at the most.
    fn width(&self, value: f64) -> i32 {
        let text = match self.is_scientific {
            true => format!("{value:.*e}", self.digits),
            false => format!("{value:.*}", self.digits),
        };
        text.len() as i32 * LETTER
    }
}

#[cfg(test)]
mod tests {
    use abide::gas::{Mixture, States, Table};

    use super::*;

    #[test]
    fn ticks_are_numbers_that_people_read() {
        for (low, high, value, label) in [
            (-0.01, 0.2, 3.388e-21, "0"),
            (-0.01, 0.2, 0.05, "0.05"),
            (150.0, 1000.0, 400.0, "400"),
            (1.5, 1.62, 1.56, "1.56"),
            (1e6, 1e7, 4e6, "4e6"),
            (5.0e6, 5.02e6, 5.004e6, "5.004e6"),
            (1e-5, 4e-5, 2.5e-5, "2.5e-5"),
            (-300.0, 100.0, -250.0, "-250"),
        ] {
            let ticks = Ticks::of(low, high);
            assert_eq!(ticks.label(value), label);
            assert!(label.len() as i32 * LETTER <= ticks.width(low).max(ticks.width(high)), "{label}");
        }
    }

    #[test]
    fn a_legend_stands_over_no_curve_and_within_the_picture() {
        let gas = Mixture::of(&Table::builtin().unwrap(), &["N2"]).unwrap();
        let wanted = Wanted::new(&gas, States::LOOPS, &[]).unwrap();
        let values: Values = vec![(0..16).map(f64::from).collect(); wanted.columns.len()];
        for count in [1, 2, 8] {
            let curves = Curves {
                title: "N2",
                axis: ("T in K", &[100.0, 200.0]),
                labels: (0..count)
                    .map(|number| format!("{} Pa", 1e6 + f64::from(number) * 123_456.7))
                    .collect(),
                wanted: &wanted,
                values: &values,
            };
            for row in curves.legend() {
                assert!(row.iter().all(|(left, number)| {
                    *left + LINE + 6 + LETTER * curves.labels[*number].len() as i32 <= WIDTH as i32
                }));
            }
            let svg = curves.draw().unwrap();
            // Each label is written once, not in every panel.
            let count_of = |label: &String| svg.matches(label.as_str()).count();
            assert!(curves.labels.iter().all(|label| count_of(label) == usize::from(count > 1)), "{count}");
        }
    }
}

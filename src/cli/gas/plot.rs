//! Properties over temperature or pressure, as a picture: a panel each.

use abide::gas::Property;
use abide::{Error, Result};
use plotters::prelude::*;

use super::evaluate::{NAMES, Values};

const SIZE: (u32, u32) = (1080, 1160);
const COLUMNS: usize = 2;
/// The most curves of a panel that a legend can tell apart.
pub const CURVES: usize = 8;

/// Curves of all properties over one quantity, one curve for each value of the other.
pub struct Curves<'a> {
    pub title: &'a str,
    /// The name and unit of the quantity along the axis, and its values.
    pub axis: (&'a str, &'a [f64]),
    /// What tells the curves apart, of each.
    pub labels: Vec<String>,
    /// The values of the properties, curve after curve.
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
        let properties = Property::named(&NAMES)?;
        let (name, along) = self.axis;
        let (first, last) = (along[0], along[along.len() - 1]);
        let right = if last > first { last } else { first + 1.0 };
        let mut svg = String::new();
        {
            let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
            area.fill(&WHITE).map_err(|e| fault(&e))?;
            let area = area.titled(self.title, ("sans-serif", 18)).map_err(|e| fault(&e))?;
            let panels = area.split_evenly((properties.len().div_ceil(COLUMNS), COLUMNS));
            for ((panel, property), values) in panels.iter().zip(&properties).zip(self.values) {
                let finite = || values.iter().copied().filter(|value| value.is_finite());
                let (low, high) =
                    (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
                let (low, high) = if low < high {
                    (low - 0.05 * (high - low), high + 0.05 * (high - low))
                } else {
                    let middle = if low.is_finite() { low } else { 0.0 };
                    (middle - 0.5 * middle.abs().max(1e-9), middle + 0.5 * middle.abs().max(1e-9))
                };
                let mut chart = ChartBuilder::on(panel)
                    .caption(
                        format!("{}, {} in {}", property.about, property.name, property.unit),
                        ("sans-serif", 14),
                    )
                    .margin(10)
                    .x_label_area_size(36)
                    .y_label_area_size(72)
                    .build_cartesian_2d(first..right, low..high)
                    .map_err(|e| fault(&e))?;
                chart
                    .configure_mesh()
                    .light_line_style(WHITE)
                    .x_desc(name)
                    .y_label_formatter(&|y| format!("{y:.3e}"))
                    .draw()
                    .map_err(|e| fault(&e))?;
                for (number, label) in self.labels.iter().enumerate() {
                    let colour = Palette99::pick(number).to_rgba();
                    let curve = &values[number * along.len()..(number + 1) * along.len()];
                    let points = along.iter().copied().zip(curve.iter().copied());
                    let points = points.filter(|(_, value)| value.is_finite());
                    let series = chart
                        .draw_series(LineSeries::new(points, colour.stroke_width(2)))
                        .map_err(|e| fault(&e))?;
                    if self.labels.len() > 1 {
                        series.label(label).legend(move |(x, y)| {
                            PathElement::new([(x, y), (x + 14, y)], colour.stroke_width(2))
                        });
                    }
                }
                if self.labels.len() > 1 {
                    let labels = &mut chart.configure_series_labels();
                    labels.background_style(WHITE.mix(0.8)).draw().map_err(|e| fault(&e))?;
                }
            }
            area.present().map_err(|e| fault(&e))?;
        }
        Ok(svg)
    }
}

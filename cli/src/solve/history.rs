//! The residual by iteration, as a table and as a picture.

use std::fmt::Write as _;

use abide::solve::Report;
use abide::{Error, Result};
use plotters::prelude::*;

const SIZE: (u32, u32) = (720, 440);
/// The most points of a curve that a picture can show separately.
const POINTS: usize = 1500;

/// Returns lines of `iteration,residual`, with the norm of each iterate's residual.
pub fn csv(report: &Report) -> String {
    let mut text = String::from("iteration,residual\n");
    for (iteration, residual) in report.history.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{iteration},{residual:e}");
    }
    text
}

/// Plots the history on a logarithmic axis, with the threshold as a dashed line.
pub fn plot(report: &Report) -> Result<String> {
    let fault = |error: &dyn std::fmt::Display| {
        Error::invalid(
            "the picture of the residual",
            error.to_string(),
            "leave --plot out, or take --history",
        )
    };
    let every = report.history.len().div_ceil(POINTS).max(1);
    let last = report.history.len().saturating_sub(1);
    let all = report.history.iter().copied().enumerate();
    // A logarithm has no place for zeros and for values that are not finite.
    let points: Vec<(f64, f64)> = all
        .filter(|&(k, r)| (k % every == 0 || k == last) && r > 0.0 && r.is_finite())
        .map(|(k, residual)| (k as f64, residual))
        .collect();
    let threshold = Some(report.threshold).filter(|threshold| *threshold > 0.0);
    let values = || points.iter().map(|point| point.1).chain(threshold);
    let low = values().fold(f64::INFINITY, f64::min).min(1.0);
    let high = values().fold(0.0, f64::max);
    let (low, high) = if high > 0.0 { (low / 2.0, high * 2.0) } else { (1e-16, 1.0) };
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&WHITE).map_err(|e| fault(&e))?;
        let right = (last as f64).max(1.0);
        let mut chart = ChartBuilder::on(&area)
            .caption(report.method, ("sans-serif", 16))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(70)
            .build_cartesian_2d(0.0..right, (low..high).log_scale())
            .map_err(|e| fault(&e))?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .x_desc("iteration")
            .y_desc("norm of the residual")
            .x_label_formatter(&|x| format!("{x:.0}"))
            .y_label_formatter(&|y| format!("{y:.0e}"))
            .draw()
            .map_err(|e| fault(&e))?;
        let blue = RGBColor(0x1f, 0x5a, 0xa8);
        chart.draw_series(LineSeries::new(points, blue.stroke_width(2))).map_err(|e| fault(&e))?;
        if let Some(threshold) = threshold {
            let line =
                DashedLineSeries::new([(0.0, threshold), (right, threshold)], 6, 4, BLACK.stroke_width(1));
            chart.draw_series(line).map_err(|e| fault(&e))?;
        }
        area.present().map_err(|e| fault(&e))?;
    }
    Ok(svg)
}

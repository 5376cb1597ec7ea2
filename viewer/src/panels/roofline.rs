//! The roofline: the rate that the device allows for a number of operations per byte, and the run's place.

use abide::Plan;
use egui::{Color32, RichText, Ui};
use egui_plot::{AxisHints, Line, PlotPoints, Points};

use crate::plot;

/// Decades shown along the axis of operations per byte.
const INTENSITY: (f64, f64) = (-2.0, 3.0);

/// Shows the roof of the plan's device, and the run at this rate in GCells/s.
pub fn show(ui: &mut Ui, plan: &Plan, rate: Option<f64>) {
    let traffic = &plan.traffic;
    let bytes = plan.project(1000).memory_bytes / traffic.cells / 1000.0;
    if !(traffic.flops > 0.0
        && traffic.flops_per_second > 0.0
        && plan.device.memory_bandwidth > 0.0
        && bytes > 0.0)
    {
        ui.label(RichText::new("There is nothing to draw: no operations, or no known rates.").weak());
        return;
    }
    let intensity = traffic.flops / bytes;
    let roof = |log_intensity: f64| {
        let allowed = 10f64.powf(log_intensity) * plan.device.memory_bandwidth;
        (allowed.min(traffic.flops_per_second) / 1e9).log10()
    };
    let ridge = (traffic.flops_per_second / plan.device.memory_bandwidth).log10();
    let dark = ui.visuals().dark_mode;
    let roof_colour = if dark { Color32::from_gray(190) } else { Color32::from_gray(70) };
    let own = plot::colour(ui, 1);
    let line = [INTENSITY.0, ridge.clamp(INTENSITY.0, INTENSITY.1), INTENSITY.1].map(|x| [x, roof(x)]);
    let x = intensity.log10();
    let done = rate.filter(|rate| *rate > 0.0).map(|rate| (rate * traffic.flops).log10());
    plot::still(ui, "roofline")
        .height(150.0)
        .include_y(done.map_or(roof(x) - 1.0, |y| y - 0.5))
        .custom_x_axes(vec![
            AxisHints::new_x()
                .label("operations a byte")
                .label_spacing(18.0..=34.0)
                .formatter(|mark, _| power(mark.value)),
        ])
        .y_axis_label("Gop/s")
        .x_grid_spacer(decades)
        .y_grid_spacer(decades)
        .y_axis_formatter(|mark, _| power(mark.value))
        .show(ui, |plot| {
            plot.line(
                Line::new("the device allows", PlotPoints::from(line.to_vec())).color(roof_colour).width(1.8),
            );
            let drop = done.unwrap_or_else(|| roof(x));
            let dotted = Line::new("this plan", PlotPoints::from(vec![[x, drop], [x, roof(x)]]));
            plot.line(dotted.color(own.gamma_multiply(0.6)).style(egui_plot::LineStyle::dashed_dense()));
            if let Some(y) = done {
                plot.points(Points::new("this run", PlotPoints::from(vec![[x, y]])).color(own).radius(5.0));
            }
        });
    let at = format!("{:.2} operations for each byte through device memory", intensity);
    let share = done.map_or_else(String::new, |y| {
        format!("; {:.1} % of what the roof allows", 100.0 * 10f64.powf(y - roof(x)))
    });
    ui.label(RichText::new(at + &share).small().weak());
}

fn decades(input: egui_plot::GridInput) -> Vec<egui_plot::GridMark> {
    let (low, high) = input.bounds;
    let range = low.ceil().max(-30.0) as i32..=high.floor().min(30.0) as i32;
    range.map(|power| egui_plot::GridMark { value: f64::from(power), step_size: 1.0 }).collect()
}

/// Formats a power of ten as a number.
fn power(exponent: f64) -> String {
    let value = 10f64.powf(exponent);
    if (-3.0..5.0).contains(&exponent) { format!("{value}") } else { format!("1e{exponent}") }
}

//! The page of the run's rate, and of the rate that the hardware allows.

use abide::backend::RunReport;
use egui::{RichText, Ui};
use egui_plot::{AxisHints, Line, PlotPoints};

use super::{compare, heading, plan, roofline, rows};
use crate::app::state::State;
use crate::plot;

/// Shows the page.
pub fn show(ui: &mut Ui, state: &mut State) {
    let Some(run) = &state.run else { return };
    heading(ui, "Rate");
    history(ui, &state.status.history);
    match &state.status.recent {
        Some(report) => figures(ui, report),
        None => {
            ui.label(RichText::new("It has not run yet.").weak());
        }
    }
    ui.separator();
    heading(ui, "Plan");
    ui.label(RichText::new(run.plan.summary()).small());
    plan::picture(ui, &run.plan);
    if ui.button("Loops").on_hover_text("The program's loops: which waits for which (D)").clicked() {
        state.loops.open = true;
    }
    ui.separator();
    heading(ui, "Roofline");
    let rate = state.status.recent.as_ref().map(|report| report.gcells_per_s);
    roofline::show(ui, &run.plan, rate);
    ui.separator();
    compare::show(ui, state);
}

/// Draws the GCells/s over time.
fn history(ui: &mut Ui, history: &[[f64; 2]]) {
    let colour = plot::colour(ui, 0);
    plot::still(ui, "history")
        .height(110.0)
        .include_y(0.0)
        .include_x(0.0)
        .y_axis_label("GCells/s")
        .custom_x_axes(vec![
            AxisHints::new_x().label_spacing(18.0..=34.0).formatter(|mark, _| format!("{} s", mark.value)),
        ])
        .show(ui, |plot| {
            let line = Line::new("GCells/s", PlotPoints::from(history.to_vec()));
            plot.line(line.color(colour).width(1.8));
        });
}

/// Shows the figures of the last half second.
fn figures(ui: &mut Ui, report: &RunReport) {
    let steps = report.steps.max(1) as f64;
    let share = 100.0 * report.share_of_projected_peak;
    rows(ui, "figures", |ui| {
        for (name, value) in [
            ("Rate", format!("{:.3} GCells/s", report.gcells_per_s)),
            ("A step", format!("{} ms", short(1e3 * report.seconds / steps))),
            ("Moved per step", bytes(report.bytes_moved / steps)),
            (
                "Bandwidth",
                format!("{}/s by the plan's model", bytes(report.bytes_moved / report.seconds.max(1e-12))),
            ),
            ("Projected peak", format!("{share:.1} % of it")),
            ("Device", report.device.clone()),
        ] {
            ui.label(name);
            ui.add(egui::Label::new(RichText::new(value).monospace()).wrap());
            ui.end_row();
        }
    });
}

/// Formats a value with three digits.
fn short(value: f64) -> String {
    let digits = (2 - value.abs().max(1e-9).log10().floor() as i32).clamp(0, 6) as usize;
    format!("{value:.digits$}")
}

/// Formats a number of bytes with its unit.
pub fn bytes(count: f64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB"];
    let mut value = count;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{} {}", if unit == 0 { format!("{value:.0}") } else { short(value) }, units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits() {
        assert_eq!(bytes(12.0), "12 B");
        assert_eq!(bytes(1234.0), "1.23 kB");
        assert_eq!(bytes(45.6e9), "45.6 GB");
        assert_eq!(short(0.01234), "0.0123");
    }
}

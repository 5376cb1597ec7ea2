//! The panel below the field: the run's computed scalars as curves, and their values now.

use abide::program::Scalar;
use egui::{Checkbox, Color32, Grid, RichText, ScrollArea, Ui};
use egui_plot::{AxisHints, Line, PlotPoints};

use crate::app::state::State;
use crate::field::exact;
use crate::plot;

/// Width of the names and values in points.
const WORDS: f32 = 210.0;
/// The scalar that curves can be drawn over, in place of the steps.
pub const TIME: &str = "time";

/// Shows the names with their values, and beside them the curves.
pub fn show(ui: &mut Ui, state: &mut State) {
    let scalars: Vec<(usize, Scalar)> = state.scalars().map(|(number, s)| (number, s.clone())).collect();
    ui.horizontal_top(|ui| {
        ui.vertical(|ui| {
            ui.set_width(WORDS);
            ScrollArea::vertical().auto_shrink(false).show(ui, |ui| words(ui, state, &scalars));
        });
        // There may be no room at all.
        if ui.available_width() > 1.0 && ui.available_height() > 1.0 {
            curves(ui, state, &scalars);
        }
    });
}

/// Shows which scalars there are, with their values, and what the curves are drawn over.
fn words(ui: &mut Ui, state: &mut State, scalars: &[(usize, Scalar)]) {
    Grid::new("scalars").num_columns(2).spacing([10.0, 3.0]).show(ui, |ui| {
        for (place, (number, scalar)) in scalars.iter().enumerate() {
            let colour = plot::colour(ui, place);
            let mut drawn = !state.curves.hidden.contains(&scalar.name);
            let name = RichText::new(&scalar.name).color(colour);
            if ui.add(Checkbox::new(&mut drawn, name)).on_hover_text(&scalar.about).changed() {
                state.curves.hidden.retain(|name| *name != scalar.name);
                if !drawn {
                    state.curves.hidden.push(scalar.name.clone());
                }
            }
            let newest = state.status.scalars.newest(*number);
            // A scalar that no step has made yet is NaN before the first step.
            let unmade = |value: &f64| value.is_nan() && state.status.step == 0;
            let value = newest.filter(|value| !unmade(value)).map_or("none yet".to_owned(), exact);
            ui.label(RichText::new(value).monospace());
            ui.end_row();
        }
    });
    if scalars.iter().any(|(_, scalar)| scalar.name == TIME) {
        ui.horizontal(|ui| {
            ui.radio_value(&mut state.curves.over_time, false, "over steps");
            ui.radio_value(&mut state.curves.over_time, true, "over time");
        });
    }
}

/// Draws the curves that are chosen.
fn curves(ui: &mut Ui, state: &State, scalars: &[(usize, Scalar)]) {
    let history = &state.status.scalars;
    let time = scalars.iter().find(|(_, s)| state.curves.over_time && s.name == TIME).map(|(n, _)| *n);
    let at = |values: &[f64], number: usize| values.get(number).copied().unwrap_or(f64::NAN);
    let colours: Vec<Color32> = (0..scalars.len()).map(|place| plot::colour(ui, place)).collect();
    plot::still(ui, "scalars")
        .height(ui.available_height())
        .custom_y_axes(vec![AxisHints::new_y().label_spacing(10.0..=20.0).min_thickness(44.0)])
        .x_axis_label(if time.is_some() { TIME } else { "step" })
        .show(ui, |drawn| {
            for ((number, scalar), colour) in scalars.iter().zip(colours) {
                if state.curves.hidden.contains(&scalar.name) {
                    continue;
                }
                let points: Vec<[f64; 2]> = history
                    .rows()
                    .map(|(step, row)| [time.map_or(step as f64, |time| at(row, time)), at(row, *number)])
                    .filter(|point| point[0].is_finite())
                    .collect();
                for part in plot::parts(&points) {
                    let id = (&scalar.name, part[0][0].to_bits());
                    let curve = Line::new(&scalar.name, PlotPoints::from(part.to_vec())).id(id);
                    drawn.line(curve.color(colour).width(1.8));
                }
            }
        });
}

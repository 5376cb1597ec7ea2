//! The bars above and below the field: the run's controls, and the status.

use egui::{Align, Button, DragValue, Layout, RichText, Ui};

use super::state::State;
use crate::engine::{Order, Speed, Tempo};
use crate::field::{exact, number};
use crate::panels::scalars::TIME;

/// Shows the run's controls.
pub fn controls(ui: &mut Ui, state: &mut State) {
    ui.horizontal(|ui| {
        if ui.button("Gallery").on_hover_text("All scenes (G)").clicked() {
            state.leave();
            return;
        }
        ui.separator();
        let tempo = state.status.tempo;
        let (text, about) = if tempo == Tempo::Running { ("Pause", "Space") } else { ("Run", "Run (Space)") };
        let run = Button::new(RichText::new(text).strong()).min_size(egui::vec2(76.0, 0.0));
        if ui.add(run).on_hover_text(about).clicked() {
            state.toggle();
        }
        if ui.button("Step").on_hover_text("One step (.)").clicked() {
            state.orders.push(Order::Advance(1));
        }
        if ui.button("Reset").on_hover_text("Back to the first step (R)").clicked() {
            state.orders.push(Order::Reset);
        }
        ui.separator();
        speed(ui, state);
        ui.separator();
        ui.label(RichText::new(format!("step {}", state.status.step)).monospace());
        // The rate needs the room more than this control.
        if ui.available_width() > 330.0 {
            ui.label(RichText::new(time(state)).weak()).on_hover_text("Simulated time");
        }
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            if ui.button("Keys").on_hover_text("What the keys do (F1)").clicked() {
                state.help = !state.help;
            }
            if let Some(report) = state.status.recent.as_ref().filter(|_| tempo == Tempo::Running) {
                let rate = format!("{:.3} GCells/s", report.gcells_per_s);
                ui.label(RichText::new(rate).monospace().strong());
            } else if tempo == Tempo::Comparing {
                ui.label(RichText::new("comparing…").weak());
            } else if tempo == Tempo::Paused {
                ui.label(RichText::new("paused").weak());
            }
            if let Some(frames) = state.status.recorded {
                ui.label(
                    RichText::new(format!("recording, {frames} frames")).color(ui.visuals().error_fg_color),
                );
            }
        });
    });
}

/// Formats the simulated time: the scalar that counts it, or by the model's own time step where it has one, else
/// in steps.
fn time(state: &State) -> String {
    let step = state.status.step;
    let counted = state.scalars().find(|(_, scalar)| scalar.name == TIME);
    if let Some(time) = counted.and_then(|(number, _)| state.status.scalars.newest(number)) {
        return format!("t = {}", number(time));
    }
    let own = state.problem().and_then(|problem| {
        let names = problem.program.parameters().iter().position(|p| p.name == "dt")?;
        problem.parameters.get(names).copied()
    });
    match own {
        Some(dt) => format!("t = {}", number(step as f64 * dt)),
        None => format!("t = {step} Δt"),
    }
}

fn speed(ui: &mut Ui, state: &mut State) {
    let mut fastest = state.speed == Speed::Fastest;
    let changed = ui.checkbox(&mut fastest, "as fast as possible").on_hover_text("Q").changed();
    let mut steps = match state.speed {
        Speed::PerFrame(steps) => steps,
        Speed::Fastest => 1,
    };
    let mut edited = false;
    if !fastest {
        let value = DragValue::new(&mut steps).range(1..=1_000_000).suffix(" steps per frame");
        edited = ui.name_inputs("Steps per frame", |ui| ui.add(value)).changed();
    }
    if changed || edited {
        state.speed = if fastest { Speed::Fastest } else { Speed::PerFrame(steps) };
        state.orders.push(Order::Speed(state.speed));
    }
}

/// Shows the value under the pointer, and which model runs on which backend.
pub fn status(ui: &mut Ui, state: &State) {
    ui.horizontal(|ui| {
        let Some(run) = &state.run else { return };
        let problem = &run.problem;
        let name = problem.program.fields().get(state.show.field).map_or("", String::as_str);
        let probe =
            state.frame.as_ref().and_then(|frame| frame.probe).filter(|probe| Some(probe.0) == state.pointed);
        let axes = problem.shape.dimensions();
        let text = match (state.pointed, probe) {
            (Some(cell), Some((_, value))) => format!("{name}{:?} = {}", &cell[3 - axes..], exact(value)),
            (Some(cell), None) => format!("{name}{:?}", &cell[3 - axes..]),
            _ => "point at a cell for its value".to_owned(),
        };
        ui.label(RichText::new(text).monospace());
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            let boundary = problem.boundaries_of(state.show.field).describe(axes);
            let what = format!("{} {} {}, {boundary}", run.setup.model, problem.shape, problem.dtype);
            ui.label(RichText::new(format!("{what}, on {}", run.backend)).weak()).on_hover_text(format!(
                "{}\n{}",
                run.plan.device.name,
                run.plan.summary()
            ));
            if let Some(frame) = state.frame.as_ref().filter(|frame| frame.non_finite > 0) {
                let text = format!("{} shown values are not finite", frame.non_finite);
                ui.label(RichText::new(text).color(ui.visuals().error_fg_color));
            }
        });
    });
}

//! The same problem run in two ways in turn, and the ratio of their rates.

use abide::{CachePolicy, Choice, Execution, backend};
use egui::{ComboBox, RichText, Ui};

use super::heading;
use crate::app::state::State;
use crate::engine::{Comparison, Order, Tempo, Variant};

/// Shows the two ways, the button and the result.
pub fn show(ui: &mut Ui, state: &mut State) {
    heading(ui, "Compare");
    for (number, variant) in state.versus.variants.iter_mut().enumerate() {
        ui.push_id(("way", number), |ui| way(ui, number, variant));
    }
    let comparing = state.status.tempo == Tempo::Comparing;
    ui.horizontal(|ui| {
        if comparing {
            if ui.button("Stop").clicked() {
                state.orders.push(Order::CompareNoMore);
            }
            ui.spinner();
        } else if ui.button("Run both in turn").clicked() {
            state.versus.comparison = None;
            state.orders.push(Order::Compare(Box::new(state.versus.variants.clone())));
        }
    });
    if let Some(comparison) = &state.versus.comparison {
        result(ui, comparison);
    }
}

fn way(ui: &mut Ui, number: usize, variant: &mut Variant) {
    let name = ["A", "B"][number.min(1)];
    ui.horizontal(|ui| {
        ui.label(RichText::new(name).strong());
        let backends: Vec<Choice> =
            std::iter::once(Choice::Auto).chain(backend::names().map(Choice::Named)).collect();
        menu(ui, &format!("Backend of {name}"), 62.0, &mut variant.backend, &backends, |b| b.to_string());
        menu(ui, &format!("Execution of {name}"), 88.0, &mut variant.execution, Execution::ALL, |e| {
            e.to_string()
        });
        menu(ui, &format!("Cache of {name}"), 76.0, &mut variant.cache, CachePolicy::ALL, |c| c.to_string());
    });
}

fn menu<T: Copy + PartialEq>(
    ui: &mut Ui,
    about: &str,
    width: f32,
    value: &mut T,
    all: &[T],
    name: impl Fn(T) -> String,
) {
    let menu = ComboBox::from_id_salt(about).width(width).selected_text(name(*value));
    let menu = ui.name_inputs(about, |ui| {
        menu.show_ui(ui, |ui| {
            for &one in all {
                ui.selectable_value(value, one, name(one));
            }
        })
    });
    menu.response.on_hover_text(about);
}

fn result(ui: &mut Ui, comparison: &Comparison) {
    for (number, (way, rate)) in comparison.ways.iter().zip(comparison.gcells_per_s).enumerate() {
        let rate = if rate > 0.0 { format!("{rate:.3} GCells/s") } else { "…".to_owned() };
        ui.label(RichText::new(format!("{} {rate}", ["A", "B"][number])).monospace());
        ui.label(RichText::new(way).small().weak());
    }
    if let Some(ratio) = comparison.ratio() {
        let text =
            format!("B is {ratio:.2} times as fast as A{}", if comparison.done { "" } else { " so far" });
        ui.label(RichText::new(text).strong());
    }
}

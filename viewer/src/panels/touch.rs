//! The page for changing a field by hand: a brush, a point source, a picture.

use std::path::PathBuf;

use abide::domain::axis_name;
use egui::{DragValue, RichText, Slider, SliderClamping, TextEdit, Ui};

use super::{heading, rows};
use crate::app::state::{Slicing, State, Tool};
use crate::engine::Order;

/// Shows the page.
pub fn show(ui: &mut Ui, state: &mut State) {
    let (Some(problem), Some(extents)) = (state.problem(), state.extents()) else { return };
    let (names, axes) = (problem.program.fields().to_vec(), problem.shape.dimensions());
    let name = names.get(state.show.field).cloned().unwrap_or_default();
    heading(ui, "Dragging on the field");
    ui.horizontal(|ui| {
        for (tool, text, key) in
            [(Tool::Move, "moves it", "M"), (Tool::Brush, "paints", "B"), (Tool::Point, "drops points", "O")]
        {
            ui.selectable_value(&mut state.hand.tool, tool, text).on_hover_text(key);
        }
    });
    rows(ui, "hand", |ui| {
        let label = ui.label("Value");
        ui.add(DragValue::new(&mut state.hand.value).speed(0.01).max_decimals(6)).labelled_by(label.id);
        ui.end_row();
        let label = ui.label("Radius");
        let most = (extents[1].max(extents[2]) / 4).max(8) as f64;
        let slider =
            Slider::new(&mut state.hand.radius, 0.0..=most).clamping(SliderClamping::Never).max_decimals(1);
        ui.add(slider).labelled_by(label.id).on_hover_text("In cells; [ and ]");
        ui.end_row();
    });
    ui.label(
        RichText::new(format!("Into field {name}; it is painted between two steps, running or not."))
            .small()
            .weak(),
    );
    ui.separator();
    heading(ui, "At a cell");
    ui.horizontal(|ui| {
        for axis in 3 - axes..3 {
            let label = ui.label(axis_name(axis));
            let value = DragValue::new(&mut state.hand.at[axis]).range(0..=extents[axis] - 1);
            ui.add(value).labelled_by(label.id);
        }
    });
    ui.horizontal(|ui| {
        let axis = if state.show.slicing == Slicing::Three { 0 } else { state.show.axis };
        let at = vec![state.hand.at];
        if ui.button("Paint here").clicked() {
            let tool = std::mem::replace(&mut state.hand.tool, Tool::Brush);
            state.paint(axis, at);
            state.hand.tool = tool;
        } else if ui.button("Point source here").clicked() {
            let tool = std::mem::replace(&mut state.hand.tool, Tool::Point);
            state.paint(axis, at);
            state.hand.tool = tool;
        }
    });
    ui.separator();
    heading(ui, "A picture as the field");
    let label =
        ui.label(RichText::new("A .png, .jpg or .npy file; or drop one on the window.").small().weak());
    ui.horizontal(|ui| {
        let line = TextEdit::singleline(&mut state.hand.file).hint_text("photo.jpg").desired_width(190.0);
        ui.add(line).labelled_by(label.id);
        let named = !state.hand.file.trim().is_empty();
        if ui.add_enabled(named, egui::Button::new(format!("Load into {name}"))).clicked() {
            let path = PathBuf::from(state.hand.file.trim());
            state.orders.push(Order::Load { field: name.clone(), path });
        }
    });
}

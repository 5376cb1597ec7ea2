//! The page of the field's look: which field, which part of it, and its colours.

use abide::domain::axis_name;
use egui::{DragValue, RichText, Slider, Ui};

use super::{choose, heading, rows};
use crate::app::state::{Slicing, State};
use crate::field::look::{ColourMap, Span};
use crate::field::number;

/// Shows the page.
pub fn show(ui: &mut Ui, state: &mut State) {
    field(ui, state);
    ui.separator();
    colours(ui, state);
    ui.separator();
    heading(ui, "In sight");
    ui.horizontal(|ui| {
        if ui.button("All of it").on_hover_text("F").clicked() {
            state.fit();
        }
        ui.label(RichText::new("wheel or pinch zooms, dragging moves").small().weak());
    });
    shown(ui, state);
    if state.scalars().next().is_some() {
        ui.separator();
        ui.checkbox(&mut state.curves.open, "curves of the computed scalars").on_hover_text("S");
    }
}

fn field(ui: &mut Ui, state: &mut State) {
    let (Some(problem), Some(extents)) = (state.problem(), state.extents()) else { return };
    let (names, axes) = (problem.program.fields().to_vec(), problem.shape.dimensions());
    let is_internal: Vec<bool> = problem.program.kinds().iter().map(|kind| kind.is_internal).collect();
    let kind = (!problem.is_plain()).then(|| state.centring()).flatten();
    let before = (state.show.slicing, state.show.axis);
    rows(ui, "field", |ui| {
        let is_public = |number: &usize| !is_internal[*number];
        let all: Vec<usize> = (0..names.len()).filter(is_public).collect();
        choose(ui, "Field", &mut state.show.field, &all, |number| names[number].clone());
        if let Some(centring) = kind {
            let extents = extents[3 - axes..].iter().map(usize::to_string).collect::<Vec<_>>().join("x");
            ui.label("Stands on");
            ui.label(format!("{centring}, {extents}"));
            ui.end_row();
        }
        if axes < 3 {
            return;
        }
        let slicings = [Slicing::Slice, Slicing::Three, Slicing::Maximum];
        choose(ui, "Shown as", &mut state.show.slicing, &slicings, |slicing| {
            match slicing {
                Slicing::Slice => "a slice",
                Slicing::Three => "three slices",
                Slicing::Maximum => "the maximum along an axis",
            }
            .to_owned()
        });
        if state.show.slicing != Slicing::Three {
            choose(ui, "Axis", &mut state.show.axis, &[0, 1, 2], |axis| axis_name(axis).to_owned());
        }
        for axis in 0..3 {
            let one = state.show.slicing == Slicing::Slice && axis == state.show.axis;
            if one || state.show.slicing == Slicing::Three {
                let label = ui.label(format!("At {}", axis_name(axis)));
                ui.add(Slider::new(&mut state.show.at[axis], 0..=extents[axis] - 1)).labelled_by(label.id);
                ui.end_row();
            }
        }
    });
    if before != (state.show.slicing, state.show.axis) {
        state.fit();
    }
}

fn colours(ui: &mut Ui, state: &mut State) {
    let scale = state.scale();
    let look = &mut state.look;
    rows(ui, "colours", |ui| {
        choose(ui, "Colours", &mut look.map, &ColourMap::ALL, |map| map.name().to_owned());
        ui.label("Range");
        ui.vertical(|ui| {
            let mut auto = look.span == Span::Auto;
            if ui.checkbox(&mut auto, "automatic").on_hover_text("H").changed() {
                look.span = if auto { Span::Auto } else { Span::Fixed { low: scale.low, high: scale.high } };
            }
            if let Span::Fixed { low, high } = &mut look.span {
                ui.horizontal(|ui| {
                    let speed = (*high - *low).abs().max(1e-6) / 200.0;
                    ui.name_inputs("Lowest value", |ui| {
                        ui.add(DragValue::new(low).speed(speed).max_decimals(6))
                    });
                    ui.label("to");
                    ui.name_inputs("Highest value", |ui| {
                        ui.add(DragValue::new(high).speed(speed).max_decimals(6))
                    });
                });
            } else {
                ui.label(RichText::new(format!("{} to {}", number(scale.low), number(scale.high))).weak());
            }
        });
        ui.end_row();
        ui.label("Scale");
        ui.vertical(|ui| {
            let able = look.map != ColourMap::Diverging;
            ui.add_enabled(able, egui::Checkbox::new(&mut look.log, "logarithmic"))
                .on_hover_text("L")
                .on_disabled_hover_text("A diverging map is linear");
        });
        ui.end_row();
        ui.label("Draw");
        ui.vertical(|ui| {
            ui.checkbox(&mut look.contours, "contour lines").on_hover_text("K");
            ui.checkbox(&mut look.smooth, "values between cells").on_hover_text("I");
        });
        ui.end_row();
    });
}

/// Shows what a pixel stands for.
fn shown(ui: &mut Ui, state: &State) {
    let Some(image) = state.frame.as_ref().and_then(|frame| frame.images.first()) else { return };
    let text = match image.factor {
        [1, 1] => "Every cell in sight is drawn.".to_owned(),
        [rows, columns] => format!("Each value drawn is the mean of {rows}×{columns} cells."),
    };
    ui.label(RichText::new(text).small().weak());
}

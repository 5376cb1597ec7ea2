//! The pages beside the field, and the panel below it.

pub mod compare;
pub mod keep;
pub mod loops;
pub mod model;
pub mod plan;
pub mod roofline;
pub mod scalars;
pub mod throughput;
pub mod touch;
pub mod view;

use egui::{Context, Grid, RichText, ScrollArea, Ui, Window};

/// Shows a heading with room above it.
pub fn heading(ui: &mut Ui, text: &str) {
    ui.add_space(8.0);
    ui.label(RichText::new(text).strong());
}

/// Shows two columns: names, and the widgets that belong to them.
pub fn rows<R>(ui: &mut Ui, id: &str, body: impl FnOnce(&mut Ui) -> R) -> R {
    Grid::new(id).num_columns(2).spacing([12.0, 6.0]).show(ui, body).inner
}

/// Shows a menu of values that know their names; returns whether another was chosen.
pub fn choose<T: Copy + PartialEq>(
    ui: &mut Ui,
    label: &str,
    value: &mut T,
    all: &[T],
    name: impl Fn(T) -> String,
) -> bool {
    let before = *value;
    let label = ui.label(label);
    egui::ComboBox::from_id_salt(label.id)
        .width(170.0)
        .selected_text(name(*value))
        .show_ui(ui, |ui| {
            for &one in all {
                ui.selectable_value(value, one, name(one));
            }
        })
        .response
        .labelled_by(label.id);
    ui.end_row();
    *value != before
}

/// The width from which the keys stand in two columns, and the height that their window needs besides, in
/// points.
const TWO_COLUMNS: f32 = 960.0;
const AROUND_KEYS: f32 = 96.0;

/// Shows the keys, in a window of their own: in two columns where there is room, scrolled where
/// there is none.
pub fn help(ctx: &Context, open: &mut bool, keys: &[(&str, &str)]) {
    let room = ctx.content_rect().size();
    let columns = if room.x < TWO_COLUMNS { 1 } else { 2 };
    let most = (room.y - AROUND_KEYS).max(0.0);
    Window::new("Keys").open(open).resizable(false).collapsible(false).show(ctx, |ui| {
        ScrollArea::vertical().max_height(most).min_scrolled_height(most).show(ui, |ui| {
            ui.horizontal_top(|ui| {
                ui.spacing_mut().item_spacing.x = 28.0;
                for (number, part) in keys.chunks(keys.len().div_ceil(columns).max(1)).enumerate() {
                    Grid::new(("keys", number)).num_columns(2).spacing([18.0, 4.0]).show(ui, |ui| {
                        for (key, about) in part {
                            ui.label(RichText::new(*key).monospace().strong());
                            ui.label(*about);
                            ui.end_row();
                        }
                    });
                }
            });
        });
    });
}

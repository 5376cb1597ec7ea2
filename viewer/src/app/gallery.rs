//! The first screen: scenes that are ready to run.

use std::collections::HashMap;

use egui::{
    Color32, ColorImage, CornerRadius, Grid, Rect, RichText, ScrollArea, Sense, Stroke, StrokeKind,
    TextureHandle, TextureOptions, Ui, Vec2, vec2,
};

use super::state::State;
use crate::field::look::Look;
use crate::scenes::{self, PICTURE, Scene};
use crate::setup::{self, Setup};

/// Space between cards.
const GAP: f32 = 14.0;
/// Space within a card, around its words.
const PADDING: f32 = 8.0;

/// The gallery's scenes with their pictures, and the text typed to open something else.
pub struct Gallery {
    scenes: Vec<Scene>,
    pictures: HashMap<&'static str, TextureHandle>,
    wanted: String,
}

impl Gallery {
    /// Makes a gallery of all scenes; pictures are decoded when they are first shown.
    pub fn new() -> Gallery {
        Gallery { scenes: scenes::all(), pictures: HashMap::new(), wanted: String::new() }
    }

    /// Shows the scenes, and starts the scene that is chosen. `last` is the setup that ran last time.
    pub fn show(&mut self, ui: &mut Ui, state: &mut State, last: Option<(&Setup, &Look)>) {
        ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
            ui.add_space(18.0);
            let width = ui.available_width();
            let columns = ((width - 2.0 * GAP) / 230.0).floor().clamp(1.0, 4.0) as usize;
            let card = ((width - 2.0 * GAP - (columns - 1) as f32 * GAP) / columns as f32).clamp(60.0, 242.0);
            let row = columns as f32 * card + (columns - 1) as f32 * GAP;
            let margin = ((width - row) / 2.0).max(0.0);
            ui.horizontal(|ui| {
                ui.add_space(margin);
                ui.vertical(|ui| {
                    ui.set_width(row);
                    self.head(ui, state, last);
                    ui.add_space(14.0);
                    Grid::new("scenes").spacing(Vec2::splat(GAP)).show(ui, |ui| {
                        for number in 0..self.scenes.len() {
                            self.card(ui, state, number, card);
                            if (number + 1) % columns == 0 {
                                ui.end_row();
                            }
                        }
                    });
                });
            });
            ui.add_space(18.0);
        });
    }

    fn head(&mut self, ui: &mut Ui, state: &mut State, last: Option<(&Setup, &Look)>) {
        ui.label(RichText::new("Abide").size(30.0).strong());
        ui.label("Choose a scene; it runs at once, as fast as this machine can. Everything about it can be changed.");
        ui.add_space(8.0);
        ui.horizontal_wrapped(|ui| {
            let label = ui.label("Or open a model, a checkpoint or a picture:");
            let line = egui::TextEdit::singleline(&mut self.wanted)
                .hint_text("wave, run.npz, photo.jpg")
                .desired_width(220.0);
            let entered = ui.add(line).labelled_by(label.id);
            let enter = entered.lost_focus() && ui.input(|input| input.key_pressed(egui::Key::Enter));
            if (ui.button("Open").clicked() || enter) && !self.wanted.trim().is_empty() {
                open(state, self.wanted.trim());
            }
            if let Some((setup, look)) = last
                && ui.button(format!("Go on with {}", setup.model)).clicked()
            {
                state.start(setup.clone(), look.clone(), true);
            }
        });
    }

    fn card(&mut self, ui: &mut Ui, state: &mut State, number: usize, width: f32) {
        let scene = &self.scenes[number];
        let picture = vec2(width, width * PICTURE[1] as f32 / PICTURE[0] as f32);
        let words = 2.0 * ui.text_style_height(&egui::TextStyle::Body) + 2.0 * PADDING;
        let (rect, response) = ui.allocate_exact_size(picture + vec2(0.0, words), Sense::click());
        let name = format!("Scene {}", scene.name);
        response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Button, true, &name));
        if ui.is_rect_visible(rect) {
            let painter = ui.painter();
            let visuals = ui.visuals();
            let lit = response.hovered() || response.has_focus();
            let widget = if lit { &visuals.widgets.hovered } else { &visuals.widgets.inactive };
            let round = CornerRadius::same(6);
            painter.rect_filled(rect, round, if lit { widget.bg_fill } else { visuals.faint_bg_color });
            let upper = CornerRadius { nw: 6, ne: 6, sw: 0, se: 0 };
            let uv = Rect::from_min_max(egui::pos2(0.0, 0.0), egui::pos2(1.0, 1.0));
            if let Some(texture) = texture(&mut self.pictures, ui, scene) {
                let shape = egui::epaint::RectShape::filled(
                    Rect::from_min_size(rect.min, picture),
                    upper,
                    Color32::WHITE,
                );
                painter.add(shape.with_texture(texture, uv));
            }
            let edge = if lit { visuals.selection.stroke } else { visuals.widgets.noninteractive.bg_stroke };
            painter.rect_stroke(
                rect,
                round,
                Stroke::new(if lit { 2.0 } else { 1.0 }, edge.color),
                StrokeKind::Inside,
            );
            let body = egui::TextStyle::Body.resolve(ui.style());
            let at = rect.min + vec2(PADDING, picture.y + PADDING - 1.0);
            let text = |text: &str, at: egui::Pos2, colour: Color32| {
                let galley = painter.layout(text.to_owned(), body.clone(), colour, width - 2.0 * PADDING);
                painter.with_clip_rect(rect).galley(at, galley, colour);
            };
            text(scene.title, at, visuals.strong_text_color());
            text(scene.about, at + vec2(0.0, body.size + 4.0), visuals.weak_text_color());
        }
        if response.clicked() {
            let (setup, look) = (scene.setup.clone(), scene.look.clone());
            state.start(setup, look, true);
        }
    }
}

/// Starts the model or file that an argument names.
pub fn open(state: &mut State, argument: &str) {
    match setup::named(argument) {
        Ok(setup) => state.start(setup, Look::default(), true),
        Err(error) => state.notices.error(error.to_string()),
    }
}

fn texture(
    pictures: &mut HashMap<&'static str, TextureHandle>,
    ui: &Ui,
    scene: &Scene,
) -> Option<egui::TextureId> {
    if !pictures.contains_key(scene.name) {
        let picture = image::load_from_memory(scene.picture).ok()?.to_rgb8();
        let size = [picture.width() as usize, picture.height() as usize];
        let pixels = ColorImage::from_rgb(size, picture.as_raw());
        let texture = ui.ctx().load_texture(scene.name, pixels, TextureOptions::LINEAR);
        pictures.insert(scene.name, texture);
    }
    pictures.get(scene.name).map(TextureHandle::id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scene_has_a_picture_of_its_size() {
        for scene in scenes::all() {
            let picture = image::load_from_memory(scene.picture).unwrap();
            assert_eq!([picture.width() as usize, picture.height() as usize], PICTURE, "{}", scene.name);
        }
    }
}

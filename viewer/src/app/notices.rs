//! Notices in the window: errors in words, files written, deviations from what was asked.

use egui::{Align2, Area, Color32, Context, Frame, Id, Margin, Order, RichText, Ui, vec2};

/// The most notices shown at once; the oldest go first.
const MOST: usize = 4;
/// Width of a notice in points, where there is room.
const WIDTH: f32 = 680.0;
/// Seconds after which a notice that is no error goes by itself.
const PATIENCE: f64 = 6.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Error,
    Note,
}

struct Notice {
    kind: Kind,
    text: String,
    /// Time of the first showing, in egui's seconds.
    shown: Option<f64>,
}

/// The notices at present.
#[derive(Default)]
pub struct Notices {
    list: Vec<Notice>,
    /// Notices that deserve a look but no interruption; the model's panel shows them.
    pub quiet: Vec<String>,
}

impl Notices {
    /// Adds an error, which is shown until it is dismissed.
    pub fn error(&mut self, text: String) {
        self.add(Kind::Error, text);
    }

    /// Adds a note, which is shown for a while.
    pub fn note(&mut self, text: String) {
        self.add(Kind::Note, text);
    }

    /// Adds a note for the model's panel.
    pub fn quiet(&mut self, text: String) {
        if !self.quiet.contains(&text) {
            self.quiet.push(text);
        }
    }

    fn add(&mut self, kind: Kind, text: String) {
        self.list.retain(|notice| notice.text != text);
        self.list.push(Notice { kind, text, shown: None });
        if self.list.len() > MOST {
            self.list.remove(0);
        }
    }

    /// Returns whether an error is shown.
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|notice| notice.kind == Kind::Error)
    }

    /// Takes the newest notice away; `false` where there is none.
    pub fn dismiss(&mut self) -> bool {
        self.list.pop().is_some()
    }

    /// Shows the notices over the lower part of the window, so that nothing moves when they come and go.
    pub fn show(&mut self, ctx: &Context) {
        let now = ctx.input(|input| input.time);
        for notice in &mut self.list {
            notice.shown.get_or_insert(now);
        }
        let old =
            |notice: &Notice| notice.kind == Kind::Note && notice.shown.is_some_and(|at| now - at > PATIENCE);
        self.list.retain(|notice| !old(notice));
        if self.list.is_empty() {
            return;
        }
        if self.list.iter().any(|notice| notice.kind == Kind::Note) {
            ctx.request_repaint_after_secs(1.0);
        }
        let width = (ctx.content_rect().width() - 40.0).clamp(40.0, WIDTH);
        let area = Area::new(Id::unique("notices"))
            .anchor(Align2::CENTER_BOTTOM, vec2(0.0, -44.0))
            .order(Order::Foreground);
        area.show(ctx, |ui| {
            ui.set_width(width);
            self.list(ui);
        });
    }

    fn list(&mut self, ui: &mut Ui) {
        let mut gone = None;
        for (number, notice) in self.list.iter().enumerate() {
            let dark = ui.visuals().dark_mode;
            let (fill, ink) = match (notice.kind, dark) {
                (Kind::Error, true) => (Color32::from_rgb(94, 26, 30), Color32::from_rgb(255, 226, 224)),
                (Kind::Error, false) => (Color32::from_rgb(253, 222, 220), Color32::from_rgb(110, 12, 16)),
                (Kind::Note, true) => (Color32::from_rgb(28, 58, 46), Color32::from_rgb(214, 245, 230)),
                (Kind::Note, false) => (Color32::from_rgb(221, 243, 232), Color32::from_rgb(14, 70, 44)),
            };
            Frame::new().fill(fill).corner_radius(4).inner_margin(Margin::symmetric(10, 6)).show(ui, |ui| {
                ui.horizontal(|ui| {
                    let room = (ui.available_width() - 84.0).max(60.0);
                    ui.allocate_ui(egui::vec2(room, 0.0), |ui| {
                        ui.add(egui::Label::new(RichText::new(&notice.text).color(ink)).wrap());
                    });
                    ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                        if ui.button("Dismiss").clicked() {
                            gone = Some(number);
                        }
                    });
                });
            });
            ui.add_space(2.0);
        }
        if let Some(number) = gone {
            self.list.remove(number);
        }
    }
}

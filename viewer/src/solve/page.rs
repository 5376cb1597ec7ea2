//! The screen of a solver.

use abide::{Choice, backend};
use egui::{
    Button, ComboBox, DragValue, Panel, RichText, ScrollArea, TextEdit, TextureHandle, TextureOptions, Ui,
    vec2,
};
use egui_plot::{HLine, Line, Plot, PlotPoints};

use super::{News, Pattern, Question, Solving};
use crate::panels::{heading, rows};
use crate::plot;

/// The methods, by their names; the first stands for the method that suits the matrix.
const METHODS: [&str; 9] =
    ["", "cg", "cg-single", "cg-pipelined", "minres", "bicgstab", "gmres", "chebyshev", "jacobi"];
const PRECONDITIONERS: [&str; 6] = ["none", "jacobi", "block-jacobi", "chebyshev", "ilu", "amg"];
/// The most points of the curve; a longer history is drawn at intervals.
const POINTS: usize = 4000;

/// A system, its progress, and the text typed for the next system.
pub struct Page {
    /// The system as typed.
    pub draft: Question,
    solving: Option<Solving>,
    /// The norms of the residuals so far.
    pub residuals: Vec<f64>,
    pattern: Option<Pattern>,
    picture: Option<(bool, TextureHandle)>,
    how: String,
    notes: Vec<String>,
    /// The outcome of the solve.
    pub outcome: Option<Result<String, String>>,
}

impl Page {
    /// Makes a page that solves nothing yet.
    pub fn new(draft: Question) -> Page {
        Page {
            draft,
            solving: None,
            residuals: Vec::new(),
            pattern: None,
            picture: None,
            how: String::new(),
            notes: Vec::new(),
            outcome: None,
        }
    }

    /// Starts the system as typed.
    pub fn start(&mut self, ctx: &egui::Context) {
        let waker = ctx.clone();
        // The solver before is ended first, because two would share the machine.
        self.solving = None;
        *self = Page::new(self.draft.clone());
        self.solving = Some(Solving::new(self.draft.clone(), move || waker.request_repaint()));
    }

    /// Takes the solver's news.
    pub fn hear(&mut self) {
        let Some(solving) = &self.solving else { return };
        solving.residuals(&mut self.residuals);
        while let Some(news) = solving.news() {
            match news {
                News::Matrix(pattern) => (self.pattern, self.picture) = (Some(pattern), None),
                News::Begun(how, notes) => (self.how, self.notes) = (how, notes),
                News::Done { iterations, seconds, residual } => {
                    let residual = residual.map_or_else(String::new, |r| format!(", |b − Ax| = {r:.3e}"));
                    let text = format!("Converged in {iterations} iterations, {seconds:.3} s{residual}");
                    self.outcome = Some(Ok(text));
                }
                News::Failed(error) => self.outcome = Some(Err(error)),
            }
        }
        solving.residuals(&mut self.residuals);
    }

    /// Shows the screen; returns `true` where it is to be left.
    pub fn show(&mut self, ui: &mut Ui) -> bool {
        let mut leave = false;
        Panel::top("solve controls").show(ui, |ui| {
            ui.add_space(3.0);
            ui.horizontal(|ui| {
                leave = ui.button("Gallery").clicked();
                ui.separator();
                ui.label(RichText::new(&self.draft.matrix).strong());
                if !self.how.is_empty() {
                    ui.label(RichText::new(&self.how).weak());
                }
                if let Some(last) = self.residuals.last() {
                    let iteration = self.residuals.len() - 1;
                    ui.label(
                        RichText::new(format!("iteration {iteration}, residual {last:.3e}")).monospace(),
                    );
                }
            });
            ui.add_space(3.0);
        });
        Panel::right("solve pages").default_size(320.0).size_range(260.0..=480.0).show(ui, |ui| {
            ScrollArea::vertical().auto_shrink(false).show(ui, |ui| self.beside(ui));
        });
        egui::CentralPanel::default().show(ui, |ui| self.curve(ui));
        leave
    }

    /// Draws the residual's norm by iteration, as powers of ten.
    fn curve(&self, ui: &mut Ui) {
        let every = self.residuals.len().div_ceil(POINTS).max(1);
        let last = self.residuals.len().saturating_sub(1);
        let shown = |i: &usize| i.is_multiple_of(every) || *i == last;
        let points: Vec<[f64; 2]> = (0..self.residuals.len())
            .filter(shown)
            .map(|i| [i as f64, self.residuals[i].log10()])
            .filter(|point| point[1].is_finite())
            .collect();
        let colour = plot::colour(ui, 0);
        let first = self.residuals.first().copied().filter(|r| *r > 0.0);
        Plot::new("residuals")
            .grid_color(ui.visuals().weak_text_color().gamma_multiply(0.4))
            .x_axis_label("iteration")
            .y_axis_label("norm of the residual")
            .y_axis_formatter(|mark, _| {
                if mark.value.fract() == 0.0 { format!("1e{}", mark.value) } else { String::new() }
            })
            .include_x(0.0)
            .include_x(10.0)
            .show(ui, |plot| {
                plot.line(Line::new("residual", PlotPoints::from(points)).color(colour).width(1.8));
                if let Some(first) = first {
                    let goal = (first * self.draft.tolerance).log10();
                    let colour = egui::Color32::from_rgb(206, 150, 40);
                    plot.hline(
                        HLine::new("goal", goal).color(colour).style(egui_plot::LineStyle::dashed_dense()),
                    );
                }
            });
    }

    fn beside(&mut self, ui: &mut Ui) {
        heading(ui, "Matrix");
        self.matrix(ui);
        ui.separator();
        heading(ui, "Solve");
        rows(ui, "question", |ui| question(ui, &mut self.draft));
        ui.add_space(6.0);
        let running = self.solving.is_some() && self.outcome.is_none();
        ui.horizontal(|ui| {
            if ui.add_sized([110.0, 26.0], Button::new(RichText::new("Solve").strong())).clicked() {
                self.start(ui.ctx());
            }
            if running
                && ui.button("Stop").clicked()
                && let Some(solving) = &self.solving
            {
                solving.stop();
            }
        });
        match &self.outcome {
            Some(Ok(text)) => drop(ui.label(RichText::new(text).strong())),
            Some(Err(text)) => drop(ui.label(RichText::new(text).color(ui.visuals().error_fg_color))),
            None => {}
        }
        for note in &self.notes {
            ui.label(RichText::new(note).small().weak());
        }
    }

    fn matrix(&mut self, ui: &mut Ui) {
        let Some(pattern) = &self.pattern else {
            ui.label(RichText::new(if self.outcome.is_none() { "reading…" } else { "none" }).weak());
            return;
        };
        let [rows, columns] = pattern.extents;
        ui.label(format!("{rows}×{columns}, {} entries", pattern.entries));
        let dark = ui.visuals().dark_mode;
        if self.picture.as_ref().is_none_or(|(of, _)| *of != dark) {
            let picture = pattern.picture(ui.visuals().extreme_bg_color);
            self.picture = Some((dark, ui.ctx().load_texture("pattern", picture, TextureOptions::NEAREST)));
        }
        if let Some((_, texture)) = &self.picture {
            let side = ui.available_width().min(300.0);
            let [high, wide] = pattern.size.map(|n| n as f32);
            let size = vec2(wide, high) * (side / wide.max(high));
            let image = egui::Image::new((texture.id(), size)).alt_text("The matrix' entries");
            ui.add(image);
        }
    }
}

fn question(ui: &mut Ui, draft: &mut Question) {
    let label = ui.label("Matrix");
    let line = TextEdit::singleline(&mut draft.matrix).desired_width(180.0);
    ui.add(line).labelled_by(label.id).on_hover_text("A .mtx file, or a name as in laplacian2d:100x100");
    ui.end_row();
    by_name(ui, "Method", &mut draft.method, &METHODS, "as suits the matrix");
    by_name(ui, "Preconditioner", &mut draft.preconditioner, &PRECONDITIONERS, "none");
    let label = ui.label("Tolerance");
    let value = DragValue::new(&mut draft.tolerance)
        .range(1e-16..=1.0)
        .speed(0.0)
        .custom_formatter(|value, _| format!("{value:e}"));
    ui.add(value).labelled_by(label.id);
    ui.end_row();
    let label = ui.label("Backend");
    let menu = ComboBox::from_id_salt("solve backend").width(180.0).selected_text(draft.backend.to_string());
    let menu = menu.show_ui(ui, |ui| {
        for choice in std::iter::once(Choice::Auto).chain(backend::names().map(Choice::Named)) {
            ui.selectable_value(&mut draft.backend, choice, choice.to_string());
        }
    });
    menu.response.labelled_by(label.id);
    ui.end_row();
}

/// Shows a menu of names.
fn by_name(ui: &mut Ui, label: &str, value: &mut String, names: &[&str], empty: &str) {
    let label = ui.label(label);
    let shown = |name: &str| if name.is_empty() { empty.to_owned() } else { name.to_owned() };
    let menu = ComboBox::from_id_salt(label.id).width(180.0).selected_text(shown(value)).show_ui(ui, |ui| {
        for name in names {
            ui.selectable_value(value, (*name).to_owned(), shown(name));
        }
    });
    menu.response.labelled_by(label.id);
    ui.end_row();
}

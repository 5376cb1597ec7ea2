//! The page of the computation: parameters by slider while it runs; model, size, type, boundary, backend and
//! policy by a restart.

use abide::{Boundary, CachePolicy, Choice, DType, Execution, Parameter, backend, catalogue, text};
use egui::{Button, RichText, Slider, SliderClamping, TextEdit, TextStyle, Ui};

use super::{choose, heading, rows};
use crate::app::state::State;
use crate::engine::Order;
use crate::setup::{Setup, Source};

/// Shows the page.
pub fn show(ui: &mut Ui, state: &mut State) {
    parameters(ui, state);
    ui.separator();
    heading(ui, "Start anew with");
    rows(ui, "setup", |ui| setup(ui, &mut state.draft));
    ui.add_space(6.0);
    let restart = Button::new(RichText::new("Restart").strong());
    if ui.add_sized([110.0, 26.0], restart).on_hover_text("Ctrl+Enter").clicked() {
        state.restart();
    }
    ui.separator();
    formulas(ui, &mut state.draft);
    if !state.notices.quiet.is_empty() {
        ui.separator();
        heading(ui, "Worth knowing");
        for note in &state.notices.quiet {
            ui.label(RichText::new(note).small());
        }
    }
}

/// Shows sliders that act on the run at once.
fn parameters(ui: &mut Ui, state: &mut State) {
    let Some(run) = &mut state.run else { return };
    let about = match &run.setup.formulas {
        Some(_) => "runs by the formulas below",
        None => catalogue::find(&run.setup.model).map_or("", |entry| entry.about),
    };
    heading(ui, &run.setup.model);
    ui.label(RichText::new(about).small());
    let problem = &mut run.problem;
    let parameters = problem.program.parameters().to_vec();
    if parameters.is_empty() {
        ui.label(RichText::new("It has no parameters.").weak());
    }
    let program = problem.program.clone();
    let mut is_changed = false;
    for (parameter, value) in parameters.iter().zip(&mut problem.parameters) {
        if program.settable(&parameter.name).is_err() {
            continue;
        }
        ui.add_space(4.0);
        ui.horizontal(|ui| {
            let label = ui.label(RichText::new(&parameter.name).monospace());
            let slider = Slider::new(value, range(parameter)).clamping(SliderClamping::Never).max_decimals(5);
            let mut changed = ui.add(slider).labelled_by(label.id).changed();
            if *value != parameter.default && ui.small_button("default").clicked() {
                *value = parameter.default;
                changed = true;
            }
            is_changed |= changed;
            if changed {
                state.draft.set(&parameter.name, *value);
                state.orders.push(Order::Parameter { name: parameter.name.clone(), value: *value });
            }
        });
        ui.label(RichText::new(&parameter.about).small().weak());
    }
    if is_changed {
        problem.derive();
    }
}

/// Returns the slider's range, up to twice the default; a number typed in may lie beyond it.
fn range(parameter: &Parameter) -> std::ops::RangeInclusive<f64> {
    let most = 2.0 * parameter.default.abs();
    let most = if most > 0.0 { most } else { 1.0 };
    if parameter.default < 0.0 { -most..=most } else { 0.0..=most }
}

/// Shows the model as text, to be changed, and what is wrong with it.
fn formulas(ui: &mut Ui, draft: &mut Setup) {
    heading(ui, "Formulas");
    let Some(text) = &mut draft.formulas else {
        let edit = ui.button("Edit formulas").on_hover_text("The model as text: change it, and restart");
        if edit.clicked() {
            // Where the setup has a fault, a restart reports it.
            draft.formulas = draft.program().and_then(|program| text::write(&program)).ok();
        }
        return;
    };
    let line =
        TextEdit::multiline(text).font(TextStyle::Monospace).desired_rows(12).desired_width(f32::INFINITY);
    let edited = ui.add(line);
    let known = ui.data(|data| data.get_temp::<Option<String>>(edited.id));
    let fault = match known {
        Some(fault) if !edited.changed() => fault,
        _ => text::read(text, "formulas").err().map(|error| error.to_string()),
    };
    if let Some(fault) = &fault {
        ui.colored_label(ui.visuals().error_fg_color, fault);
    }
    ui.data_mut(|data| data.insert_temp(edited.id, fault));
    if ui.button("The catalogue's formulas").clicked() {
        draft.formulas = None;
        if catalogue::find(&draft.model).is_err() {
            *draft = Setup { backend: draft.backend, ..Setup::default() };
        }
    }
}

fn setup(ui: &mut Ui, draft: &mut Setup) {
    let names: Vec<&'static str> = catalogue::entries().map(|entry| entry.name).collect();
    let mut name = names.iter().copied().find(|name| *name == draft.model).unwrap_or("heat");
    if draft.formulas.is_some() {
        ui.label("Model");
        ui.label(format!("{}, by the formulas below", draft.model));
        ui.end_row();
    } else if choose(ui, "Model", &mut name, &names, str::to_owned) {
        *draft = Setup {
            model: name.to_owned(),
            formulas: None,
            // The extents stay where the new model can have as many axes; else its own default is taken.
            size: if fits(name, &draft.size) { draft.size.clone() } else { String::new() },
            parameters: Vec::new(),
            inputs: Vec::new(),
            resume: None,
            ..draft.clone()
        };
    }
    let label = ui.label("Size");
    let line = TextEdit::singleline(&mut draft.size).hint_text("512x512").desired_width(170.0);
    ui.add(line)
        .labelled_by(label.id)
        .on_hover_text("Extents, slowest axis first; empty for the model's own");
    ui.end_row();
    choose(ui, "Type", &mut draft.dtype, &[DType::F32, DType::F64], |dtype| dtype.to_string());
    boundary(ui, draft);
    start(ui, draft);
    let backends: Vec<Choice> =
        std::iter::once(Choice::Auto).chain(backend::names().map(Choice::Named)).collect();
    choose(ui, "Backend", &mut draft.backend, &backends, |choice| choice.to_string());
    choose(ui, "Execution", &mut draft.execution, Execution::ALL, |execution| execution.to_string());
    choose(ui, "Cache", &mut draft.cache, CachePolicy::ALL, |cache| cache.to_string());
    let label = ui.label("Depth");
    let line = TextEdit::singleline(&mut draft.depth).desired_width(60.0);
    ui.add(line).labelled_by(label.id).on_hover_text(
        "Temporal depth, the steps per launch of an overlapped or a streaming run: auto or a number",
    );
    ui.end_row();
    if let Some(path) = &draft.resume {
        ui.label("Goes on from");
        ui.label(path.display().to_string());
        ui.end_row();
    }
}

fn fits(model: &str, size: &str) -> bool {
    let shape = size.parse::<abide::Shape>();
    match (catalogue::find(model), shape) {
        (Ok(entry), Ok(shape)) => entry.dimensions.contains(&shape.dimensions()),
        _ => false,
    }
}

/// Shows a menu of the usual boundaries beside a line for any other.
fn boundary(ui: &mut Ui, draft: &mut Setup) {
    let label = ui.label("Boundary");
    ui.horizontal(|ui| {
        let line =
            TextEdit::singleline(&mut draft.boundary).hint_text("the model's own").desired_width(116.0);
        ui.add(line)
            .labelled_by(label.id)
            .on_hover_text("As in periodic, y=periodic,x=fixed, or u:x-=mirror for one field");
        ui.name_inputs("Usual boundaries", |ui| {
            egui::ComboBox::from_id_salt("boundaries").width(38.0).selected_text("").show_ui(ui, |ui| {
                let kinds = Boundary::each(0.0).map(|kind| kind.to_string());
                for name in [String::new()].into_iter().chain(kinds) {
                    let text = if name.is_empty() { "the model's own" } else { &name };
                    if ui.selectable_label(draft.boundary == name, text).clicked() {
                        draft.boundary = name;
                    }
                }
            });
        });
    });
    ui.end_row();
}

/// Shows how the fields start.
fn start(ui: &mut Ui, draft: &mut Setup) {
    ui.label("Fields");
    ui.vertical(|ui| {
        if draft.inputs.is_empty() {
            ui.label(RichText::new("as the model starts them").weak());
        }
        let mut gone = None;
        for (number, (field, source)) in draft.inputs.iter().enumerate() {
            let from = match source {
                Source::Named(name) => name.clone(),
                Source::File(path) => {
                    path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned())
                }
                Source::Drawn(_) => "drawn".to_owned(),
            };
            ui.horizontal(|ui| {
                ui.label(format!("{field}: {from}"));
                if ui.small_button("own").on_hover_text("As the model starts it").clicked() {
                    gone = Some(number);
                }
            });
        }
        gone.map(|number| draft.inputs.remove(number));
    });
    ui.end_row();
    let Ok(program) = draft.program() else { return };
    let label = ui.label("");
    ui.horizontal(|ui| {
        let mut field = ui.data(|data| data.get_temp::<String>(label.id)).unwrap_or_default();
        if !program.fields().contains(&field) {
            field = program.fields().first().cloned().unwrap_or_default();
        }
        ui.name_inputs("Field to start otherwise", |ui| {
            egui::ComboBox::from_id_salt("start field").width(52.0).selected_text(&field).show_ui(ui, |ui| {
                for name in program.fields() {
                    ui.selectable_value(&mut field, name.clone(), name);
                }
            });
        });
        let from = egui::ComboBox::from_id_salt("start from").width(104.0).selected_text("starts as …");
        ui.name_inputs("How it starts", |ui| {
            from.show_ui(ui, |ui| {
                for name in ["own", "random:1", "gaussian", "point"] {
                    if ui.selectable_label(false, name).clicked() {
                        draft.inputs.retain(|(other, _)| *other != field);
                        draft.inputs.push((field.clone(), Source::Named(name.to_owned())));
                    }
                }
            });
        });
        ui.data_mut(|data| data.insert_temp(label.id, field));
    });
    ui.end_row();
}

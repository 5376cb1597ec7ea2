//! The page for files of the run on screen, and for the command line that repeats it.

use egui::{DragValue, RichText, TextEdit, Ui};

use super::heading;
use crate::app::state::State;
use crate::engine::Keep;

/// Shows the page.
pub fn show(ui: &mut Ui, state: &mut State) {
    heading(ui, "Folder");
    let line = TextEdit::singleline(&mut state.folder.folder)
        .hint_text("where the viewer was started")
        .desired_width(f32::INFINITY);
    ui.add(line);
    ui.label(RichText::new(format!("Files are named like {}.", state.file(".png").display())).small().weak());
    ui.separator();
    heading(ui, "What there is now");
    let alike = state.problem().is_none_or(|problem| {
        let mut extents = (0..problem.program.fields().len()).map(|field| problem.extents_of(field));
        let first = extents.next();
        extents.all(|others| Some(others) == first)
    });
    ui.horizontal_wrapped(|ui| {
        if ui.button("Picture").on_hover_text("What is shown as .png, one pixel per cell (P)").clicked() {
            state.keep_picture();
        }
        if ui.button("Field .npy").on_hover_text("The field shown, exactly").clicked() {
            let path = state.file(".npy");
            state.keep(Keep::Field(path));
        }
        let about = if alike { "All fields" } else { "All fields of the extents of the one shown" };
        if ui.button("Fields .vti").on_hover_text(format!("{about}, exactly, for ParaView")).clicked() {
            let path = state.file(".vti");
            state.keep(Keep::Field(path));
        }
        if ui.button("Checkpoint").on_hover_text("All that is needed to go on").clicked() {
            let path = state.file(".npz");
            state.keep(Keep::Checkpoint(path));
        }
    });
    if !alike && let Some(centring) = state.centring() {
        let about = format!("A .vti holds fields of one kind: those on {centring}, as the field shown.");
        ui.label(RichText::new(about).small().weak());
    }
    ui.separator();
    heading(ui, "As it goes");
    ui.horizontal(|ui| {
        let label = ui.label("A frame every");
        ui.add(DragValue::new(&mut state.folder.every).range(1..=1_000_000_000)).labelled_by(label.id);
        ui.label("steps");
    });
    ui.horizontal(|ui| {
        ui.radio_value(&mut state.folder.numbered, false, "a .gif");
        ui.radio_value(&mut state.folder.numbered, true, "numbered pictures");
    });
    let text = if state.status.recorded.is_some() { "End recording" } else { "Record" };
    if ui.button(text).on_hover_text("V").clicked() {
        state.record();
    }
    if let Some(frames) = state.status.recorded {
        ui.label(format!("{frames} frames so far"));
    }
    ui.separator();
    heading(ui, "The same by command");
    if ui.button("Copy command line").clicked() {
        let path = state.file(".npz");
        state.keep(Keep::Command(path));
    }
    let about = "Where hands have changed the run, or its fields were drawn, a checkpoint is written for it to go on from.";
    ui.label(RichText::new(about).small().weak());
    if !state.folder.command.is_empty() {
        ui.label(RichText::new(&state.folder.command).monospace());
    }
}

//! A window for tests: drawn by a software adapter, its runs on the CPU.

use std::time::{Duration, Instant};

use abide::Choice;
use abide_viewer::app::{App, Opening};
use abide_viewer::engine::{Opener, Tempo};
use abide_viewer::field::look::Look;
use abide_viewer::setup::Setup;
use abide_viewer::window::DITHERING;
use eframe::egui_wgpu::RendererOptions;
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;

/// The longest that a test waits for a run to obey.
const PATIENCE: Duration = Duration::from_secs(180);

/// Returns a setup on the CPU.
pub fn setup(model: &str, size: &str) -> Setup {
    Setup { size: size.to_owned(), backend: Choice::CPU, ..Setup::model(model) }
}

/// Opens a window that shows the gallery.
pub fn gallery() -> Harness<'static, App> {
    open(Opening::default(), [1280.0, 800.0], 1.0, Box::new(|_| None))
}

/// Opens a window in which a setup is started and waits.
pub fn paused(setup: Setup) -> Harness<'static, App> {
    paused_at(setup, [1280.0, 800.0], 1.0)
}

/// Opens the same in a window of another size and scale.
pub fn paused_at(setup: Setup, size: [f32; 2], scale: f32) -> Harness<'static, App> {
    let opening = Opening { setup: Some((setup, Look::default())), paused: true, ..Opening::default() };
    let mut harness = open(opening, size, scale, Box::new(|_| None));
    until_seen(&mut harness);
    harness
}

/// Waits for a frame of the field that is to be seen. An earlier frame may be made before the run hears which
/// field that is.
fn until_seen(harness: &mut Harness<'_, App>) {
    until(harness, "the first frame", |app| {
        let state = app.state();
        state.frame.as_ref().is_some_and(|frame| frame.view.field == state.show.field)
    });
}

/// Opens a window in which a setup runs, drawn as the real window draws and not as pictures are compared.
pub fn running_as_drawn(setup: Setup) -> Harness<'static, App> {
    let opening = Opening { setup: Some((setup, Look::default())), ..Opening::default() };
    let options = RendererOptions { dithering: DITHERING, ..RendererOptions::default() };
    let mut harness = open_with(opening, [1280.0, 800.0], 1.0, Box::new(|_| None), options);
    until(&mut harness, "steps", |app| app.state().status.step > 20);
    harness
}

/// Opens a window.
pub fn open(opening: Opening, size: [f32; 2], scale: f32, opener: Opener) -> Harness<'static, App> {
    open_with(opening, size, scale, opener, RendererOptions::PREDICTABLE)
}

fn open_with(
    opening: Opening,
    size: [f32; 2],
    scale: f32,
    opener: Opener,
    options: RendererOptions,
) -> Harness<'static, App> {
    Harness::builder()
        .with_size(egui::Vec2::from(size))
        .with_pixels_per_point(scale)
        .with_render_options(options)
        .wgpu()
        .build_eframe(move |cc| App::with_opener(cc, opening, opener))
}

/// Draws frames until something holds.
pub fn until(harness: &mut Harness<'_, App>, what: &str, holds: impl Fn(&App) -> bool) {
    let begun = Instant::now();
    loop {
        harness.step();
        if holds(harness.state()) {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "waited for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Steps until a label with these words is there; news of the run may arrive at any time.
pub fn until_shown(harness: &mut Harness<'_, App>, words: &str) {
    let begun = Instant::now();
    while harness.query_by_label_contains(words).is_none() {
        assert!(begun.elapsed() < PATIENCE, "waited for the words: {words}");
        harness.step();
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Presses a control.
pub fn press(harness: &mut Harness<'_, App>, label: &str) {
    harness.get_by_label(label).click();
    harness.run_steps(2);
}

/// Waits until the run has stopped at a step, and shows it.
pub fn until_at(harness: &mut Harness<'_, App>, step: u64) {
    until(harness, &format!("step {step}"), |app| {
        let state = app.state();
        state.status.tempo == Tempo::Paused && state.frame.as_ref().is_some_and(|frame| frame.step == step)
    });
    harness.run_steps(2);
}

/// Returns the values shown, rows from the top.
pub fn values(harness: &Harness<'_, App>) -> Vec<f32> {
    harness.state().state().frame.as_ref().map(|frame| frame.images[0].values.clone()).unwrap_or_default()
}

/// Opens a window as the program does: wgpu runs on the window's own device, and fields are drawn where they
/// lie.
pub fn sharing(setup: Setup, look: Look) -> Harness<'static, App> {
    let opening = Opening { setup: Some((setup, look)), paused: true, ..Opening::default() };
    let mut harness = Harness::builder()
        .with_size([900.0, 600.0])
        .wgpu_setup(abide_viewer::window::setup())
        .build_eframe(move |cc| App::new(cc, opening));
    until_seen(&mut harness);
    harness
}

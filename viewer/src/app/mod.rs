//! The window: it hears the run, shows the state, and passes orders on.

mod bars;
mod domain;
mod gallery;
mod keys;
mod memory;
mod notices;
pub mod state;
pub mod style;
mod timed;

use std::path::PathBuf;
use std::time::Duration;

use abide::io::Format;
use eframe::{CreationContext, egui_wgpu::RenderState, wgpu};
use egui::{CentralPanel, Context, Frame, Id, Margin, Panel, ScrollArea, Ui, UiBuilder, UiStackInfo};

use self::gallery::Gallery;
use self::memory::Memory;
pub use self::notices::Notices;
use self::state::{Screen, State, Tab};
pub use self::timed::TimedWindow;
use crate::engine::{Answer, Engine, Opener, Order, sharing};
use crate::field::{background, gpu, look::Look};
use crate::panels;
use crate::setup::Setup;
use crate::solve::{Page, Question};

/// Time of the machine's cores that a software adapter takes for a frame, per million pixels.
const SOFTWARE_FRAME: Duration = Duration::from_millis(40);

/// Delay after which the window draws news of the run. Without a delay, egui would draw it twice.
const SOON: Duration = Duration::from_millis(1);

/// The first contents of the window.
#[derive(Debug, Clone, Default)]
pub struct Opening {
    /// The setup that runs at once; the gallery is shown where there is none.
    pub setup: Option<(Setup, Look)>,
    /// Whether the run waits for a press of the button.
    pub paused: bool,
    /// An error to be shown at once.
    pub error: Option<String>,
    /// A system of linear equations to be solved, instead of a run.
    pub solve: Option<Question>,
    /// The time at which the window closes by itself, if it does.
    pub timed: Option<TimedWindow>,
}

/// The window.
pub struct App {
    engine: Engine,
    state: State,
    gallery: Gallery,
    /// A solver's screen, where one is shown.
    pub solve: Option<Page>,
    memory: Memory,
    /// Whether a device draws.
    drawn: bool,
    /// Whether that device is the CPU.
    software: bool,
    canvas: Option<Id>,
    clock: Option<timed::Clock>,
}

impl App {
    /// Makes the window of a context that eframe made.
    pub fn new(cc: &CreationContext<'_>, opening: Opening) -> App {
        let opener = cc.wgpu_render_state.as_ref().map(sharing);
        App::with_opener(cc, opening, opener.unwrap_or_else(|| Box::new(|_| None)))
    }

    /// Makes the window, with backends opened by `opener`.
    pub fn with_opener(cc: &CreationContext<'_>, opening: Opening, opener: Opener) -> App {
        let ctx = cc.egui_ctx.clone();
        style::apply(&ctx);
        let memory = Memory::read(cc.storage);
        if cc.storage.is_some() {
            ctx.set_theme(memory.theme());
        }
        let mut state = State::default();
        state.tab = memory.tab;
        state.folder.folder.clone_from(&memory.folder);
        if let Some(error) = opening.error {
            state.notices.error(error);
        }
        if let Some((setup, look)) = opening.setup {
            state.start(setup, look, !opening.paused);
        }
        let solve = opening.solve.map(|question| {
            state.screen = Screen::Solve;
            let mut page = Page::new(question);
            page.start(&ctx);
            page
        });
        let render = cc.wgpu_render_state.as_ref();
        if let Some(render) = render {
            gpu::install(render);
            background::install(render);
        }
        let software = |render: &RenderState| render.adapter.get_info().device_type == wgpu::DeviceType::Cpu;
        let waker = ctx.clone();
        App {
            engine: Engine::with_opener(move || waker.request_repaint_after(SOON), opener),
            state,
            gallery: Gallery::new(),
            solve,
            memory,
            drawn: render.is_some(),
            software: render.is_some_and(software),
            canvas: None,
            clock: opening.timed.map(timed::Clock::new),
        }
    }

    /// Returns the window's state.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Returns the window's state, to be changed.
    pub fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    /// Takes the news of the run.
    fn hear(&mut self, ctx: &Context) {
        while let Some(answer) = self.engine.answer() {
            if let Answer::Command(line) = &answer {
                ctx.copy_text(line.clone());
            }
            self.state.hear(answer);
        }
        if let Some(status) = self.engine.status() {
            self.state.status = status;
        }
        if let Some(frame) = self.engine.frame() {
            self.state.see(frame);
        }
    }

    /// Takes files dropped on the window: checkpoints and fields open; onto a run, a picture becomes the
    /// field shown.
    fn take_files(&mut self, ctx: &Context) {
        let files: Vec<PathBuf> =
            ctx.input(|input| input.raw.dropped_files.iter().map(|file| file.path().to_owned()).collect());
        for path in files {
            let field =
                self.state.problem().and_then(|p| p.program.fields().get(self.state.show.field).cloned());
            match field {
                // A `.npz` is a checkpoint here.
                Some(field) if abide::io::is_input(&path) && Format::of(&path).ok() != Some(Format::Npz) => {
                    let path = abide::io::naming(&path, &field);
                    self.state.orders.push(Order::Load { field, path })
                }
                _ => gallery::open(&mut self.state, &path.display().to_string()),
            }
        }
    }

    fn pass_on(&mut self) {
        self.state.look_there();
        for order in self.state.orders.drain(..) {
            if !self.engine.order(order) {
                self.state.notices.error("The run has ended by a fault; start the viewer again.".to_owned());
                return;
            }
        }
    }

    fn screen(&mut self, ui: &mut Ui) {
        match self.state.screen {
            Screen::Gallery => {
                let last = self.memory.setup.as_ref().map(|setup| (setup, &self.memory.look));
                CentralPanel::default().show(ui, |ui| self.gallery.show(ui, &mut self.state, last));
            }
            Screen::Run => self.run_screen(ui),
            Screen::Solve => self.solve_screen(ui),
        }
    }

    fn solve_screen(&mut self, ui: &mut Ui) {
        let leave = self.solve.as_mut().is_none_or(|page| {
            page.hear();
            page.show(ui)
        });
        if leave {
            self.solve = None;
            self.state.leave();
        }
    }

    fn run_screen(&mut self, ui: &mut Ui) {
        let state = &mut self.state;
        Panel::top("controls").show(ui, |ui| {
            ui.add_space(3.0);
            bars::controls(ui, state);
            ui.add_space(3.0);
        });
        Panel::bottom("status").show(ui, |ui| bars::status(ui, state));
        if state.run.is_none() {
            return;
        }
        Panel::right("pages").default_size(340.0).size_range(280.0..=520.0).show(ui, |ui| {
            ui.add_space(6.0);
            ui.horizontal(|ui| {
                for tab in Tab::ALL {
                    ui.selectable_value(&mut state.tab, tab, tab.name());
                }
            });
            ui.separator();
            ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
                page(ui, state);
                ui.add_space(12.0);
            });
        });
        if state.curves.open && state.scalars().next().is_some() {
            Panel::bottom("scalars").resizable(true).default_size(150.0).size_range(96.0..=420.0).show(
                ui,
                |ui| {
                    ui.add_space(4.0);
                    panels::scalars::show(ui, state);
                },
            );
        }
        let frame = Frame::central_panel(ui.style()).inner_margin(Margin::same(12));
        CentralPanel::default().frame(frame).show(ui, |ui| self.canvas = domain::show(ui, state, self.drawn));
    }
}

/// Shows the page beside the field.
fn page(ui: &mut Ui, state: &mut State) {
    match state.tab {
        Tab::Model => panels::model::show(ui, state),
        Tab::View => panels::view::show(ui, state),
        Tab::Touch => panels::touch::show(ui, state),
        Tab::Speed => panels::throughput::show(ui, state),
        Tab::Keep => panels::keep::show(ui, state),
    }
}

impl eframe::App for App {
    fn ui(&mut self, ui: &mut Ui, _frame: &mut eframe::Frame) {
        let ctx = ui.ctx().clone();
        self.hear(&ctx);
        self.take_files(&ctx);
        keys::act(&ctx, &mut self.state, self.canvas);
        if self.software {
            let pixels = (ctx.content_rect().size() * ctx.pixels_per_point()).max(egui::Vec2::ZERO);
            self.engine.drawing_takes(SOFTWARE_FRAME.mul_f32(pixels.x * pixels.y / 1e6));
        }
        let background = style::background(ctx.theme());
        if self.drawn {
            ui.painter().add(background::shape(ctx.content_rect(), background));
        }
        // Widgets that fade out at an edge fade into the background.
        let info = UiStackInfo::default().with_frame(Frame::new().fill(background));
        ui.scope_builder(UiBuilder::new().max_rect(ui.max_rect()).ui_stack_info(info), |ui| self.screen(ui));
        self.state.notices.show(&ctx);
        panels::loops::show(&ctx, &mut self.state);
        if self.state.help {
            panels::help(&ctx, &mut self.state.help, keys::HELP);
        }
        self.pass_on();
        if let Some(clock) = &mut self.clock {
            clock.look(&ctx, &self.state);
        }
        if self.state.run.is_some() {
            self.memory =
                Memory::of(&self.state, ctx.options(|options| options.theme_preference), &self.memory);
        }
    }

    fn save(&mut self, storage: &mut dyn eframe::Storage) {
        self.memory.write(storage);
    }
}

//! The window's whole state, apart from the run itself; panels change it and leave orders for the run in it.

use std::path::PathBuf;
use std::sync::Arc;

use abide::Problem;
use abide::program::{Centring, Scalar};
use serde::{Deserialize, Serialize};

use super::notices::Notices;
use crate::engine::{
    Answer, Comparison, Frame, Keep, Order, Recording, Section, Speed, Started, Status, Tempo, Touch,
    Variant, View,
};
use crate::field::look::{Look, Scale};
use crate::field::viewport::Viewport;
use crate::panels::loops::LoopsWindow;
use crate::panels::scalars::TIME;
use crate::setup::Setup;

/// The screen that fills the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Screen {
    /// The scenes.
    Gallery,
    /// A run.
    Run,
    /// A linear solve.
    Solve,
}

/// The pages of the panel beside the field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Tab {
    /// The computation.
    #[default]
    Model,
    /// The look of the field.
    View,
    /// Changes by hand.
    Touch,
    /// The speed.
    Speed,
    /// Files.
    Keep,
}

impl Tab {
    /// All pages, in order.
    pub const ALL: [Tab; 5] = [Tab::Model, Tab::View, Tab::Touch, Tab::Speed, Tab::Keep];

    /// Returns the name on the tab.
    pub fn name(self) -> &'static str {
        match self {
            Tab::Model => "Model",
            Tab::View => "View",
            Tab::Touch => "Touch",
            Tab::Speed => "Speed",
            Tab::Keep => "Keep",
        }
    }
}

/// Ways to cut a three-dimensional domain for the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Slicing {
    /// One slice.
    #[default]
    Slice,
    /// Three slices at once.
    Three,
    /// The largest value along an axis.
    Maximum,
}

/// Effects of dragging on the field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tool {
    /// Moves the field.
    #[default]
    Move,
    /// Paints with a brush.
    Brush,
    /// Drops a point source.
    Point,
}

/// The brush.
#[derive(Debug, Clone, PartialEq)]
pub struct Hand {
    /// The effect of dragging.
    pub tool: Tool,
    /// The value painted.
    pub value: f64,
    /// The brush's radius in cells.
    pub radius: f64,
    /// The cell at which the keyboard paints, slowest axis first.
    pub at: [usize; 3],
    /// A file to be loaded into the field shown.
    pub file: String,
}

/// The folder of files, and the options of recordings.
#[derive(Debug, Clone, PartialEq)]
pub struct Folder {
    /// The folder.
    pub folder: String,
    /// Steps between the frames of a recording.
    pub every: u64,
    /// Whether recordings are numbered pictures instead of a movie.
    pub numbered: bool,
    /// The last command line.
    pub command: String,
}

/// Two ways of running, and how they compare.
#[derive(Debug, Clone, PartialEq)]
pub struct Versus {
    /// The two ways.
    pub variants: [Variant; 2],
    /// The latest comparison.
    pub comparison: Option<Comparison>,
}

/// The curves of the computed scalars.
#[derive(Debug, Clone, PartialEq)]
pub struct Curves {
    /// Whether they are shown where there are any.
    pub open: bool,
    /// The names of the scalars that have no curve.
    pub hidden: Vec<String>,
    /// Whether they are drawn over the simulated time, where a scalar counts it, and not over the steps.
    pub over_time: bool,
}

/// The part of the field that is in view.
#[derive(Debug, Clone, PartialEq)]
pub struct Show {
    /// The number of the field.
    pub field: usize,
    /// The way in which a three-dimensional domain is cut.
    pub slicing: Slicing,
    /// The axis across which the domain is cut.
    pub axis: usize,
    /// The place of the cut along each axis.
    pub at: [usize; 3],
    /// Zoom and place of each plane.
    pub sights: [Option<Viewport>; 3],
    /// The rows and columns of pixels on the screen.
    pub pixels: [usize; 2],
    /// The cells in view of a single plane.
    pub window: Option<[[usize; 2]; 2]>,
}

/// The window's whole state.
pub struct State {
    /// The screen that fills the window.
    pub screen: Screen,
    /// The setup that the model's panel describes; it runs once it is started.
    pub draft: Setup,
    /// The simulation that runs.
    pub run: Option<Started>,
    /// The newest frame, and how many there were.
    pub frame: Option<Arc<Frame>>,
    /// See [`State::frame`].
    pub serial: u64,
    /// The run's state and rate.
    pub status: Status,
    /// The look of the field.
    pub look: Look,
    /// The part of the field in view.
    pub show: Show,
    /// The curves of the computed scalars.
    pub curves: Curves,
    /// The window of the program's loops.
    pub loops: LoopsWindow,
    /// The brush.
    pub hand: Hand,
    /// The speed of the run.
    pub speed: Speed,
    /// The folder of files.
    pub folder: Folder,
    /// Two ways of running.
    pub versus: Versus,
    /// The notices in the window.
    pub notices: Notices,
    /// The page beside the field.
    pub tab: Tab,
    /// Whether the keys are shown.
    pub help: bool,
    /// The cell under the pointer.
    pub pointed: Option<[usize; 3]>,
    /// The look and field of a scene, kept until its run has started.
    waiting: Option<Look>,
    /// Orders for the run.
    pub orders: Vec<Order>,
    /// The view that the run received last.
    sent: Option<View>,
}

impl Default for State {
    fn default() -> Self {
        let draft = Setup::default();
        let way = Variant::of(&draft);
        State {
            screen: Screen::Gallery,
            run: None,
            frame: None,
            serial: 0,
            status: Status::default(),
            look: Look::default(),
            show: Show {
                field: 0,
                slicing: Slicing::Slice,
                axis: 0,
                at: [0; 3],
                sights: [None; 3],
                pixels: [512; 2],
                window: None,
            },
            curves: Curves { open: true, hidden: vec![TIME.to_owned()], over_time: false },
            loops: LoopsWindow::default(),
            hand: Hand { tool: Tool::Move, value: 1.0, radius: 8.0, at: [0; 3], file: String::new() },
            speed: Speed::Fastest,
            folder: Folder { folder: String::new(), every: 50, numbered: false, command: String::new() },
            versus: Versus { variants: [way.clone(), way], comparison: None },
            notices: Notices::default(),
            tab: Tab::Model,
            help: false,
            pointed: None,
            waiting: None,
            orders: Vec::new(),
            sent: None,
            draft,
        }
    }
}

impl State {
    /// Starts a setup with this look.
    pub fn start(&mut self, setup: Setup, look: Look, run: bool) {
        self.draft = setup.clone();
        self.waiting = Some(look);
        self.orders.push(Order::Start { setup: Box::new(setup), run });
    }

    /// Starts the setup that the model's panel describes.
    pub fn restart(&mut self) {
        if let Some(Ok(model)) = self.draft.formulas.as_ref().map(|text| abide::text::read(text, "formulas"))
        {
            self.draft.model = model.program.name().to_owned();
        }
        let run = self.status.tempo != Tempo::Paused || self.screen == Screen::Gallery;
        self.start(self.draft.clone(), self.look.clone(), run);
    }

    /// Returns to the gallery and ends the run.
    pub fn leave(&mut self) {
        self.screen = Screen::Gallery;
        self.run = None;
        self.frame = None;
        self.sent = None;
        self.orders.push(Order::Clear);
    }

    /// Runs or pauses.
    pub fn toggle(&mut self) {
        self.orders.push(if self.status.tempo == Tempo::Running { Order::Pause } else { Order::Run });
    }

    /// Returns the problem that runs.
    pub fn problem(&self) -> Option<&Problem> {
        self.run.as_ref().map(|run| &run.problem)
    }

    /// Returns the extents of the field shown, along the three padded axes.
    pub fn extents(&self) -> Option<[usize; 3]> {
        self.problem().map(|problem| problem.extents_of(self.show.field))
    }

    /// Returns where the values of the field shown stand.
    pub fn centring(&self) -> Option<Centring> {
        self.problem()?.program.kinds().get(self.show.field).map(|kind| kind.centring)
    }

    /// Returns the scalars that stages compute, with their numbers; extents of the domain are none.
    pub fn scalars(&self) -> impl Iterator<Item = (usize, &Scalar)> {
        let all = self.problem().map_or(&[][..], |problem| problem.program.scalars());
        all.iter().enumerate().filter(|(_, scalar)| scalar.extent.is_none())
    }

    /// Returns the present scale of the colours.
    pub fn scale(&self) -> Scale {
        self.look.scale(self.frame.as_ref().and_then(|frame| frame.extremes))
    }

    /// Takes an answer of the run.
    pub fn hear(&mut self, answer: Answer) {
        match answer {
            Answer::Started(started) => self.begin(*started),
            Answer::Failed { doing, error } => self.notices.error(format!("{}: {error}", capital(doing))),
            Answer::Warning(text) => self.notices.error(text),
            Answer::Wrote(path) => self.notices.note(format!("Wrote {}", path.display())),
            Answer::Command(line) => {
                self.folder.command.clone_from(&line);
                self.notices.note("The command line is in the clipboard.".to_owned());
            }
            Answer::Compared(comparison) => self.versus.comparison = Some(comparison),
        }
    }

    fn begin(&mut self, started: Started) {
        let again = self.run.as_ref().is_some_and(|run| {
            run.problem.shape == started.problem.shape
                && run.setup.model == started.setup.model
                && run.problem.program.fields() == started.problem.program.fields()
        });
        let extents = started.problem.shape.padded();
        if let Some(look) = self.waiting.take() {
            self.look = look;
        }
        if !again {
            self.show.field = started.problem.program.shown();
            self.show.slicing = Slicing::Slice;
            self.show.axis = 0;
            self.show.at = extents.map(|n| n / 2);
            self.show.sights = [None; 3];
            self.show.window = None;
            self.hand.at = self.show.at;
            self.hand.radius = (extents[1].min(extents[2]) as f64 / 40.0).round().clamp(1.0, 64.0);
            self.versus.comparison = None;
            self.curves.hidden = vec![TIME.to_owned()];
        }
        self.versus.variants[0] = Variant::of(&started.setup);
        self.draft = started.setup.clone();
        let program = &started.problem.program;
        self.draft.parameters = program
            .parameters()
            .iter()
            .zip(&started.problem.parameters)
            .filter(|(parameter, value)| parameter.default != **value)
            .filter(|(parameter, _)| program.settable(&parameter.name).is_ok())
            .map(|(parameter, value)| (parameter.name.clone(), *value))
            .collect();
        for note in &started.notes {
            self.notices.quiet(note.clone());
        }
        self.run = Some(started);
        self.frame = None;
        self.sent = None;
        self.screen = Screen::Run;
    }

    /// Takes a frame, unless it is of a run that has ended.
    pub fn see(&mut self, frame: Frame) {
        if self.run.as_ref().is_some_and(|run| run.run == frame.run) {
            self.serial += 1;
            self.frame = Some(Arc::new(frame));
        }
    }

    /// Returns the cut that is shown.
    pub fn cut(&self) -> Section {
        match self.show.slicing {
            Slicing::Slice => Section::Slice { axis: self.show.axis, index: self.show.at[self.show.axis] },
            Slicing::Three => Section::Three(self.show.at),
            Slicing::Maximum => Section::Maximum { axis: self.show.axis },
        }
    }

    /// Orders frames of the part in view, where that part has changed.
    pub fn look_there(&mut self) {
        let Some(extents) = self.extents() else { return };
        let cut = self.cut().within(extents);
        let view = View {
            field: self.show.field,
            cut,
            window: self.show.window,
            pixels: self.show.pixels,
            probe: self.pointed,
        };
        if self.sent.as_ref() != Some(&view) {
            self.orders.push(Order::View(view.clone()));
            self.sent = Some(view);
        }
    }

    /// Shows the whole plane.
    pub fn fit(&mut self) {
        self.show.sights = [None; 3];
    }

    /// Paints at these cells of the plane across an axis.
    pub fn paint(&mut self, axis: usize, centres: Vec<[usize; 3]>) {
        if centres.is_empty() {
            return;
        }
        let radius = if self.hand.tool == Tool::Point { 0.0 } else { self.hand.radius };
        let touch = Touch { field: self.show.field, axis, centres, radius, value: self.hand.value };
        self.orders.push(Order::Touch(touch));
    }

    /// Returns a file's place in the folder: the model's name, the step, and an ending.
    pub fn file(&self, ending: &str) -> PathBuf {
        let model = self.run.as_ref().map_or("abide", |run| run.setup.model.as_str());
        PathBuf::from(self.folder.folder.trim()).join(format!("{model}-{:08}{ending}", self.status.step))
    }

    /// Orders that a file is written.
    pub fn keep(&mut self, keep: Keep) {
        self.orders.push(Order::Keep(keep));
    }

    /// Orders a picture of the part in view.
    pub fn keep_picture(&mut self) {
        let (path, look) = (self.file(".png"), self.look.clone());
        self.keep(Keep::Picture { path, look });
    }

    /// Begins a recording, or completes the one in progress.
    pub fn record(&mut self) {
        let order = match self.status.recorded {
            Some(_) => None,
            None => {
                let ending = if self.folder.numbered { "_%05d.png" } else { ".gif" };
                Some(Recording {
                    path: self.file(ending),
                    every: self.folder.every.max(1),
                    look: self.look.clone(),
                })
            }
        };
        self.orders.push(Order::Record(order));
    }
}

/// Makes the first letter a capital.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

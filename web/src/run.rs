//! The page's loop: some steps, a picture, the next frame.

use std::cell::Cell;
use std::rc::Rc;

use abide_core::backend::Backend;
use abide_core::{Array, Plan, Problem, Real, Result};
use abide_wgpu::{WgpuBackend, WgpuSession};
use wasm_bindgen::prelude::wasm_bindgen;
use web_time::Instant;

use crate::asked::Asked;
use crate::check;
use crate::page::{Page, State};
use crate::pixels::Palette;
use crate::rate::Rate;
use crate::rhythm::Rhythm;

/// Runs the page; the browser calls it once the page is loaded.
#[wasm_bindgen(start)]
pub async fn start() {
    console_error_panic_hook::set_once();
    // Without a page there is nowhere to say so.
    let Ok(page) = Page::find() else { return };
    if let Err(error) = run(&page).await {
        page.say("message", &error.to_string());
        page.show(State::Failed);
    }
}

async fn run(page: &Page) -> Result<()> {
    let asked = Asked::parse(&page.query())?;
    edit(page, &asked);
    let problem = asked.problem()?;
    if asked.formulas.is_none() {
        page.write("formulas", &abide_text::write(&problem.program)?);
    }
    let (name, shape) = (problem.program.name(), &problem.shape);
    page.say("title", &format!("{name}, {shape} {}", problem.dtype));
    let backend = WgpuBackend::new_async().await?;
    page.say("device", &format!("{} ({})", backend.device().name, backend.driver()));
    let plan = backend.plan(&problem, &asked.options())?;
    page.say("plan", &plan.summary());
    let start = start_of(&problem)?;
    if asked.check {
        let report = check::check(&backend, &problem, &plan, asked.steps.unwrap_or(100)).await?;
        page.say("check", &report.to_string());
        page.note("check", &report.json());
    }
    let session = backend.open_async(&problem, &plan, start).await?;
    Loop::new(page, &asked, problem, plan, session).go().await
}

/// Shows the link's formulas, and loads the page with others when they are to be run.
fn edit(page: &Page, asked: &Asked) {
    page.write("formulas", asked.formulas.as_deref().unwrap_or_default());
    let (own, [rows, columns]) = (page.clone(), asked.size);
    page.on_press("use", move || {
        let text = js_sys::encode_uri_component(&own.written("formulas"));
        own.go_to(&format!("?size={rows}x{columns}&formulas={text}"));
    });
}

/// Makes the model's initial fields.
fn start_of(problem: &Problem) -> Result<Vec<Array>> {
    let fields = 0..problem.program.fields().len();
    fields.map(|field| problem.program.start(field).fill(&problem.shape, problem.dtype)).collect()
}

/// The buttons pressed since the last frame.
#[derive(Default)]
struct Pressed {
    toggle: Cell<bool>,
    restart: Cell<bool>,
}

struct Loop<'a> {
    page: &'a Page,
    problem: Problem,
    session: WgpuSession,
    size: [usize; 2],
    most: u64,
    rhythm: Rhythm,
    rate: Rate,
    steps: u64,
    pressed: Rc<Pressed>,
}

impl<'a> Loop<'a> {
    fn new(page: &'a Page, asked: &Asked, problem: Problem, plan: Plan, session: WgpuSession) -> Loop<'a> {
        let pressed = Rc::new(Pressed::default());
        let (toggle, restart) = (pressed.clone(), pressed.clone());
        page.on_press("toggle", move || toggle.toggle.set(!toggle.toggle.get()));
        page.on_press("restart", move || restart.restart.set(true));
        let (size, most) = (asked.size, asked.steps.unwrap_or(u64::MAX));
        let rate = Rate::new(problem.shape.cells());
        Loop { page, problem, session, size, most, rhythm: Rhythm::new(plan.depth), rate, steps: 0, pressed }
    }

    async fn go(mut self) -> Result<()> {
        let (palette, mut pixels) = (Palette::default(), Vec::new());
        let mut state = State::Running;
        self.page.show(state);
        loop {
            let mut is_new = state == State::Running;
            if self.pressed.restart.take() {
                for (field, values) in start_of(&self.problem)?.iter().enumerate() {
                    self.session.write_async(field, values).await?;
                }
                self.steps = 0;
                is_new = true;
            } else if state == State::Running {
                self.advance().await?;
            }
            if is_new {
                let shown = self.session.read_async(self.problem.program.shown()).await?;
                if let Some(values) = f32::slice(&shown) {
                    palette.pixels(values, &mut pixels);
                    self.page.draw(self.size, &pixels)?;
                }
                self.page.say("steps", &self.steps.to_string());
            }
            let toggle = self.pressed.toggle.take();
            let next = match state {
                State::Running if self.steps == self.most => State::Done,
                State::Running if toggle => State::Stopped,
                State::Stopped if toggle => State::Running,
                State::Done if toggle || self.steps < self.most => {
                    // Either goes on beyond the steps that the link asked for, or begins once more.
                    self.most = if self.steps < self.most { self.most } else { u64::MAX };
                    State::Running
                }
                same => same,
            };
            if next != state {
                state = next;
                self.page.show(state);
            }
            self.page.frame().await?;
        }
    }

    /// Advances by the steps of a frame, and times them.
    async fn advance(&mut self) -> Result<()> {
        let steps = self.rhythm.steps(self.most - self.steps);
        let begun = Instant::now();
        let seconds = self.session.advance_async(steps).await?;
        self.rhythm.learn(steps, begun.elapsed().as_secs_f64());
        self.steps += steps;
        if let Some(rate) = self.rate.after(steps, seconds) {
            self.page.say("rate", &rate);
        }
        Ok(())
    }
}

//! The page's elements, which `page/index.html` holds by their ids.

use abide_core::{Error, Result};
use js_sys::Promise;
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{Clamped, JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{
    CanvasRenderingContext2d, Document, Element, HtmlCanvasElement, HtmlElement, HtmlTextAreaElement,
    ImageData, Window,
};

/// The state of the page, for its style and for whoever drives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Steps are under way.
    Running,
    /// Stopped by the reader.
    Stopped,
    /// All steps that were asked for are done.
    Done,
    /// The page failed, and says how.
    Failed,
}

/// The page.
#[derive(Clone)]
pub struct Page {
    window: Window,
    document: Document,
    canvas: HtmlCanvasElement,
    context: CanvasRenderingContext2d,
}

impl Page {
    /// Finds the page that this program runs in.
    pub fn find() -> Result<Page> {
        let missing = |what: &str| broken(format!("it has no {what}"));
        let window = web_sys::window().ok_or_else(|| missing("window"))?;
        let document = window.document().ok_or_else(|| missing("document"))?;
        let canvas = document.get_element_by_id("canvas").and_then(|found| found.dyn_into().ok());
        let canvas: HtmlCanvasElement = canvas.ok_or_else(|| missing("canvas"))?;
        let context = canvas.get_context("2d").ok().flatten().and_then(|context| context.dyn_into().ok());
        let context = context.ok_or_else(|| missing("canvas to draw on"))?;
        Ok(Page { window, document, canvas, context })
    }

    /// Returns the part of the link from the question mark on.
    pub fn query(&self) -> String {
        self.window.location().search().unwrap_or_default()
    }

    /// Sets the text of an element.
    pub fn say(&self, id: &str, text: &str) {
        if let Some(element) = self.element(id) {
            element.set_text_content(Some(text));
        }
    }

    /// Returns the text that stands in a field of the page.
    pub fn written(&self, id: &str) -> String {
        self.area(id).map_or_else(String::new, |area| area.value())
    }

    /// Puts a text into a field of the page.
    pub fn write(&self, id: &str, text: &str) {
        if let Some(area) = self.area(id) {
            area.set_value(text);
        }
    }

    fn area(&self, id: &str) -> Option<HtmlTextAreaElement> {
        self.element(id)?.dyn_into().ok()
    }

    /// Loads the page anew, with another part of the link from the question mark on.
    pub fn go_to(&self, query: &str) {
        // Setting it fails only for pages without an address.
        let _ = self.window.location().set_search(query);
    }

    /// Shows the state.
    pub fn show(&self, state: State) {
        let name = match state {
            State::Running => "running",
            State::Stopped => "stopped",
            State::Done => "done",
            State::Failed => "failed",
        };
        self.note("state", name);
        self.say("toggle", if state == State::Running { "Stop" } else { "Start" });
    }

    /// Notes a value in the document's body for whoever drives the page.
    pub fn note(&self, name: &str, value: &str) {
        if let Some(body) = self.document.body() {
            // Setting fails only for invalid names.
            let _ = body.dataset().set(name, value);
        }
    }

    /// Calls `press` whenever a button is pressed, as long as the page lives.
    pub fn on_press(&self, id: &str, press: impl FnMut() + 'static) {
        let button = self.element(id).and_then(|found| found.dyn_into::<HtmlElement>().ok());
        if let Some(button) = button {
            let call = Closure::<dyn FnMut()>::new(press);
            button.set_onclick(Some(call.as_ref().unchecked_ref()));
            call.forget();
        }
    }

    /// Draws rows × columns of pixels.
    pub fn draw(&self, [rows, columns]: [usize; 2], pixels: &[u8]) -> Result<()> {
        let (width, height) = (columns as u32, rows as u32);
        if (self.canvas.width(), self.canvas.height()) != (width, height) {
            self.canvas.set_width(width);
            self.canvas.set_height(height);
        }
        ImageData::new_with_u8_clamped_array_and_sh(Clamped(pixels), width, height)
            .and_then(|image| self.context.put_image_data(&image, 0.0, 0.0))
            .map_err(|error| broken(format!("its canvas cannot be drawn on: {error:?}")))
    }

    /// Waits until the browser draws the next frame; while the page is hidden it draws none.
    pub async fn frame(&self) -> Result<()> {
        let mut ask = |resolve: js_sys::Function, _| {
            // Without a next frame the promise is never kept, and the page stands still, as it should.
            let _ = self.window.request_animation_frame(&resolve);
        };
        let frame = JsFuture::from(Promise::new(&mut ask)).await;
        frame.map(|_: JsValue| ()).map_err(|error| broken(format!("it gets no frames: {error:?}")))
    }

    fn element(&self, id: &str) -> Option<Element> {
        self.document.get_element_by_id(id)
    }
}

fn broken(reason: String) -> Error {
    Error::invalid(
        "the page",
        reason,
        "load page/index.html, as cargo xtask web writes it, in a recent browser",
    )
}

//! The field on screen: the places of its cells, the pointer's actions on them, and its colours.

pub mod background;
mod bar;
mod canvas;
mod gather;
pub mod gpu;
mod line;
pub mod look;
mod triangle;
pub mod viewport;

pub use bar::{bar, exact, number};
pub use canvas::{Canvas, Gesture, zoom as canvas_zoom};
pub use line::line;

//! The field on screen: the places of its cells, the pointer's actions on them, and its colours.

mod bar;
mod canvas;
mod gather;
pub mod gpu;
pub mod ground;
mod line;
pub mod look;
pub mod sight;
mod triangle;

pub use bar::{bar, exact, number};
pub use canvas::{Canvas, Gesture, zoom as canvas_zoom};
pub use line::line;

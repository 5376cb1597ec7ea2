//! The window of Abide: a simulation runs in it as fast as the machine can, shows what the hardware does, and
//! can be touched.
//!
//! [`engine`] runs the simulation in a thread of its own; [`field`] draws it; [`panels`] are the pages beside
//! it; [`app`] is the window around all of them. [`scenes`] are ready to run, and [`setup`] describes the
//! computation. [`solve`] shows a system of linear equations while it is solved.
#![deny(missing_docs)]

pub mod app;
pub mod arguments;
pub mod drawing;
pub mod engine;
pub mod field;
pub mod panels;
mod plot;
pub mod scenes;
pub mod setup;
pub mod solve;
pub mod window;

//! 2.5-D streaming with temporal blocking: planes of the domain pass through a window once and leave it
//! several steps later.
//!
//! It is one algorithm in two forms, which share how a stage is cut by the plane that arrives ([`carry`]):
//! [`warp`] for CUDA, with windows as wide as a warp, and [`portable`] for devices that tell next to nothing
//! of themselves.

pub mod carry;
pub mod portable;
pub mod warp;

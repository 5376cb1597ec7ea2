//! 2.5-D streaming with temporal blocking: planes of the domain pass through a window once and leave it
//! several steps later.
//!
//! It is one algorithm in two forms: [`warp`] for CUDA, with windows as wide as a warp, and [`portable`] for
//! devices that tell next to nothing of themselves. They share what a problem asks of them
//! (`requirement.rs`), how a stage is cut by the plane that arrives ([`carry`]) and how windows cover the
//! domain (`windows.rs`). Each has its own free choices, room on the chip and estimate, because their kernels
//! differ.

pub mod carry;
pub mod portable;
pub(super) mod requirement;
pub mod warp;
mod windows;

//! 2.5-D streaming with temporal blocking: planes of the domain pass through a window once and leave it
//! several steps later.
//!
//! It is one algorithm in two forms: [`warp`] for CUDA, with windows as wide as a warp, and [`portable`] for devices
//! that report almost nothing about themselves. They share the demands of a problem (`requirement.rs`), the division
//! of a stage by the plane that arrives ([`carry`]) and the placement of windows over the domain (`windows.rs`). Each
//! has its own free choices, room on the chip and estimate, because their kernels differ.

pub mod carry;
pub mod masks;
pub mod portable;
pub mod warp;

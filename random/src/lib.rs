//! Random programs, domains and ways to run them on the CPU: what tests and fuzzing hold against the
//! reference.
//!
//! Two kinds of programs. Those of [`grown`] take any operator and start from values among which are NaN,
//! infinity and subnormal numbers; those of [`formulas`] are trees of correctly rounded operators, for every
//! backend.
#![deny(missing_docs)]

pub mod formulas;
pub mod grown;
mod way;

pub use way::{Way, ways};

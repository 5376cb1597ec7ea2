//! Random programs, domains and ways to run them on the CPU, for comparisons with the reference in tests and
//! fuzzing.
//!
//! There are three kinds of programs. Those of [`grown`] take any operator and start from values that include
//! NaN, infinity and subnormal numbers. Those of [`formulas`] are trees of correctly rounded operators, for
//! every backend. Those of [`programs`] have fields of several kinds, scalars and reductions, and those of [`described`]
//! all parts that a model file can hold; those of [`swept`] repeat stages, those of [`systems`] solve linear systems, those of [`timed`] have scalars that are known before the step, temporaries and points; [`cases`] has such programs written by hand, and [`looped`] one whose formulas have loops.
#![deny(missing_docs)]

pub mod cases;
pub mod described;
pub mod formulas;
pub mod grown;
pub mod looped;
pub mod partitions;
pub mod programs;
pub mod swept;
pub mod systems;
pub mod timed;
mod way;

pub use way::{Way, ways};

/// Returns whether a case, by its number among all, is the one of so many that a test takes of a list too long to run whole. The
/// choice keeps step with no list that cases are made of.
pub fn is_one_in(count: usize, number: usize) -> bool {
    (number + number / count + number / count.pow(2)).is_multiple_of(count)
}

//! Fuzzing: the targets, the checks of each execution, and the files to start from.
//!
//! A [`Target`] processes any bytes. [`execute()`] runs it once and says what was wrong: a panic, no end,
//! more memory than the bytes are worth, or a failure of the target's own checks of its result. The program
//! `abide-fuzz` lets libFuzzer choose the bytes; `cargo test` replays the corpus and earlier findings, and a
//! few mutations.
//!
//! The daily practice of fuzzing is in docs/internals/robustness.md.

pub mod execute;
pub mod files;
pub mod memory;
pub mod mutate;
pub mod targets;

pub use execute::execute;
pub use targets::{TARGETS, Target};

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

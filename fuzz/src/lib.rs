//! Fuzzing: the targets, what each execution is held to, and the files to start from.
//!
//! A [`Target`] makes something of any bytes. [`execute()`] runs it once and says what was wrong with that: a
//! panic, no end, more memory than the bytes are worth, or what the target itself holds against its result.
//! The program `abide-fuzz` lets libFuzzer choose the bytes; `cargo test` replays the corpus and what was
//! found before, and a few mutations.
//!
//! How fuzzing is done day by day: docs/testing.md.

pub mod execute;
pub mod files;
pub mod memory;
pub mod mutate;
pub mod targets;

pub use execute::execute;
pub use targets::{TARGETS, Target};

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

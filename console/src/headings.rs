//! The groups of options in a command's long help.
//!
//! An option of no group is a basic one: the short help (`-h`) lists those alone, `--help` all.

/// Files beside the result, written on the way or at the end.
pub const OUTPUT: &str = "Output";

/// How pictures and movies look.
pub const PICTURES: &str = "Pictures";

/// Stopping and resuming.
pub const CHECKPOINTS: &str = "Checkpoints";

/// The devices of a run, and what they exchange.
pub const DEVICES: &str = "Devices";

/// The schedule.
pub const PLANNING: &str = "Planning";

/// How formulas become kernels.
pub const KERNELS: &str = "Kernels";

/// When a solver ends, and what it takes of the system for granted.
pub const ITERATIONS: &str = "Iterations";

/// What is measured, and how thoroughly.
pub const MEASURING: &str = "Measuring";

/// Models of papers, and pictures of a program's loops.
pub const LOOPS: &str = "Models and loops";

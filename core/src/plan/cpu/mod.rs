//! The schedules of a CPU, whose threads share rows of cells.
//!
//! A stepwise run sweeps all rows of a stage before the next stage begins. Streaming and persistent runs
//! advance tiles by several steps while their planes stream past ([`Tiling`]); the two differ in which
//! threads wait for which between two passes.

mod description;
mod levels;

use serde::Serialize;

pub use levels::{Level, Levels, Output, Ring, across};

/// Rows of cells, each evaluated in chunks that stay in the first-level cache.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cpu {
    /// Threads.
    pub threads: usize,
    /// Whether each thread stays on a core of its own.
    pub pinned: bool,
    /// Cells of a chunk; a multiple of the widest vector.
    pub chunk: usize,
    /// Whether consecutive launches of a program, those of several steps too, share one sweep over the rows. Otherwise each launch
    /// goes over all its values by itself, loop by loop, with the same bits.
    pub fuse: bool,
    /// The tiles that are advanced by several steps at a time; `None` for a stepwise run.
    pub tiling: Option<Tiling>,
}

/// Tiles that are advanced by several steps while their planes stream past; a plane of two axes is a row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tiling {
    /// Tiles along the three axes, slowest first.
    pub tiles: [usize; 3],
    /// Cells of the largest tile along the three axes.
    pub tile: [usize; 3],
    /// Planes that each level of a pass does at a time.
    pub block: usize,
    /// Bytes of the planes that a thread keeps between the levels of a pass.
    pub ring_bytes: usize,
    /// Cells computed per cell advanced; 1 where no tiles overlap.
    pub overlap: f64,
}

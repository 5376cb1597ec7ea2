//! Chains: groups of stages that follow each other in a step and go over few values each, as one launch.
//!
//! A launch takes a device some microseconds, however little it does. The coarse grids of multigrid, the formulas of scalars
//! between two reductions and all stages on small domains take less than that, so one launch of a few blocks does several of
//! them: between two stages its blocks wait for each other, or, where one block does both, its threads do.

use std::ops::Range;

use serde::Serialize;

/// Groups of a step that follow each other, as one launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Chain {
    /// The step of the cycle.
    pub step: usize,
    /// The places of the groups among the step's. What only renames among them is never launched.
    pub groups: Range<usize>,
    /// Blocks, which are a cluster where they are several.
    pub blocks: usize,
    /// Threads of a block.
    pub threads: usize,
    /// The most values of a stage that one block computes alone, while the others wait.
    pub alone: usize,
}

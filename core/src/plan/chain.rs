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
    /// Who carries them out.
    pub by: Carrier,
}

/// Who carries out the groups of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Carrier {
    /// A few blocks.
    Blocks {
        /// How many, which are a cluster where they are several.
        blocks: usize,
        /// Threads of a block.
        threads: usize,
        /// The most values of a stage that one block computes alone, while the others wait.
        alone: usize,
    },
    /// The kernel of the first group, which reduces: the block that joins the leaves computes the formulas of scalars behind it.
    Reduction,
}

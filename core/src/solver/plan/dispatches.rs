//! Plans of solvers on devices without a barrier of all workgroups: an iteration is a few dispatches, each of
//! which ends before the next begins.
//!
//! Nothing stays on the chip from one dispatch to the next, so there is little to choose: how many threads a
//! row gets, and from which length on a row gets a whole workgroup.

use serde::Serialize;

use super::{SolvePlan, SolveSchedule};

/// The work of a method's kernels, as their author counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Dispatches per iteration.
    pub dispatches: usize,
    /// Vectors that an iteration reads or writes; each access counts.
    pub passes: usize,
    /// Products with the matrix per iteration.
    pub products: usize,
    /// Vectors that are kept.
    pub vectors: usize,
}

/// The layout of a solve by dispatches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Dispatches {
    /// Threads of a workgroup.
    pub threads: usize,
    /// Rows of a workgroup in a dispatch that sums over vectors: a power of two, so that they are a block of
    /// the tree of [`reduction`](crate::reduction).
    pub share: usize,
    /// Likewise in a product.
    pub product_share: usize,
    /// Workgroups of a dispatch that passes over vectors.
    pub groups: usize,
    /// Workgroups of a product.
    pub product_groups: usize,
    /// Threads of a row in a product: 1, 2, 4 … 32.
    pub lanes: usize,
    /// Entries of a row beyond which it gets a whole workgroup; `None` if there are no such rows.
    pub longest: Option<usize>,
    /// Dispatches per iteration.
    pub an_iteration: usize,
}

impl Dispatches {
    /// Returns the rows that a workgroup takes at a time in a product.
    pub fn rows(&self) -> usize {
        self.threads / self.lanes
    }

    /// Returns the layout in words, within a line.
    pub fn describe(&self) -> String {
        let Dispatches { threads, lanes, product_groups, an_iteration, .. } = self;
        let long = self
            .longest
            .map_or(String::new(), |longest| format!(", rows above {longest} entries by workgroups"));
        let a_row =
            if *lanes == 1 { "a thread per row".to_owned() } else { format!("{lanes} threads per row") };
        format!(
            "{a_row}{long}, {product_groups} workgroups of {threads} threads, {an_iteration} dispatches per iteration"
        )
    }
}

impl SolvePlan {
    /// Returns the layout of a solve by dispatches; `None` if the plan is another.
    pub fn dispatches(&self) -> Option<&Dispatches> {
        match &self.schedule {
            SolveSchedule::Dispatches(dispatches) => Some(dispatches),
            _ => None,
        }
    }
}

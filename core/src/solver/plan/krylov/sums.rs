//! How blocks sum over all rows by the tree of [`reduction`](crate::reduction), whoever owns which rows.
//!
//! Every share begins at a multiple of a *unit* of rows, a power of two, so that units are blocks of the tree.
//! Within a block a warp joins *runs* of a few times 32 rows, which are blocks of the tree, too. In a block or
//! a cluster every block then has the sums of all runs in its shared memory, and one warp of it joins them.
//!
//! On the grid these would be too many. The blocks of the tree that a share has whole, each as large as can be, are
//! its *nodes*: what it adds to a sum. Rows are cut into *windows*: blocks of the tree, as large as possible, inside
//! of each of which at most one share begins. Where a share begins inside a window, the window's nodes are a *chain*:
//! the share's first node, then the one beside it, then the one beside both, and so on. One warp joins runs to nodes,
//! a few neighbouring runs a lane, and stores the nodes in their *slots*. After the barrier windows are joined
//! likewise.

use serde::Serialize;

/// Values of what stands below a node's slot in one number: a bit for each time that lanes are joined.
pub const JOINS: u32 = 32;

/// How rows are joined to sums.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Sums {
    /// Rows of 32 that a warp joins at a time.
    pub run: usize,
    /// Places of a sum's runs in a block's shared memory: of the block's own runs on the grid, else of all.
    pub runs: usize,
    /// Neighbouring runs that a lane joins.
    pub each: usize,
    /// Lanes that join them, a power of two.
    pub lanes: usize,
    /// Grid: times that a warp joins 32 lanes' runs, until it has all of the block's.
    pub passes: usize,
    /// Grid: windows of a lane.
    pub windows: usize,
    /// Grid: lanes with windows in a warp, a power of two.
    pub window_lanes: usize,
    /// Grid: warps' worth of lanes with windows.
    pub groups: usize,
    /// Grid: the most nodes of a window.
    pub links: usize,
    /// Grid: slots of one sum.
    pub slots: usize,
    /// Grid: slots from one node of a chain to the next.
    pub step: usize,
    /// Grid: for each block, pass and lane, a bit for each time that it joins the value of a lane beside it; above
    /// these bits, the slot in which its node is stored.
    #[serde(skip)]
    pub nodes: Vec<u32>,
    /// Grid: for each window, in the order in which lanes load, the slot of its first node, and above 24 bits
    /// how many nodes it has.
    #[serde(skip)]
    pub chains: Vec<u32>,
}

impl Sums {
    /// Returns where the sum of a run stands among those of all runs: lanes that read theirs side by side find
    /// them side by side.
    pub fn place_of_run(&self, run: usize) -> usize {
        run % self.each * self.lanes + run / self.each
    }

    /// Returns for each slot whether a block stores a node in it.
    pub fn told(&self) -> Vec<bool> {
        let mut stored = vec![false; self.slots];
        for node in &self.nodes {
            if let Some(slot) = stored.get_mut((node / JOINS) as usize) {
                *slot = true;
            }
        }
        stored
    }
}

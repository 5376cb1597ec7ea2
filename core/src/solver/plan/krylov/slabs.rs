//! The slabs of a solve on several devices: a *slab* is the rows of a device's blocks.

use std::ops::Range;

use serde::Serialize;

use super::{Krylov, Share};

/// The slabs whose blocks cooperate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Slabs {
    /// All of them.
    pub count: usize,
    /// The most of one device.
    pub of_a_device: usize,
}

impl Default for Slabs {
    fn default() -> Slabs {
        Slabs { count: 1, of_a_device: 1 }
    }
}

impl Krylov {
    /// Returns the number of blocks of a slab.
    pub fn blocks_of_a_slab(&self) -> usize {
        self.blocks / self.slabs.count.max(1)
    }

    /// Returns the rows of each slab.
    pub fn rows_of_slabs(&self) -> Vec<Range<usize>> {
        rows_of(&self.shares, self.slabs.count.max(1)).collect()
    }
}

/// The rows of a block that another slab reads: consecutive ones, with those between that it does not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Given {
    /// The first, counted from the block's.
    pub first: usize,
    /// How many; 0 for none.
    pub rows: usize,
}

/// Returns the rows of each of so many slabs.
pub fn rows_of(shares: &[Share], count: usize) -> impl Iterator<Item = Range<usize>> + '_ {
    shares.chunks((shares.len() / count).max(1)).map(|own| match own {
        [first, .., last] => first.first..last.first + last.rows,
        [only] => only.first..only.first + only.rows,
        [] => 0..0,
    })
}

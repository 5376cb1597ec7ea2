//! What a search makes least.

use super::loops::Loops;
use super::set::Set;

/// The cost of groups of loops, of which a search makes the sum least.
pub trait Objective: Sync {
    /// Returns the loops and their order.
    fn loops(&self) -> &Loops;

    /// Returns what a group of at least one loop costs, in whole units; `None` where it must not be.
    fn cost(&self, group: &Set) -> Option<u64>;
}

/// The bytes that groups move for each cell.
impl Objective for Loops {
    fn loops(&self) -> &Loops {
        self
    }

    fn cost(&self, group: &Set) -> Option<u64> {
        self.bytes(group)
    }
}

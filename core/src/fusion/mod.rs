//! Loops of a program gathered into groups, each of which is to become one kernel.
//!
//! Fused loops pass arrays to each other on the chip: an array that a group reads after it has written it need not be
//! loaded, and one that nobody reads later need not be stored. Which loops to fuse is a search over the partitions of
//! the loops (Wahib and Maruyama, SC'14): every group must share arrays and fit on the chip, and the groups must have
//! an order in which no loop runs before one that it waits for.
//!
//! * [`Loops`] knows what loops read and write, the order between them, and what a group of them moves.
//! * [`search()`] is the grouping genetic algorithm; [`greedy`] and [`exhaustive`] are its yardsticks.

mod cost;
mod exhaustive;
mod greedy;
mod grouping;
mod loops;
mod search;
mod set;
#[cfg(test)]
mod tests;

pub use cost::Evaluations;
pub use exhaustive::{MOST_LOOPS, exhaustive};
pub use greedy::greedy;
pub use loops::{Loop, Loops};
pub use search::{Search, Spread, in_turn, search};
pub use set::MOST;

/// A partition of loops into groups, and what it cost to find it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The bytes that all groups move, for each cell.
    pub bytes: u64,
    /// The loops of each group, ascending; groups in an order in which they can run.
    pub groups: Vec<Vec<usize>>,
    /// The groups whose cost was asked for.
    pub evaluations: Evaluations,
}

impl Found {
    /// Describes a partition, which has an order.
    fn of(grouping: &grouping::Grouping, loops: &Loops, evaluations: Evaluations) -> Found {
        let groups: Vec<set::Set> = grouping.groups().copied().collect();
        Found { bytes: grouping.cost(), groups: loops.ordered(&groups).unwrap_or_default(), evaluations }
    }
}

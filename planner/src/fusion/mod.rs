//! Loops of a program gathered into groups, each of which is to become one kernel.
//!
//! Fused loops pass arrays to each other on the chip: an array that a group reads after it has written it need not be
//! loaded, and one that nobody reads later need not be stored. Which loops to fuse is a search over the partitions of
//! the loops (Wahib and Maruyama, SC'14): every group must share arrays and fit on the chip, and the groups must have
//! an order in which no loop runs before one that it waits for.
//!
//! * [`Loops`] knows what loops read and write, the order between them, and what a group of them moves.
//! * [`Graph`] has the loops and arrays of a program, [`Order`] says which loop waits for which and why, and [`Drawing`]
//!   draws both.
//! * [`Model`] says what a group takes on a device, [`Fusing`] is the paper's projection; [`fuse`] finds groups for a device.
//! * [`search()`] is the grouping genetic algorithm; [`greedy`] and [`exhaustive`] are its yardsticks.

mod cost;
mod draw;
mod exhaustive;
mod graph;
mod greedy;
mod grouping;
mod halo;
mod loops;
mod model;
mod modelled;
#[cfg(test)]
mod modelled_tests;
mod objective;
mod of_program;
mod operations;
mod order;
mod projection;
mod search;
mod set;
#[cfg(test)]
mod tests;

pub use cost::Evaluations;
pub use draw::{Arrow, Drawing, Picture, Placed};
pub use exhaustive::{MOST_LOOPS, exhaustive};
pub use graph::{Access, Array, Graph, Holds, Kind, Node, Reach, Use};
pub use greedy::greedy;
pub use halo::{Inside, Layers, Passed};
pub use loops::{Loop, Loops, USUAL_ARRAYS};
pub use model::{Kernel, Model};
pub use modelled::{Modelled, ModelledGroup, fuse};
pub use objective::Objective;
pub use of_program::Form;
pub use operations::Operations;
pub use order::{Cause, Order, Precedence};
pub use projection::{
    Fusing, GTX750TI, K20X, K40, Machine, Metadata, Projection, RUNS_BLOCK, efficiency, theoretical_gain,
};
pub use search::{Search, Spread, in_turn, search};
pub use set::{MOST, Set};

/// A partition of loops into groups, and what it cost to find it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The sum of what the groups cost by the [`Objective`]; the bytes, where that is what they move.
    pub cost: u64,
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
        let groups: Vec<Set> = grouping.groups().copied().collect();
        Found::new(grouping.cost(), loops.ordered(&groups).unwrap_or_default(), loops, evaluations)
    }

    /// Describes groups in an order in which they can run.
    fn new(cost: u64, groups: Vec<Vec<usize>>, loops: &Loops, evaluations: Evaluations) -> Found {
        let bytes = |group: &Vec<usize>| loops.traffic(&group.iter().copied().collect());
        let bytes = groups.iter().map(bytes).sum();
        Found { cost, bytes, groups, evaluations }
    }
}

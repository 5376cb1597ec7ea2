//! Which stages become groups, each as one kernel (fusion), and the tiles of their kernels.

mod candidates;
mod chain;
mod geometry;
mod loads;
mod partition;
mod pass;
mod search;
mod tail;
#[cfg(test)]
mod tests;

pub use self::candidates::fastest;
pub(crate) use self::chain::link_seconds;
pub use self::chain::{Links, chains};
pub use self::geometry::{Refusal, fused};
pub use self::partition::{Passing, greedy, partition_of, worthwhile};
pub(crate) use self::pass::pass_seconds;
pub use self::pass::plan_pass;
pub use self::search::searched;
pub use self::tail::is_tail;

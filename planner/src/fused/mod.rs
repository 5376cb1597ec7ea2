//! Which stages become groups, each as one kernel (fusion), and the tiles of their kernels.

mod candidates;
pub(crate) mod estimate;
mod geometry;
mod partition;
mod search;
mod tail;
#[cfg(test)]
mod tests;

pub use self::candidates::fastest;
pub use self::geometry::{Refusal, fused};
pub use self::partition::{greedy, partition_of, worthwhile};
pub use self::search::searched;
pub use self::tail::is_tail;

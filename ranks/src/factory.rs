//! What gives ranks their ends of a communicator.

use abide_core::Result;
use abide_core::communicator::Communicator;

/// Connects the ranks of a session, some or all of which are this process's.
pub trait CommunicatorFactory: Send + Sync {
    /// Returns the ends of this process's ranks, in their order, of a communicator for so many.
    fn connect(&self, ranks: usize) -> Result<Vec<Box<dyn Communicator>>>;

    /// Returns the number of processes, each of which has one rank; `None` where all ranks are this process's.
    fn processes(&self) -> Option<usize> {
        None
    }

    /// Returns what the first process gives, on all of them. One that gives an error gets its own back, and then the others
    /// have one too; so do all where they differ in the words for what they run.
    fn of_first(&self, own: Result<u32>, _words: &str) -> Result<u32> {
        own
    }
}

impl<F: Fn(usize) -> Vec<Box<dyn Communicator>> + Send + Sync> CommunicatorFactory for F {
    fn connect(&self, ranks: usize) -> Result<Vec<Box<dyn Communicator>>> {
        Ok(self(ranks))
    }
}

//! The other ranks, as a slab's engine and operator reach them.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use abide_core::backend::NeighbourExchange;
use abide_core::{Array, DType, Error, Result};

/// The other ranks of a session, and what went wrong on the way to them.
#[derive(Clone)]
pub struct SlabCommunicator(Arc<Mutex<State>>);

struct State {
    swap: Box<dyn NeighbourExchange>,
    failed: Option<Error>,
}

impl SlabCommunicator {
    pub fn new(swap: Box<dyn NeighbourExchange>) -> SlabCommunicator {
        SlabCommunicator(Arc::new(Mutex::new(State { swap, failed: None })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A thread that panicked has left nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the other ranks; `None` once that has failed, without asking again.
    fn ask(&self, ask: impl FnOnce(&mut dyn NeighbourExchange) -> Result<Vec<Array>>) -> Option<Vec<Array>> {
        let mut state = self.lock();
        if state.failed.is_some() {
            return None;
        }
        match ask(&mut *state.swap) {
            Ok(values) => Some(values),
            Err(error) => {
                state.failed = Some(error);
                None
            }
        }
    }

    /// Returns what all ranks give, as [`AllGather::gather`] does.
    pub fn gather(&self, own: Array, values: &[usize]) -> Option<Vec<Array>> {
        self.ask(|swap| swap.gather(own, values))
    }

    /// Returns what other ranks give, as [`NeighbourExchange::swap`] does.
    pub fn swap(
        &self,
        dtype: DType,
        given: Vec<(usize, Array)>,
        taken: &[(usize, usize)],
    ) -> Option<Vec<Array>> {
        self.ask(|swap| swap.swap(dtype, given, taken))
    }

    /// Returns why a rank was asked in vain, and forgets it.
    pub fn take_failed(&self) -> Option<Error> {
        self.lock().failed.take()
    }
}

/// Returns the number of entries of some ranges.
pub fn entries(ranges: &[Range<usize>]) -> usize {
    ranges.iter().map(Range::len).sum()
}

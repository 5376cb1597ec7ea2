//! Work on many kernels, a few at a time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Compilers that run at once; each takes a processor and much memory.
const AT_ONCE: usize = 2;

/// Calls `work` with each item, two at once; calls of several threads take turns.
///
/// # Panics
///
/// Work on an item fails: one message names all that is wrong.
pub fn all<T: Sync>(items: &[T], work: impl Fn(&T) -> Result<(), String> + Sync) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let turns = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(why) = work(item) {
                wrong.lock().unwrap_or_else(PoisonError::into_inner).push(why);
            }
        }
    };
    std::thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(turns))));
    let wrong = wrong.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

//! Two things done at the same time.

use std::sync::{Mutex, PoisonError};
use std::thread;

/// Calls `here`, and meanwhile `there` in a thread of its own; one after the other where no thread can be started. A panic of
/// either goes on.
pub fn beside<A, B: Send>(here: impl FnOnce() -> A, there: &mut (impl FnMut() -> B + Send)) -> (A, B) {
    let there = Mutex::new(there);
    let call = || (there.lock().unwrap_or_else(PoisonError::into_inner))();
    thread::scope(|scope| match thread::Builder::new().spawn_scoped(scope, call) {
        Ok(thread) => {
            let done = here();
            (done, thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        }
        Err(_) => (here(), call()),
    })
}

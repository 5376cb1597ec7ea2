//! The process that made something which a fork does not copy: threads, and the contexts of devices.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::error::Error;

/// A process.
///
/// A fork copies memory and the thread that forks; the child has no other thread and no device context of its
/// parent. What needs either remembers the process that made it.
///
/// ```
/// let maker = abide_core::process::Process::current();
/// assert!(maker.is_current());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process(u32);

impl Process {
    /// Returns the process that calls.
    pub fn current() -> Process {
        // A page has no processes, and nothing forks there.
        Process(if cfg!(target_family = "wasm") { 0 } else { std::process::id() })
    }

    /// Returns whether this is the process that calls, and not a parent that forked.
    pub fn is_current(self) -> bool {
        self == Process::current()
    }

    /// Returns a process that is not the calling one, as a parent is not; for tests.
    #[doc(hidden)]
    pub fn of_another() -> Process {
        Process(Process::current().0.wrapping_add(1))
    }
}

/// A number that is found once, by the thread that asks first; others wait for it. Where a process is forked meanwhile, the
/// child finds it anew: a lock would stay locked there.
pub struct Found {
    /// The process whose thread is at it, 0 where none is.
    by: AtomicU32,
    value: AtomicU64,
}

/// A value that is no number, before one is found.
const NOTHING: u64 = u64::MAX;

impl Found {
    /// Returns a number that is not found yet.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Found {
        Found { by: AtomicU32::new(0), value: AtomicU64::new(NOTHING) }
    }

    /// Returns the number, which `find` finds unless it is known.
    pub fn or_find(&self, find: impl FnOnce() -> f64) -> f64 {
        /// Lets another thread find what this one did not.
        struct Leaving<'a>(&'a AtomicU32);
        impl Drop for Leaving<'_> {
            fn drop(&mut self) {
                self.0.store(0, Ordering::Release);
            }
        }
        let own = Process::current().0.max(1);
        loop {
            let known = self.value.load(Ordering::Acquire);
            if known != NOTHING {
                return f64::from_bits(known);
            }
            let by = self.by.load(Ordering::Acquire);
            if by != own && self.by.compare_exchange(by, own, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                let _leaving = Leaving(&self.by);
                let value = find();
                self.value.store(value.to_bits(), Ordering::Release);
                return value;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Returns why a process that was forked cannot use something that its parent opened.
pub fn forked(what: &str) -> String {
    format!(
        "the process was forked after {what}, and a fork copies neither device contexts nor threads; begin in the new \
         process before its parent does, or start processes by spawn (in Python multiprocessing.get_context(\"spawn\"))"
    )
}

/// Makes the error for something that was opened before a fork and is used after it.
pub fn lost(what: impl Into<String>) -> Error {
    Error::unsupported(
        what,
        "it was opened before this process was forked, and a fork copies neither device contexts nor threads",
        "open it in the new process, or start processes by spawn (in Python multiprocessing.get_context(\"spawn\"))",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_forked_processes_name_spawn() {
        assert!(Process::current().is_current());
        assert!(!Process::of_another().is_current());
        let found = Found::new();
        // A thread of a parent was at it.
        found.by.store(Process::of_another().0, Ordering::Release);
        assert_eq!((found.or_find(|| 2.5), found.or_find(|| 3.5)), (2.5, 2.5));
        assert!(lost("the session").to_string().contains("spawn"));
        assert!(forked("CUDA was started").contains("spawn"));
    }
}

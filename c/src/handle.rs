//! What a handle holds, which one call at a time may use.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, TryLockError};

use crate::status::{ABIDE_BUSY, ABIDE_DEFECT, Failure, Outcome, face};

/// A value behind a lock that is never waited for.
pub struct Guarded<T> {
    /// `None` after a defect, which may have left it in any state.
    value: Mutex<Option<T>>,
    /// What it is, in errors.
    what: &'static str,
}

impl<T> Guarded<T> {
    pub fn new(what: &'static str, value: T) -> Guarded<T> {
        Guarded { value: Mutex::new(Some(value)), what }
    }

    /// Calls `work` with the value, unless another call is using it.
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> Outcome<R>) -> Outcome<R> {
        let mut guard = match self.value.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(self.busy()),
        };
        let Some(value) = guard.as_mut() else {
            let text = format!("{} stopped at a defect of Abide's; free it and begin anew", self.what);
            return Err(Failure { status: ABIDE_DEFECT, text });
        };
        match catch_unwind(AssertUnwindSafe(|| work(value))) {
            Ok(result) => result,
            Err(panic) => {
                // It is not dropped either: that may panic again.
                std::mem::forget(guard.take());
                drop(guard);
                resume_unwind(panic)
            }
        }
    }

    fn busy(&self) -> Failure {
        let text = format!(
            "{} is at work: another thread is using it, or the call comes from within its own run; call it once that has ended",
            self.what
        );
        Failure { status: ABIDE_BUSY, text }
    }
}

/// Frees what a handle points to. A handle that is at work is left as it is, and the text of the last failure says so.
///
/// # Safety
///
/// `handle` is null, or a handle that is not used any more.
pub unsafe fn free<H, T>(handle: *mut H, guarded: impl FnOnce(&H) -> &Guarded<T>) {
    if handle.is_null() {
        return;
    }
    face(|| {
        // SAFETY: the handle is there still.
        guarded(unsafe { &*handle }).with(|_| Ok(())).or_else(|failure| match failure.status {
            ABIDE_BUSY => Err(failure),
            _ => Ok(()),
        })?;
        // SAFETY: it was made by `Box::into_raw`, and nobody uses it any more.
        drop(unsafe { Box::from_raw(handle) });
        Ok(())
    });
}

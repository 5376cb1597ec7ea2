//! A place for the newest value of a kind.

use std::sync::{Mutex, PoisonError};

/// Holds the newest value until it is taken; neither side ever waits for the other.
pub struct Latest<T>(Mutex<Option<T>>);

impl<T> Default for Latest<T> {
    fn default() -> Self {
        Latest(Mutex::new(None))
    }
}

impl<T> Latest<T> {
    /// Puts a value in the place of the one before.
    pub fn put(&self, value: T) {
        // The old value is dropped after the lock is released, because it may be large.
        let _old = self.0.lock().unwrap_or_else(PoisonError::into_inner).replace(value);
    }

    /// Takes the value, if there is a new one.
    pub fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

//! A session, and the process that opened it.

use std::mem::ManuallyDrop;

use abide_core::process::{Process, lost};

use crate::Result;
use crate::backend::Kind;

/// A session that a fork may have copied into a process without its device.
pub(crate) struct Held<S: ?Sized> {
    session: ManuallyDrop<Box<S>>,
    kind: Kind,
    process: Process,
}

impl<S: ?Sized> Held<S> {
    pub(crate) fn new(session: Box<S>, kind: Kind) -> Held<S> {
        Held { session: ManuallyDrop::new(session), kind, process: Process::current() }
    }

    /// Returns whether the session works here: that of a CPU does in every process.
    fn is_here(&self) -> bool {
        self.kind == Kind::Cpu || self.process.is_current()
    }

    /// Returns the session.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`](crate::Error::Unsupported) where it is on a device, and this process was forked since.
    pub(crate) fn here(&mut self) -> Result<&mut S> {
        match self.is_here() {
            true => Ok(&mut **self.session),
            false => Err(lost("a session on a GPU")),
        }
    }

    /// Returns the session, `None` where it does not work here.
    pub(crate) fn of_here(&self) -> Option<&S> {
        self.is_here().then(|| &**self.session)
    }

    /// Returns the session wherever it is, for what is in the host's memory alone.
    pub(crate) fn anywhere(&self) -> &S {
        &self.session
    }
}

impl<S: ?Sized> Drop for Held<S> {
    fn drop(&mut self) {
        // A driver that does not work here must not be asked to give anything back.
        if self.is_here() {
            // SAFETY: it is dropped here alone.
            unsafe { ManuallyDrop::drop(&mut self.session) };
        }
    }
}

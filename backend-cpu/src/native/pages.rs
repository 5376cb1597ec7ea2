//! Memory that the processor executes: written first, and never again once it may be executed.

use std::ffi::c_void;
use std::ptr;

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

/// Pages that hold a machine's instructions.
#[derive(Debug)]
pub struct Pages {
    at: *mut c_void,
    len: usize,
}

// SAFETY: nobody writes the pages any more.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// Returns pages with these instructions; `None` where the system grants none that may be executed.
    pub fn new(bytes: &[u8]) -> Option<Pages> {
        let len = bytes.len().max(1);
        // SAFETY: the pages are new, wherever the system puts them.
        let at = unsafe {
            mmap_anonymous(ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        };
        let pages = Pages { at: at.ok()?, len };
        // SAFETY: the pages are as long, and nobody else knows them.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), pages.at.cast(), bytes.len()) };
        // SAFETY: they are this value's own.
        unsafe { mprotect(pages.at, len, MprotectFlags::READ | MprotectFlags::EXEC) }.ok()?;
        Some(pages)
    }

    /// Returns the first instruction's address.
    pub fn start(&self) -> *const c_void {
        self.at
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // Pages that the system does not take back stay mapped, and nobody uses them.
        // SAFETY: the pages are this value's own, and nobody executes them any more.
        let _ = unsafe { munmap(self.at, self.len) };
    }
}

//! Memory that a thread takes from the heap: counted, and refused beyond a limit.
//!
//! Memory is counted by thread, so that one execution's bytes are its own; memory that other threads take on its
//! behalf is not counted. Small blocks are refused only well beyond the limit, because no program can ask for each of
//! them first. Large blocks, whose size a file states, are refused at the limit.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, counting.
pub struct Counting;

/// The most bytes of a small block, and how far beyond the limit small blocks are granted.
const SMALL: usize = 64 << 10;
const RESERVE: isize = 1 << 20;

thread_local! {
    /// Bytes taken and not given back; below 0 where a thread gives back what another took.
    static LIVE: Cell<isize> = const { Cell::new(0) };
    /// The most live bytes so far, including bytes that were refused.
    static PEAK: Cell<isize> = const { Cell::new(0) };
    static LIMIT: Cell<isize> = const { Cell::new(isize::MAX) };
}

/// Begins to count, and refuses large blocks beyond `most` bytes at a time.
pub fn begin(most: usize) {
    LIVE.set(0);
    PEAK.set(0);
    LIMIT.set(most.cast_signed());
}

/// Ends the count and returns the most bytes that this thread had or wanted at a time since it began.
pub fn end() -> usize {
    LIMIT.set(isize::MAX);
    PEAK.get().unsigned_abs()
}

/// Counts `bytes` more, unless that is too many.
fn grant(bytes: usize) -> bool {
    let live = LIVE.get().saturating_add_unsigned(bytes);
    PEAK.set(PEAK.get().max(live));
    let reserve = if bytes <= SMALL { RESERVE } else { 0 };
    let granted = live <= LIMIT.get().saturating_add(reserve);
    if granted {
        LIVE.set(live);
    }
    granted
}

fn give_back(bytes: usize) {
    LIVE.set(LIVE.get().saturating_sub_unsigned(bytes));
}

/// Grants bytes and takes them.
fn take(bytes: usize, from: impl FnOnce() -> *mut u8) -> *mut u8 {
    if !grant(bytes) {
        return std::ptr::null_mut();
    }
    let taken = from();
    if taken.is_null() {
        give_back(bytes);
    }
    taken
}

// SAFETY: every block comes from the system's allocator by the same call with the same layout, and goes back
// to it; a refusal is the null pointer that the trait provides for. Counting allocates nothing: the cells
// need no initialising.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are passed on.
        take(layout.size(), || unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are passed on.
        take(layout.size(), || unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        give_back(layout.size());
        // SAFETY: the caller's promises are passed on; the system's allocator made the block.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // A block that moves exists twice for a while.
        // SAFETY: the caller's promises are passed on; the system's allocator made the block.
        let moved = take(size, || unsafe { System.realloc(block, layout, size) });
        if !moved.is_null() {
            give_back(layout.size());
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_and_limited() {
        begin(1 << 20);
        let block = vec![1u8; 1000];
        let more: Vec<u8> = Vec::with_capacity(3000);
        drop(block);
        drop(more);
        assert_eq!(end(), 4000);
        begin(1 << 20);
        let refused = Vec::<u8>::new().try_reserve_exact(2 << 20);
        assert!(refused.is_err() && end() == 2 << 20);
        assert!(Vec::<u8>::new().try_reserve_exact(2 << 20).is_ok(), "no limit outside of an execution");
        begin(1 << 20);
        let full = vec![1u8; 1 << 20];
        assert!(Vec::<u8>::new().try_reserve_exact(SMALL).is_ok(), "small blocks beyond the limit");
        assert!(Vec::<u8>::new().try_reserve_exact(SMALL + 1).is_err());
        drop(full);
        end();
    }
}

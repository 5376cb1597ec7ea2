//! Arrays that several threads read and write at once, each thread the cells that are its own at the time.

use std::marker::PhantomData;
use std::ops::Range;
use std::ptr;

#[cfg(target_arch = "x86_64")]
use crate::rings::LINE_BYTES;

/// A field's cells.
pub struct Shared<'a, T> {
    cells: *mut T,
    len: usize,
    lifetime: PhantomData<&'a mut [T]>,
}

impl<T> Clone for Shared<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Shared<'_, T> {}

// SAFETY: `Shared` stands for a `&mut [T]` whose parts are handed out by the unsafe functions below, under
// their conditions.
unsafe impl<T: Send> Send for Shared<'_, T> {}
// SAFETY: as above; a part is either written by one thread or read by many.
unsafe impl<T: Send + Sync> Sync for Shared<'_, T> {}

impl<'a, T> Shared<'a, T> {
    /// Shares all cells of a field.
    pub fn new(cells: &'a mut [T]) -> Self {
        Shared { cells: cells.as_mut_ptr(), len: cells.len(), lifetime: PhantomData }
    }

    /// Asks memory for cells that will be read or written soon; they come into a cache that belongs to the
    /// core alone.
    #[inline(always)]
    pub fn ask(&self, range: Range<usize>) {
        #[cfg(target_arch = "x86_64")]
        for line in range.step_by((LINE_BYTES / size_of::<T>()).max(1)) {
            use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
            // SAFETY: a prefetch is a hint; it faults at no address and changes no value. SSE is part of
            // x86-64.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(self.cells.wrapping_add(line).cast()) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = range;
    }

    fn check(&self, range: &Range<usize>) {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} of {} cells", self.len);
    }

    /// Returns all cells.
    #[inline(always)]
    pub fn all(&self) -> *mut [T] {
        ptr::slice_from_raw_parts_mut(self.cells, self.len)
    }

    /// Returns cells to read.
    ///
    /// # Safety
    ///
    /// No thread writes any of them while the slice is in use.
    #[inline(always)]
    pub unsafe fn read(&self, range: Range<usize>) -> &'a [T] {
        self.check(&range);
        // SAFETY: the range lies in the array; the rest is the caller's promise.
        unsafe { std::slice::from_raw_parts(self.cells.add(range.start), range.len()) }
    }

    /// Returns cells to write.
    ///
    /// # Safety
    ///
    /// No other thread reads or writes any of them while the slice is in use, and this thread uses no other
    /// slice of them.
    #[inline(always)]
    #[allow(clippy::mut_from_ref, reason = "the caller promises that the cells are its own")]
    pub unsafe fn write(&self, range: Range<usize>) -> &'a mut [T] {
        self.check(&range);
        // SAFETY: the range lies in the array; the rest is the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.cells.add(range.start), range.len()) }
    }
}

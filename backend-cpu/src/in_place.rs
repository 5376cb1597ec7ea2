//! The values of a field where a session has them.

use std::ffi::c_void;

use abide_core::{DType, Real};

/// Where a session on the CPU has a field's values, in the order of the axes and without gaps. They are to be read, until the
/// session's next advance or write.
#[derive(Debug, Clone, Copy)]
pub struct HostBuffer {
    address: *const c_void,
    len: usize,
    dtype: DType,
}

impl HostBuffer {
    pub(crate) fn new<T: Real>(values: &[T]) -> HostBuffer {
        HostBuffer { address: values.as_ptr().cast(), len: values.len(), dtype: T::DTYPE }
    }

    /// Returns the address of the first value.
    pub fn address(&self) -> *const c_void {
        self.address
    }

    /// Returns the type of the values.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the values; none where they are of another type.
    ///
    /// # Safety
    ///
    /// The session is there, and neither advances nor is written while the result is used.
    pub unsafe fn values<'a, T: Real>(&self) -> &'a [T] {
        match T::DTYPE == self.dtype {
            // SAFETY: these are the values of a session, which stay as they are, as promised.
            true => unsafe { std::slice::from_raw_parts(self.address.cast(), self.len) },
            false => &[],
        }
    }
}

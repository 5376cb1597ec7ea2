//! Texts and pointers that cross the border.

use std::ffi::{CStr, c_char};

use crate::status::{Outcome, invalid};

/// Returns a string of the caller's.
///
/// # Safety
///
/// `text` is null or points to a string that ends with a NUL and stays as it is while the result is used.
pub unsafe fn text<'a>(text: *const c_char, what: &str) -> Outcome<&'a str> {
    if text.is_null() {
        return Err(null(what));
    }
    // SAFETY: it is not null, and the caller promises the rest.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| invalid(what, "it is no UTF-8", "give a text in UTF-8"))
}

/// Returns what a pointer of the caller's points to.
///
/// # Safety
///
/// `pointer` is null or points to a value that lives, and that nobody writes, while the result is used.
pub unsafe fn given<'a, T>(pointer: *const T, what: &str) -> Outcome<&'a T> {
    // SAFETY: as the caller promises.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(what))
}

/// Returns the place to which a pointer of the caller's points.
///
/// # Safety
///
/// `pointer` is null or points to a value that lives, and that nobody else uses, while the result is used.
pub unsafe fn place<'a, T>(pointer: *mut T, what: &str) -> Outcome<&'a mut T> {
    // SAFETY: as the caller promises.
    unsafe { pointer.as_mut() }.ok_or_else(|| null(what))
}

/// Returns an array of the caller's.
///
/// # Safety
///
/// `pointer` is null or points to `count` values that nobody writes while the result is used.
pub unsafe fn array<'a, T>(pointer: *const T, count: usize, what: &str) -> Outcome<&'a [T]> {
    match (pointer.is_null(), count) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(null(what)),
        // SAFETY: it is not null, and the caller promises the rest.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(pointer, count) }),
    }
}

/// Moves a value to memory of its own, and its address to where the caller asks for it.
///
/// # Safety
///
/// `to` is null or points to a pointer.
pub unsafe fn hand_out<T>(value: T, to: *mut *mut T, what: &str) -> Outcome<()> {
    // SAFETY: as the caller promises.
    let to = unsafe { place(to, what) }?;
    *to = Box::into_raw(Box::new(value));
    Ok(())
}

/// Puts a text into a buffer of the caller's, as `snprintf` does: at most `size` bytes with the NUL that ends it, and the
/// bytes of the whole text without it to `needed`.
///
/// # Safety
///
/// `buffer` has room for `size` bytes, or both are 0; `needed` is null or points to a number.
pub unsafe fn put(text: &str, buffer: *mut c_char, size: usize, needed: *mut usize) -> Outcome<()> {
    if buffer.is_null() && size > 0 {
        return Err(null("the buffer of a text"));
    }
    // SAFETY: as the caller promises.
    if let Some(needed) = unsafe { needed.as_mut() } {
        *needed = text.len();
    }
    if size > 0 {
        let most = (0..=text.len().min(size - 1)).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        // SAFETY: `most` bytes and a NUL are at most `size` bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr().cast::<c_char>(), buffer, most);
            *buffer.add(most) = 0;
        }
    }
    Ok(())
}

/// Returns the failure of a null pointer.
pub fn null(what: &str) -> crate::status::Failure {
    invalid(what, "it is a null pointer", "give the address of it")
}

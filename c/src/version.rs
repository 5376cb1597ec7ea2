//! Versions of the library and of its interface.

use std::ffi::{CStr, c_char};

/// The number of the interface. It changes where programs that were compiled with another `abide.h` would not work; it is also
/// the last part of the shared library's name.
pub const ABIDE_INTERFACE: i32 = 0;

/// Returns the number of the interface of this library. It must be the header's `ABIDE_INTERFACE`.
#[unsafe(no_mangle)]
pub extern "C" fn abide_interface() -> i32 {
    ABIDE_INTERFACE
}

const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => c"",
};

/// Returns the version of this library, as in `0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn abide_version() -> *const c_char {
    VERSION.as_ptr()
}

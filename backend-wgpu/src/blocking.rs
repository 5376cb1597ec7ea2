//! Waiting on the spot, for callers that are not asynchronous themselves.

use abide_core::Result;

/// Runs a future to its end on this thread. A browser's thread may not wait: there, nothing is begun, and an
/// error is returned.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    pollster::block_on(future)
}

#[cfg(target_arch = "wasm32")]
pub(crate) fn block_on<T>(_: impl Future<Output = Result<T>>) -> Result<T> {
    Err(abide_core::Error::unsupported(
        format!("backend {}", crate::NAME),
        "a browser's thread may not wait for the device",
        "await the function of the same name with _async",
    ))
}

//! The interface from the other side: the header, and programs in C, C++ and Fortran that link the library.

#[cfg(target_os = "linux")]
mod common;
mod header;
#[cfg(target_os = "linux")]
mod programs;
#[cfg(target_os = "linux")]
mod sanitized;

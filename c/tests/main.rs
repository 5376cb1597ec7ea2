//! The interface from the other side: the header, and programs in C, C++ and Fortran that link the library.

#[cfg(target_os = "linux")]
mod common;
#[cfg(target_os = "linux")]
mod documents;
mod header;
mod overhead;
#[cfg(target_os = "linux")]
mod programs;
#[cfg(target_os = "linux")]
mod sanitized;

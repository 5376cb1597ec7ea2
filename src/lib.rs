//! Persistent kernels for iterative, memory-bound computations.
#![deny(missing_docs)]

pub use abide_core::*;
pub mod io;

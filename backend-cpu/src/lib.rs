//! Runs stencil programs on the CPU.
//!
//! Two paths with the same bits: [`mod@reference`] reads like the definition and is the oracle that every backend is held
//! against; the sessions of a [`CpuBackend`] sweep rows on all threads, in vectors.
//!
//! The way through the fast path: `tape` turns a simplified formula into steps on lanes, `region` cuts the computed
//! cells into bands of rows, `sweep` carries the tape out over a band, chunk by chunk, with the loops of `lanes`;
//! `session` keeps two arrays for each field that changes.
//!
//! `solver` solves linear systems: the methods of `abide_core::solver` on all threads.
#![deny(missing_docs)]

mod backend;
mod device;
mod lanes;
#[cfg(test)]
mod random;
pub mod reference;
mod region;
mod session;
mod solver;
mod sweep;
mod tape;

pub use backend::CpuBackend;
pub use solver::{Threads, threaded_operator};

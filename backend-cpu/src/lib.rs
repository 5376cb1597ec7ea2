//! Runs stencil programs on the CPU.
//!
//! Two paths with the same bits: [`reference`] reads like the definition and is the oracle that every backend is held
//! against; the sessions of a [`CpuBackend`] sweep rows on all threads, in vectors.
#![deny(missing_docs)]

pub mod reference;

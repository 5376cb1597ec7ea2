//! Runs stencil programs on the CPU.
//!
//! Two paths with the same bits: [`mod@reference`] reads like the definition and is the oracle that every
//! backend is held against; the sessions of a [`CpuBackend`] sweep rows on all threads, in vectors.
//!
//! The way through the fast path: `bytecode` turns a simplified formula into a sum or into instructions, and
//! `chunk` has them carried out on a row, chunk by chunk, by `sum` or by `steps` with the loops of `lanes`.
//! `run` computes rows side by side; for a linear stencil it looks at the bytecode once for all of them. Stepwise, `region` cuts the computed cells
//! into bands of rows and `sweep` carries out a stage of them. Streaming and persistent, `pass` advances a
//! `tile` by several steps while its planes stream past, and `thread_team` says which thread has which tile and
//! waits for whom. `session` keeps two arrays for each field that changes. `pin` keeps threads on their cores
//! where that is asked for. `threads` starts those that share the work, `memory` says how much memory the
//! process may still take, and `device` describes the machine.
//!
//! `solver` solves linear systems: the methods of `abide_core::solver` on all threads.
#![deny(missing_docs)]

mod backend;
mod batch;
mod bytecode;
mod chunk;
mod count;
mod device;
mod functions;
mod in_place;
mod lanes;
mod launches;
pub mod memory;
#[cfg(all(target_arch = "x86_64", unix))]
mod native;
mod pass;
mod pin;
mod prefetch;
#[cfg(test)]
mod random;
pub mod reference;
mod region;
mod rings;
mod run;
mod session;
mod shared;
mod solver;
mod state;
mod steps;
mod stepwise;
mod stretch;
mod sum;
mod targets;
mod thread_team;
mod threads;
mod tile;

pub use backend::{CpuBackend, variants};
pub use in_place::HostBuffer;
pub use solver::{Threads, threaded_operator};
pub use threads::{Pool, count as count_threads, on_threads, start as start_threads};

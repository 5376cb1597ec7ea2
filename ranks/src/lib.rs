//! Runs a problem on several devices: each has a rank and a slab of the domain ([`abide_core::slabs`]).
//!
//! A [`Ranked`] backend plans slabs and opens a session for all of them, in which each rank is a thread that drives an
//! ordinary session of its device ([`rank`](mod@rank)) and exchanges halos with its neighbours (`halo`). Linear systems are
//! solved likewise, by slabs of rows (`solver`). Ranks reach each other through a
//! [`Communicator`](abide_core::communicator::Communicator): [`threads`] is the one for ranks of one process, and with the
//! feature `mpi` the module `mpi` has the one for processes. Nothing waits for ever: every wait of a communicator has a
//! deadline, and ends where another rank is gone or has aborted.
#![deny(missing_docs)]

mod answer;
mod backend;
mod factory;
mod halo;
#[cfg(feature = "mpi")]
pub mod mpi;
pub mod rank;
mod session;
mod solver;
pub mod threads;

pub use backend::{Device, Ranked};
pub use factory::CommunicatorFactory;

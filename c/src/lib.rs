//! Abide behind a C interface, for programs in C, C++, Fortran, Julia and others. `include/abide.h` is made from this
//! crate; `fortran/abide.f90` is a module over it.
//!
//! Each function returns a status, [`ABIDE_OK`] or the kind of failure; [`abide_last_error`] returns the failure in words.
//! A panic, which is a defect of Abide, ends at the border as [`ABIDE_DEFECT`].
//!
//! # Threads
//!
//! A handle may be used by any thread, by one at a time: a call on a handle that another thread is using returns
//! [`ABIDE_BUSY`]. Handles of models and options may be read by several threads at once. Nobody may use a handle that is
//! being freed.
#![deny(missing_docs)]

mod block;
mod gas;
mod handle;
mod model;
mod options;
mod simulation;
mod status;
mod system;
mod text;
mod version;
mod view;

pub use block::*;
pub use gas::*;
pub use model::*;
pub use options::*;
pub use simulation::*;
pub use status::*;
pub use system::*;
pub use version::*;
pub use view::*;

//! The CUDA backend: kernels generated from a plan, compiled at run time, cached on disk by content.
//!
//! A stepwise session launches one kernel per stage and replays these launches from a graph: the baseline. A
//! persistent session launches one cooperative kernel per epoch; the time loop is inside, and as much of the
//! domain as the plan says stays in registers and shared memory from step to step. A streaming session
//! launches one kernel per pass of several steps. The members of a batch that fit a block each share one
//! launch (`batch`). The kernels are in `abide-shaders`.
//!
//! A program that is not plain, of fields on nodes, temporaries or scalars, has a session of its own, which
//! also launches a kernel per stage from a graph (`program`).
//!
//! A linear solver is one persistent kernel, too (`krylov`); on several devices one on each, whose blocks are one grid.
//!
//! Where a plan asks for tuning, or is asked how good the model's estimates are, plans are timed on the
//! device (`tune`), and the fastest is kept on disk (`abide-tuning`).
//!
//! Nothing of CUDA is needed to build or load this crate; without a driver [`CudaBackend::new`] is
//! [`abide_core::Error::Unavailable`], with the reason. Arithmetic and roots have the bits of the CPU's.
#![deny(missing_docs)]

mod backend;
mod batch;
mod cache;
mod costs;
mod count;
mod driver;
mod functions;
mod graph;
mod ipc;
mod kernels;
mod krylov;
mod launcher;
mod lent;
mod mapped;
mod memory;
mod nccl;
mod noted;
mod nvrtc;
mod parameters;
mod peer;
mod persistent;
mod program;
mod puts;
mod resident;
mod rows;
mod session;
mod staging;
mod stepwise;
mod streaming;
mod timing;
mod tune;
mod window;

pub use abide_tuning::FOLDER_VARIABLE as CACHE_VARIABLE;
pub use backend::{CudaBackend, variants};
pub use driver::device_count;
pub use kernels::{Code, fit, report, report_as_planned, target};
pub use krylov::{CudaDeviceGroup, PackedSystem, Piece, Slab, fit_solver, numbers_of, plan_batch, region};
pub use lent::DeviceBuffer;
pub use nvrtc::{Cubin, FOLDER_VARIABLE as NVRTC_VARIABLE, Nvrtc};

//! The core of Abide: what is computed, what a plan says, and the traits of backends and communicators.
//!
//! A [`Stencil`] writes new values as formulas ([`Expr`]) of old ones. A [`Program`] is one or more stencils
//! in order. A [`Problem`] puts a program on a domain ([`Shape`], [`Boundaries`], [`DType`]). A [`plan`] says
//! how a device ([`DeviceSpec`]) will run a problem; it can be made and printed without the device.
//! [`Backend`]s open [`Session`]s, which run it.
//!
//! A [`sparse`] matrix is made from entries or from a linear stencil; [`solver`] says what is asked of a solver of a
//! linear system.
//!
//! This crate knows no device, starts no thread and touches no files. It searches for no plan and has no method of
//! solving: the crates `abide-planner` and `abide-solvers` do.
#![deny(missing_docs)]

pub mod backend;
pub mod catalogue;
pub mod communicator;
pub mod device;
pub mod domain;
pub mod error;
pub mod expr;
pub mod floating;
pub mod functions;
mod kind;
pub mod memory;
mod named;
pub mod plan;
mod precision;
pub mod process;
pub mod program;
pub mod real;
pub mod reduction;
pub mod slabs;
pub mod solver;
pub mod sparse;
pub mod units;
pub mod words;

pub use backend::{Backend, Progress, RunReport, Session, Tuner};
pub use device::DeviceSpec;
pub use domain::{Boundaries, Boundary, Shape};
pub use error::{Error, Result};
pub use expr::Expr;
pub use kind::ErrorKind;
pub use plan::{
    CachePolicy, Depth, Exchanging, Execution, Fuse, Jam, LoopRows, Lowering, Measured, Options, Placement,
    Plan, Team, Tune,
};
pub use precision::Precision;
pub use program::{
    Field, Footprint, LinearStencil, Neighbourhood, Parameter, Problem, Program, Scope, Stage, Start, Stencil,
};
pub use real::{Array, DType, Real};

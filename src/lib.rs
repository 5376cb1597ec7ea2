//! Persistent kernels for iterative, memory-bound computations: the data stays on the chip from step to step.
//!
//! Write a [`Stencil`] or pick one of the [`catalogue`]; a [`Simulation`] runs it on an NVIDIA GPU, on any
//! GPU that speaks Vulkan, Metal or DX12, or on the CPU, and reports what it did and how close to the
//! hardware's limit it came. A [`Solve`] does the same for systems of linear equations.
//!
//! ```
//! use abide::prelude::*;
//!
//! let mut spots = Simulation::builder("gray-scott").size(&[64, 64]).param("feed", 0.03).build()?;
//! let report = spots.run(100)?;
//! println!("{:.2} GCells/s on {}", report.gcells_per_s, report.device);
//! let v = spots.field_nd::<f32>("v")?;
//! assert_eq!(v.shape(), [64, 64]);
//! # Ok::<(), Error>(())
//! ```
//!
//! # Features
//!
//! `cuda`, `wgpu` and `gas` are on unless left out: the two backends for GPUs, and [real-gas properties](gas). Without a
//! backend, [`backend::open`] says that this build lacks it, and [`Choice::Auto`] takes another. `mpi` makes processes the
//! ranks of a run.
#![deny(missing_docs)]
#![warn(clippy::missing_errors_doc)]

pub mod backend;
mod builder;
mod files;
#[cfg(feature = "gas")]
pub mod gas;
mod held;
pub mod plan;
mod simulation;
pub mod solve;
mod solver;
pub mod sparse;
pub mod verify;

// What programs use of the core, by name. Modules that only Abide's own crates use are not exported.
pub use abide_core::{
    Array, Backend, Boundaries, Boundary, CachePolicy, DType, Depth, DeviceSpec, Error, ErrorKind,
    Exchanging, Execution, Expr, Field, Footprint, Fuse, Jam, LinearStencil, LoopRows, Lowering, Measured,
    Neighbourhood, Options, Parameter, Placement, Plan, Problem, Program, Progress, Real, Result, RunReport,
    Scope, Session, Shape, Stage, Start, Stencil, Team, Tune, Tuner, with_array,
};
pub mod catalogue;

pub use abide_core::{device, domain, expr, functions, program};
pub use abide_io as io;
pub use abide_io::memory;
pub use abide_planner::fusion;
pub use abide_text as text;
pub use backend::Choice;
pub use builder::{Builder, IntoModel, Model, Values};
pub use simulation::{Running, Simulation};
pub use solve::{Solution, Solve, System};

/// All that most programs need.
pub mod prelude {
    pub use crate::backend::{Choice, Pace};
    pub use crate::program::Scope;
    pub use crate::solve::{
        GridOperator, Matrix, Method, Parameters, Precision, Preconditioning, Solution, Solve, SolveCache,
        SolverError, System,
    };
    pub use crate::{
        Array, Boundaries, Boundary, CachePolicy, DType, Depth, DeviceSpec, Error, Exchanging, Execution,
        Expr, Fuse, Jam, LinearStencil, LoopRows, Lowering, Options, Parameter, Placement, Plan, Program,
        Progress, Result, RunReport, Running, Shape, Simulation, Start, Stencil, Team, Tune,
    };
}

/// The programs in the README and in the pages of `docs`, compiled and run as documentation tests.
#[cfg(doctest)]
mod documents {
    macro_rules! pages {
        ($($name:ident: $path:literal,)*) => {$(
            #[doc = include_str!($path)]
            struct $name;
        )*};
    }

    pages! {
        Readme: "../README.md",
        Tutorial: "../docs/start/tutorial.md",
        Batches: "../docs/guide/batches.md",
        Control: "../docs/guide/control.md",
        Programs: "../docs/guide/programs.md",
        Records: "../docs/guide/records.md",
        Solves: "../docs/guide/solves.md",
        Stencils: "../docs/guide/stencils.md",
        Solvers: "../docs/solvers/README.md",
    }
    #[cfg(feature = "gas")]
    pages! {
        Gas: "../docs/gas/README.md",
        Flows: "../docs/gas/flows.md",
    }
}

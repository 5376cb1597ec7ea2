//! Linear systems `A x = b`: their matrices, what a user asks of a solver, how a device will solve, and what it reports.
//! The crate `abide-solvers` has the methods.
//!
//! [`Parameters`] say when a solver stops, a [`Report`] what it did, a [`SolverError`] why it could not converge. The
//! matrix is any [`Operator`], stored or not.

mod bounds;
mod grid_operator;
mod matrix;
mod method;
mod operator;
mod options;
mod outcome;
pub mod plan;
mod report;
mod slabs;

pub use bounds::Bounds;
pub use grid_operator::GridOperator;
pub use matrix::Matrix;
pub use method::{Chebyshev, Gmres, Jacobi, METHODS, Measure, PRECONDITIONERS, PipelinedCg, Profile};
pub use operator::Operator;
pub use options::{
    MAX_BLOCK, MAX_DEGREE, Method, Nullspace, Preconditioning, SolveCache, SolveOptions, check_block_size,
    check_degree,
};
pub use outcome::{Outcome, Quantity, Status};
pub use plan::{Bands, Place, Product, Resident, SolvePlan, SolveSchedule, SolveSync, SolveTraffic};
pub use report::{Exhausted, Parameters, RankSolve, Report, SolverError};
pub use slabs::{Reads, RowSlab, SlabProduct};

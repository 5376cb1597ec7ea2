//! Iterative solvers of `A x = b`: the reference that every backend's solvers are compared with.
//!
//! A [`Solver`] is a method. [`Parameters`] say when it stops, a [`Report`] what it did, a [`SolverError`]
//! why it could not converge. The matrix is any [`Operator`], stored or not; a [`Preconditioner`] is an
//! approximate inverse. The methods are written over an [`Engine`], whose reductions have one fixed tree
//! ([`reduction`](abide_core::reduction)): they give the same bits on every run, whatever the number of threads. Solvers allocate
//! before the loop, never in it.
//!
//! | method | matrix | vectors | reductions per iteration |
//! |---|---|---|---|
//! | [`Cg`] | symmetric positive definite | 4 | 2 |
//! | [`SingleReductionCg`] | symmetric positive definite | 5 | 1 |
//! | [`PipelinedCg`] | symmetric positive definite | 9 | 1, beside the products |
//! | [`Minres`] | symmetric | 7 | 2 |
//! | [`BiCgStab`] | any invertible | 7 | 3 |
//! | [`Gmres`] | any invertible | m + 3 | 3 |
//! | [`Chebyshev`] | symmetric positive definite, eigenvalues bounded | 3 | 1, to stop |
//! | [`Jacobi`] | diagonally dominant | 2 | 1, to stop |
//!
//! Preconditioners: [`Identity`] (none), [`Diagonal`] (Jacobi's), [`BlockDiagonal`] (block-Jacobi),
//! [`ChebyshevPolynomial`], [`Ilu`] (incomplete factors) and [`Amg`] (algebraic multigrid); none has a reduction.
//!
//! [`Chebyshev`]: abide_core::solver::Chebyshev
//! [`Gmres`]: abide_core::solver::Gmres
//! [`Jacobi`]: abide_core::solver::Jacobi
//! [`Operator`]: abide_core::solver::Operator
//! [`Parameters`]: abide_core::solver::Parameters
//! [`PipelinedCg`]: abide_core::solver::PipelinedCg
//! [`Report`]: abide_core::solver::Report
//! [`SolverError`]: abide_core::solver::SolverError
#![deny(missing_docs)]

mod amg;
mod bounds;
mod decision;
mod engine;
mod method;
mod outcome;
pub mod plan;
mod precondition;
mod recurrence;
mod refine;
mod registry;
mod run;
mod session;
mod slabs;
mod solver;
pub mod sparse;
#[cfg(test)]
mod tests;

pub use amg::Amg;
pub use bounds::{estimate_bounds, polynomial_bounds};
pub use decision::Decision;
pub use engine::{Engine, ROWS, Serial, to_shortest};
pub use method::{BiCgStab, Cg, Minres, SingleReductionCg};
pub use precondition::{BlockDiagonal, ChebyshevPolynomial, Diagonal, Identity, Ilu, Preconditioner};
pub use recurrence::polynomial_factors;
pub use refine::Refinement;
pub use registry::{build_preconditioner, method, preconditioner, solver};
pub use run::{Begin, Run, check_finite, check_lengths};
pub use session::{EngineSession, check_types, vectors_of};
pub use slabs::{SlabEngine, SlabOperator, SlabSession, cut_rows, row_slabs, row_unit};
pub use solver::{Equations, Solver};

//! Iterative solvers of `A x = b`: what is asked of them, their plans, and the methods.
//!
//! Matrices, options, plans and reports are from the crate `abide-core`, methods and preconditioners from `abide-solvers`.

pub use abide_core::backend::{
    BatchSystem, LinearBackend, LinearDeviceGroup, LinearPeer, LinearSession, LinearSlabs, Observe,
    check_batch, solve_alone,
};
pub use abide_core::solver::*;
pub use abide_solvers::{
    Amg, Begin, BiCgStab, BlockDiagonal, Cg, ChebyshevPolynomial, Decision, Diagonal, Engine, EngineSession,
    Equations, Identity, Ilu, Minres, Preconditioner, Refinement, Run, Serial, SingleReductionCg, SlabEngine,
    SlabOperator, SlabSession, Solver, build_preconditioner, check_finite, check_lengths, check_types,
    cut_rows, estimate_bounds, method, polynomial_bounds, polynomial_factors, preconditioner, row_slabs,
    row_unit, solver, to_shortest, vectors_of,
};

/// Plans of solvers, made before anything is allocated.
pub mod plan {
    pub use abide_core::solver::plan::*;
    pub use abide_solvers::plan::plan_dispatches;

    /// Plans of persistent solvers on CUDA devices.
    pub mod krylov {
        pub use abide_core::solver::plan::krylov::*;
        pub use abide_solvers::plan::krylov::*;
    }
}

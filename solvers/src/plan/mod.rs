//! Plans of solvers, made before anything is allocated.

mod dispatches;
pub mod krylov;

pub use dispatches::plan_dispatches;

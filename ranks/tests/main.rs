//! What users of the crate can see of it, as one program.

mod common;

mod begun;
mod bits;
mod faults;
mod handles;
mod network;
mod peers;
mod points;
mod prepared;
mod reductions;
mod solver_faults;
mod solvers;

//! What users of the crate can see of it, as one program.

mod direct;
mod equivalence;
mod loops;
mod modes;
mod multigrid;
mod programs;
mod reference;
mod scalars;
mod session;
mod solve;
mod thin;
mod walls;

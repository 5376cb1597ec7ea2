//! What users of the crate can see of it, as one program.

mod equivalence;
mod modes;
mod programs;
mod reference;
mod scalars;
mod session;
mod thin;
mod walls;

//! What users of the crate can see of it, as one program.

mod agreement;
mod derived;
mod flow;
mod independent;
mod tables;

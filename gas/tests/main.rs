//! What users of the crate can see of it, as one program.

mod agreement;
mod independent;
mod tables;

//! What users of the crate can see of it, as one program.

mod derived;
mod functions;

//! What users of the crate can see of it, as one program.

mod faults;
mod loops;
mod meaning;
mod round_trip;
mod same_bits;

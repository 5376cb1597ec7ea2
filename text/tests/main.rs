//! What users of the crate can see of it, as one program.

mod faults;
mod loops;
mod loops_of_steps;
mod meaning;
mod round_trip;
mod same_bits;

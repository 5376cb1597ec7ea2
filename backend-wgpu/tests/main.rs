//! What users of the crate can see of it, as one program.

// The deck's reader names the whole crate.
extern crate abide_core as abide;

#[path = "../../tests/cloverleaf/clover.rs"]
mod clover;
mod common;
#[path = "../../examples/cloverleaf/deck.rs"]
#[allow(dead_code)]
mod deck;

mod behaviour;
mod catalogue;
mod groups;
mod krylov;
mod loops;
mod overlapped;
mod pieces;
mod programs;
mod streaming;
mod tune;

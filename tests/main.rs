//! What must hold on every backend, as one program, which is small enough to be copied to a machine with a GPU.

#[path = "../examples/cloverleaf/deck.rs"]
#[allow(dead_code)]
mod deck;

mod cloverleaf;
mod models;
mod solvers;
mod trust;

//! Ways to make sparse matrices: generators ([`laplacian_2d`], [`laplacian_3d`], [`hpcg`], [`trefethen`], [`random_spd`],
//! [`arrow`]), and files of Matrix Market ([`market`]).

mod generate;
pub mod market;
#[cfg(test)]
mod tests;

pub use generate::{arrow, hpcg, hpcg_stencil, laplacian, laplacian_2d, laplacian_3d, random_spd, trefethen};

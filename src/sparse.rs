//! Sparse matrices: compressed sparse rows, and the ways to make them.
//!
//! A [`Csr`] is assembled from [`Triplets`], from a linear stencil on a grid ([`Affine`]), from a Matrix
//! Market file ([`market`]), or by one of the generators ([`laplacian_2d`], [`laplacian_3d`], [`hpcg`],
//! [`trefethen`], [`random_spd`], [`arrow`]).

pub use abide_core::sparse::*;
pub use abide_solvers::sparse::*;

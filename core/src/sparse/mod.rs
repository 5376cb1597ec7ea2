//! Sparse matrices: compressed sparse rows.
//!
//! A [`Csr`] is assembled from [`Triplets`], row by row ([`rows`]), or from a linear stencil on a grid ([`Affine`]). A
//! planner reads from [`RowLengths`] how rows should be shared among threads.
//!
//! The entries of a row are stored by ascending column, each column once. That order is part of the meaning:
//! a row's product is a plain multiplication and then one fused multiply-add for each later entry, as in a
//! linear stencil.

mod csr;
mod lengths;
mod product;
pub mod rows;
mod stencil;
mod triplets;

pub use csr::{Csr, Offsets};
pub use lengths::{Bucket, RowLengths};
pub use stencil::Affine;
pub use triplets::Triplets;

/// The most rows or columns of a matrix: indices are 32 bits wide.
pub const MAX_EXTENT: usize = u32::MAX as usize;

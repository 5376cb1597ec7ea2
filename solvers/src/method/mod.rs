//! The methods, one file each.

mod bicgstab;
mod cg;
mod cg_pipelined;
mod cg_single;
mod chebyshev;
mod gmres;
mod jacobi;
mod minres;

pub use bicgstab::BiCgStab;
pub use cg::Cg;
pub use cg_single::SingleReductionCg;
pub use minres::Minres;

//! The methods, one file each, and their names.

mod bicgstab;
mod cg;
mod cg_pipelined;
mod cg_single;
mod chebyshev;
mod gmres;
mod jacobi;
mod registry;

pub use bicgstab::BiCgStab;
pub use cg::Cg;
pub use cg_pipelined::PipelinedCg;
pub use cg_single::SingleReductionCg;
pub(super) use chebyshev::Recurrence;
pub use chebyshev::{Chebyshev, polynomial_factors};
pub use gmres::Gmres;
pub use jacobi::Jacobi;
pub use registry::{METHODS, PRECONDITIONERS, Profile, method, preconditioner};

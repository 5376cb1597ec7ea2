//! Kernels as text: `.cu` and `.wgsl` files that read like kernels, and the lowering of expressions into both
//! languages.
#![deny(missing_docs)]

mod boundary;
pub mod cuda;
pub mod emit;
mod functions;
mod loops;
pub mod program;
mod record;
pub mod state;
mod text;
pub mod wgsl;

pub use record::numbers;

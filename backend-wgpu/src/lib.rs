//! Runs stencil programs on any GPU that speaks Vulkan, Metal, DX12 or OpenGL, by kernels in WGSL.
//!
//! A dispatch a stage and step, many steps a submission; tiles are staged in workgroup memory. The kernels' text comes
//! from [`abide_shaders::wgsl`]. WGSL leaves fusing of multiplications and additions to the driver, so results agree
//! with the other backends within [`ulp_bound_per_step`], not to the bit.
//!
//! No driver is needed to build; what is there is found at run time, and absence is
//! [`Error::Unavailable`](abide_core::Error::Unavailable).
#![deny(missing_docs)]

mod accuracy;
mod adapter;
mod backend;
mod bandwidth;
mod fields;
mod gpu;
mod session;
mod timing;

pub use accuracy::{ulp_bound_per_step, ulp_bound_per_step_of};
pub use adapter::{Adapter, adapters};
pub use backend::WgpuBackend;

/// The backend's name.
pub const NAME: &str = "wgpu";

//! Runs stencil programs on any GPU that speaks Vulkan, Metal, DX12 or OpenGL, and in browsers that speak
//! WebGPU, by kernels in WGSL; and linear solvers, a few dispatches per iteration.
//!
//! A dispatch runs several steps, whose cells stay in registers and workgroup memory; or one stage of one
//! step, which is the only way for programs that are not plain. A submission has many dispatches. The kernels' text comes from [`abide_shaders::wgsl`]. WGSL leaves
//! fusing of multiplications and additions to the driver, so results agree with the other backends within
//! [`ulp_bound_per_step`], not to the bit.
//!
//! All methods that wait for the device can be awaited ([`WgpuBackend::new_async`],
//! [`WgpuBackend::open_async`], [`WgpuSession`]). The methods of [`Backend`](abide_core::Backend) and
//! [`Session`](abide_core::Session) block on the same code, and are an error in a browser, where nothing may
//! block.
//!
//! No driver is needed to build: drivers are found at run time, and the absence of all of them is
//! [`Error::Unavailable`](abide_core::Error::Unavailable).
#![deny(missing_docs)]

use abide_core::plan::{Depth, Execution, Options, Tune};

mod accuracy;
mod adapter;
mod backend;
mod bandwidth;
mod blocking;
mod count;
mod fields;
mod gpu;
mod krylov;
mod pace;
mod pass;
mod pipelines;
mod plain;
mod program;
mod quiet;
mod rounds;
mod session;
#[cfg(test)]
mod shuffles;
mod timing;
mod transfers;
mod tune;

pub use accuracy::{ulp_bound_per_step, ulp_bound_per_step_of};
pub use adapter::{Adapter, adapters, adapters_async};
pub use backend::WgpuBackend;
pub use gpu::device_descriptor;
pub use session::WgpuSession;
pub use wgpu;

/// Returns options for every execution and several depths that this backend runs, for tests that try them
/// all: as the planner plans them, whatever tuning found. Several steps per launch may be refused, with
/// [`abide_core::Error::Limit`].
pub fn variants() -> Vec<Options> {
    let own = Options { tune: Tune::Off, ..Options::default() };
    let stepwise = Options { execution: Execution::Stepwise, ..own };
    let depths = [Depth::Auto].into_iter().chain([1, 3].map(Depth::Steps));
    let several = depths.flat_map(|depth| {
        [Execution::Overlapped, Execution::Streaming].map(|execution| Options { execution, depth, ..own })
    });
    std::iter::once(stepwise).chain(several).collect()
}

/// The backend's name.
pub const NAME: &str = "wgpu";

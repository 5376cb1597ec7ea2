//! The CUDA backend: kernels generated from a plan, compiled at run time, cached on disk by content.
//!
//! A stepwise session launches one kernel per stage and replays them from a graph: the baseline. A persistent
//! session launches one cooperative kernel an epoch; the time loop is inside, and as much of the domain as
//! the plan says stays in registers and shared memory from step to step. The kernels are in `abide-shaders`.
//!
//! A linear solver is one persistent kernel, too: `krylov` has them.
//!
//! Where a plan asks for tuning, or is asked what the model's estimates are worth, plans are timed on the
//! device (`tune`), and the fastest is kept on disk (`abide-cache`).
//!
//! Nothing of CUDA is needed to build or load this crate; without a driver [`CudaBackend::new`] is
//! [`abide_core::Error::Unavailable`], with the reason. Arithmetic and roots have the bits of the CPU's.
#![deny(missing_docs)]

mod cache;
mod driver;
mod kernels;
mod krylov;
mod memory;
mod nvrtc;
mod persistent;
mod session;
mod stepwise;
mod streaming;
mod timing;
mod tune;

use std::path::PathBuf;
use std::sync::Arc;

use abide_cache::winners::Winners;
use abide_core::backend::{Tuner, check_fields};
use abide_core::plan::{CachePolicy, Depth, Execution, Options, Tune};
use abide_core::solver::LinearBackend;
use abide_core::{Array, Backend, DeviceSpec, Plan, Problem, Result, Session};
use cudarc::driver::CudaContext;

pub use abide_cache::FOLDER_VARIABLE as CACHE_VARIABLE;
pub use driver::device_count;
pub use kernels::{fit, report, report_as_planned, target};
pub use krylov::{Image, fit_solver, plan_batch};
pub use nvrtc::{Cubin, FOLDER_VARIABLE as NVRTC_VARIABLE, Nvrtc};

/// One CUDA device.
pub struct CudaBackend {
    context: Arc<CudaContext>,
    device: DeviceSpec,
    nvrtc: Arc<Nvrtc>,
    winners: Winners,
}

impl CudaBackend {
    /// The first device; `Unavailable`, with the reason, where driver, device or compiler is missing.
    pub fn new() -> Result<Self> {
        Self::with_ordinal(0)
    }

    /// A device by number, as the driver counts them.
    pub fn with_ordinal(ordinal: usize) -> Result<Self> {
        let (context, device) = driver::open(ordinal)?;
        let (nvrtc, winners) = (Arc::new(Nvrtc::open()?), Winners::of_user());
        Ok(CudaBackend { context, device, nvrtc, winners })
    }

    /// Keeps what tuning finds in this folder, and looks for it there, instead of in the user's cache folder.
    pub fn keeping_winners_in(mut self, folder: impl Into<PathBuf>) -> Self {
        self.winners = Winners::at(folder.into());
        self
    }
}

impl Backend for CudaBackend {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn device(&self) -> &DeviceSpec {
        &self.device
    }

    fn driver(&self) -> String {
        let (major, minor) = self.nvrtc.version();
        format!("{}, NVRTC {major}.{minor}", driver::version())
    }

    fn plan(&self, problem: &Problem, options: &Options) -> Result<Plan> {
        tune::plan(self, problem, options)
    }

    fn linear(&self) -> Option<&dyn LinearBackend> {
        Some(self)
    }

    fn tuner(&self) -> Option<&dyn Tuner> {
        Some(self)
    }

    fn open(&self, problem: &Problem, plan: &Plan, fields: Vec<Array>) -> Result<Box<dyn Session>> {
        plan.check(problem)?;
        check_fields(problem, &fields)?;
        let (plan, cubin) = kernels::fit(&self.nvrtc, problem, plan, &target(&self.device))?;
        self.context.bind_to_thread().map_err(driver::during("binding the context"))?;
        let kernels = kernels::Kernels::load(&self.context, cubin)?;
        let fields = memory::Fields::new(problem, &self.context, &fields)?;
        let launcher = session::launcher(&plan, &fields, &kernels, &self.nvrtc)?;
        Ok(Box::new(session::CudaSession::new(plan, fields, launcher)?))
    }
}

/// Every execution, cache policy and several depths that this backend runs, for tests that try them all: as
/// the planner plans them, whatever tuning found. A streaming kernel may refuse a problem, with
/// [`abide_core::Error::Limit`].
pub fn variants() -> Vec<Options> {
    let own = Options { tune: Tune::Off, ..Options::default() };
    let stepwise = Options { execution: Execution::Stepwise, ..own };
    let policies = CachePolicy::ALL.iter().filter(|policy| **policy != CachePolicy::Auto);
    let persistent = policies.map(|&cache| Options { execution: Execution::Persistent, cache, ..own });
    let depths = [Depth::Auto].into_iter().chain([1, 2, 3, 5].map(Depth::Steps));
    let streaming = depths.map(|depth| Options { execution: Execution::Streaming, depth, ..own });
    std::iter::once(stepwise).chain(persistent).chain(streaming).collect()
}

//! Plans: how a device will run a problem, decided before anything is allocated, printable and testable
//! anywhere. The crate `abide-planner` makes them.
//!
//! A GPU has four schedules: [`Stepwise`], a launch per stage; [`Overlapped`], overlapped tiling, where each
//! launch advances several steps and recomputes the halo; 2.5-D streaming with temporal blocking, in a form
//! for warps ([`WarpStreaming`]) and a portable one ([`PortableStreaming`]); [`Persistent`], tiles that stay
//! on the chip for the whole run. A CPU ([`Cpu`]) runs stepwise, streaming or persistent.

mod advances;
mod batch;
mod chain;
mod cpu;
pub(crate) mod description;
pub mod fused;
mod measured;
mod options;
pub mod overlapped;
pub mod persistent;
mod persistent_program;
mod ranks;
mod recipe;
pub mod resident;
mod stepwise;
pub mod streaming;
pub mod tables;
pub mod traffic;

use serde::Serialize;

use self::traffic::{Projection, Traffic};
use crate::device::DeviceSpec;
use crate::domain::{Boundaries, Shape};
use crate::error::{Error, Result};
use crate::program::{Boxes, Problem};
use crate::real::DType;

pub use advances::Advances;
pub use batch::{Batched, Order};
pub use chain::{Carrier, Chain};
pub use cpu::{Cpu, Level, Levels, Output, Ring, Tiling, across};
pub use measured::Measured;
pub use options::{
    CachePolicy, Depth, Exchanging, Execution, Fuse, Jam, LoopRows, Lowering, Options, Placement, Team, Tune,
};
pub use overlapped::Overlapped;
pub use persistent::{Persistent, Synchronisation};
pub use persistent_program::PersistentProgram;
pub use ranks::Ranks;
pub use recipe::Recipe;
pub use resident::Resident;
pub use stepwise::{Stepwise, staged_fields};
pub use streaming::portable::PortableStreaming;
pub use streaming::warp::WarpStreaming;
pub use tables::PlacedTable;

/// How the cells are divided among threads and places.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// A CPU's threads.
    Cpu(Cpu),
    /// A launch per stage.
    Stepwise(Stepwise),
    /// Overlapped tiling: several steps per launch, the halo recomputed.
    Overlapped(Overlapped),
    /// 2.5-D streaming with temporal blocking, by warps on CUDA.
    WarpStreaming(WarpStreaming),
    /// 2.5-D streaming with temporal blocking, on any GPU.
    PortableStreaming(PortableStreaming),
    /// Tiles that stay on the chip for the whole run (PERKS), which may hold a part of the domain.
    Persistent(Persistent),
    /// Tiles that hold the whole domain for the whole run, several steps between exchanges.
    Resident(Resident),
    /// All steps of a program that is not plain in one kernel.
    PersistentProgram(PersistentProgram),
}

/// The compiler's report on one kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Compiled {
    /// The kernel's name.
    pub kernel: String,
    /// The target, as in `sm_90`.
    pub target: String,
    /// Registers per thread.
    pub registers: usize,
    /// Bytes per thread that are stored to and loaded from local memory for want of registers.
    pub spill_bytes: usize,
}

impl Compiled {
    /// Returns the most bytes per thread that any kernel of a report spills; `None` if it has no kernel.
    pub fn most_spilled(report: &[Compiled]) -> Option<usize> {
        report.iter().map(|kernel| kernel.spill_bytes).max()
    }
}

/// How a device will run a problem.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// The program's name.
    pub program: String,
    /// The domain.
    pub shape: Shape,
    /// The type of all fields.
    pub dtype: DType,
    /// The boundaries.
    pub boundaries: Boundaries,
    /// The device planned for.
    pub device: DeviceSpec,
    /// The execution that was chosen; never `auto`.
    pub execution: Execution,
    /// Where a persistent run keeps its cells from step to step; `none` for any other execution.
    pub cache: CachePolicy,
    /// Steps per pass over the domain.
    pub depth: u32,
    /// The division among threads.
    pub schedule: Schedule,
    /// The bytes and operations of a step, for [`Plan::project`].
    pub traffic: Traffic,
    /// The planner's own estimate in seconds per step, by which plans are chosen. It is coarser than a
    /// measurement, and no bound. 0 where there is nothing to choose.
    pub estimated_seconds: f64,
    /// How the members of a batch share the device, where the problem is one; all else is said of each member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<Batched>,
    /// The slabs, where several devices advance the domain. All other members, except the domain, then describe the
    /// slab of one device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranks: Option<Ranks>,
    /// The compiler's reports, one per kernel; empty until the plan is compiled.
    pub compiled: Vec<Compiled>,
    /// The differences from the request, with their reasons.
    pub notes: Vec<String>,
}

impl Plan {
    /// Returns the share of the domain's cells that stay on the chip between steps, 0 to 1.
    pub fn cached_share(&self) -> f64 {
        self.traffic.cached_share()
    }

    /// Projects the peak of a run of `steps` steps that never halts.
    pub fn project(&self, steps: u64) -> Projection {
        self.project_advances(&Advances::one(steps))
    }

    /// Projects the peak of a run that halts between these advances.
    pub fn project_advances(&self, advances: &Advances) -> Projection {
        self.of_all(crate::plan::traffic::project_advances(&self.traffic, &self.device, &self.cut(advances)))
    }

    /// Returns the advances of a device: several devices halt where they exchange, too.
    pub(crate) fn cut(&self, advances: &Advances) -> Advances {
        match &self.ranks {
            Some(ranks) => advances.cut(u64::from(ranks.depth)),
            None => advances.clone(),
        }
    }

    /// Checks that the plan is for this problem, before any backend uses the plan with it.
    ///
    /// # Errors
    ///
    /// Those of [`Problem::check`]; [`Error::Invalid`] where the plan is for another program, domain, type or
    /// boundary.
    pub fn check(&self, problem: &Problem) -> Result<()> {
        problem.check()?;
        self.check_members(problem)?;
        let own = (&*self.program, self.shape, self.dtype, self.boundaries);
        // A plan of the plain form has the boundaries that its fields share.
        let is_of_plain_form =
            self.boundaries != problem.boundaries && problem.plain_boundaries() == Some(self.boundaries);
        let boundaries = if is_of_plain_form { self.boundaries } else { problem.boundaries };
        let other = (problem.program.name(), problem.shape, problem.dtype, boundaries);
        // Two programs of the same name may still differ in their stages.
        let stages = self.stages().is_none_or(|s| s.shared_bytes.len() == problem.program.stages().len());
        if own == other && stages {
            // A kernel of a group reads what the groups before it have made; some stages may be in parts.
            return match self.stages().filter(|stepwise| !stepwise.partition.steps.is_empty()) {
                Some(stepwise) => {
                    let split = stepwise.partition.split_problem(problem)?;
                    stepwise.partition.groups().check(&split, &Boxes::of(&split)?)
                }
                None => Ok(()),
            };
        }
        let [own, other] = [own, other].map(|(program, shape, dtype, boundaries)| {
            format!("{program} on {shape} {dtype}, boundary {}", boundaries.describe(3))
        });
        let reason = format!("it is for {own}, the problem is {other}");
        Err(Error::invalid("plan", reason, "make a plan for this problem"))
    }

    /// Returns the problem whose stages the plan's tiles and groups are of: the user's, with those stages in parts that the
    /// plan runs so.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] where the plan is of another program.
    pub fn split_problem(&self, problem: &Problem) -> Result<Problem> {
        match self.stages() {
            Some(tiles) => tiles.partition.split_problem(problem),
            None => Ok(problem.clone()),
        }
    }

    /// Returns the tiles of a persistent plan.
    pub fn persistent(&self) -> Option<&Persistent> {
        match &self.schedule {
            Schedule::Persistent(persistent) => Some(persistent),
            _ => None,
        }
    }

    /// Returns the tiles of a plan that keeps the whole domain on the chip.
    pub fn resident(&self) -> Option<&Resident> {
        match &self.schedule {
            Schedule::Resident(resident) => Some(resident),
            _ => None,
        }
    }

    /// Returns whether the kernels can note values of fields after each step ([`Problem::noted`]): those that go over several
    /// steps with a single domain on one device.
    pub fn notes(&self) -> bool {
        let has_several = self.is_at_once() || self.ranks.is_some();
        matches!(self.schedule, Schedule::WarpStreaming(_) | Schedule::Resident(_)) && !has_several
    }

    /// Returns the windows of a streaming plan by warps.
    pub fn warp_streaming(&self) -> Option<&WarpStreaming> {
        match &self.schedule {
            Schedule::WarpStreaming(streaming) => Some(streaming),
            _ => None,
        }
    }

    /// Returns the windows of a streaming plan on any GPU.
    pub fn portable_streaming(&self) -> Option<&PortableStreaming> {
        match &self.schedule {
            Schedule::PortableStreaming(streaming) => Some(streaming),
            _ => None,
        }
    }

    /// Returns the windows of a plan by overlapped tiling.
    pub fn overlapped(&self) -> Option<&Overlapped> {
        match &self.schedule {
            Schedule::Overlapped(overlapped) => Some(overlapped),
            _ => None,
        }
    }

    /// Returns the tiles of a stepwise plan on a GPU.
    pub fn stepwise(&self) -> Option<&Stepwise> {
        match &self.schedule {
            Schedule::Stepwise(stepwise) => Some(stepwise),
            _ => None,
        }
    }
}

//! The persistent schedule of domains that lie on the chip as a whole: the time loop is in the kernel, blocks keep
//! their tiles in registers and shared memory, and exchange cells once per `depth` steps (temporal blocking
//! within PERKS's execution model, Zhang et al., ICS'23).
//!
//! A tile is made of *lines* along the fastest axis, as wide as a warp. Of a line or a square, warps stand one
//! behind another along the swept axis; of a cube, along the slower axis of a plane. A warp sweeps its planes
//! once a stage, with partial sums between planes ([`carry`](super::streaming::carry)). Tiles overlap, because
//! near their sides cells go wrong by a radius a stage until the next exchange.

mod batch;
mod candidates;
mod description;
mod estimate;
#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::device::{Capability, DeviceSpec};
use crate::error::{Error, Result};
use crate::plan::general::refuse_others;
use crate::plan::papers::perks::Traffic;
use crate::plan::passes::fastest_first;
use crate::plan::streaming::requirement::Demand;
use crate::plan::{CachePolicy, Depth, Execution, Options, Plan, Schedule, base};
use crate::program::Problem;

pub use self::batch::{batch_plans, plan_batch};
pub use self::candidates::{Configuration, Exchange};
use self::candidates::{candidates, resident};
use self::estimate::step_seconds;

/// Tiles that blocks own for the whole run. Triples are (swept, slower, faster) axis, pairs the first two or,
/// per thread, the last two.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Resident {
    /// Steps between two exchanges.
    pub depth: usize,
    /// Warps of a block.
    pub warps: usize,
    /// Whether warps stand one behind another along the swept axis, and not along the slower axis of a plane.
    pub stacked: bool,
    /// Planes of a warp.
    pub planes: usize,
    /// The planes of those that stay in registers; the others stay in shared memory.
    pub planes_registers: usize,
    /// Cells of a plane that a thread owns.
    pub cells_per_thread: [usize; 2],
    /// Tiles of the domain.
    pub tiles: [usize; 3],
    /// Cells of a tile.
    pub tile: [usize; 3],
    /// Cells that go wrong between two exchanges at a side of a tile where the domain goes on.
    pub margin: [usize; 3],
    /// Lines beyond a tile that it reads.
    pub ring: [usize; 2],
    /// Copies in shared memory of the lines that other warps read: two by turns, or one, which costs a barrier.
    pub halves: usize,
    /// Blocks resident on one multiprocessor.
    pub blocks_per_multiprocessor: usize,
    /// How tiles exchange cells.
    pub exchange: Exchange,
    /// Bytes of dynamic shared memory of a block.
    pub shared_bytes: usize,
    /// Registers that a thread may use.
    pub registers: usize,
}

impl Resident {
    /// Returns the threads of a block.
    pub fn threads_per_block(&self) -> usize {
        32 * self.warps
    }

    /// Returns the blocks of a launch: one for each tile.
    pub fn blocks(&self) -> usize {
        self.tiles.iter().product()
    }

    /// Returns whether tiles read cells of each other, or a tile those of its own far end.
    pub fn exchanges(&self) -> bool {
        self.blocks() > 1 || self.margin != [0; 3]
    }

    /// Returns the exchanges of a launch of so many steps: all passes but the last end with one.
    pub fn exchanges_in(&self, steps: u64) -> u64 {
        if self.exchanges() { steps.saturating_sub(1) / self.depth as u64 } else { 0 }
    }

    /// Returns the share of the computed cells that are the domain's and computed once.
    pub fn valid(&self, cells: usize) -> f64 {
        cells as f64 / (self.blocks() * self.tile.iter().product::<usize>()) as f64
    }

    /// Returns the free choices of the tiles.
    pub fn configuration(&self) -> Configuration {
        Configuration {
            depth: self.depth,
            warps: self.warps,
            planes: self.planes,
            planes_registers: self.planes_registers,
            cells_per_thread: self.cells_per_thread,
            blocks_per_multiprocessor: self.blocks_per_multiprocessor,
            exchange: self.exchange,
        }
    }
}

/// Returns all plans that keep the whole domain on the chip, the one that the model finds fastest first; none
/// where it does not fit.
pub fn resident_plans(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Vec<Plan>> {
    problem.check()?;
    refuse_others(problem, device, &Options { execution: Execution::Persistent, ..*options })?;
    device.require(Capability::Barrier, "a persistent kernel")?;
    device.require(Capability::Warps, "a persistent kernel")?;
    let demand = Demand::of(problem);
    let found: Vec<(f64, Resident)> = candidates(&demand, device, options.depth)
        .into_iter()
        .map(|resident| (step_seconds(&demand, device, &resident), resident))
        .collect();
    Ok(fastest_first(found, |(estimate, resident)| plan_of(problem, device, resident, estimate)))
}

/// Plans tiles that keep the whole domain on the chip: the first of [`resident_plans`].
pub fn plan_resident(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Plan> {
    let plans = resident_plans(problem, device, options)?;
    plans.into_iter().next().ok_or_else(|| too_large(problem, device, options))
}

/// Makes the error for a domain that the chip does not hold as a whole.
pub(super) fn too_large(problem: &Problem, device: &DeviceSpec, options: &Options) -> Error {
    let depth = match options.depth {
        Depth::Auto => "at any depth".to_owned(),
        Depth::Steps(steps) => format!("with {steps} steps between exchanges"),
    };
    Error::limit(
        format!("registers and shared memory of all blocks on {}", device.name),
        format!("{} {} of {}, {depth}", problem.program.fields().len(), problem.dtype, problem.shape),
        format!("{:.1} MB", device.on_chip_bytes() as f64 / 1e6),
        "use --execution streaming",
    )
}

/// Returns the plan of a configuration, of a batch with a block for each member; `None` if it does not fit.
pub fn plan_configuration(
    problem: &Problem,
    device: &DeviceSpec,
    configuration: &Configuration,
) -> Option<Plan> {
    let demand = Demand::of(problem);
    let resident = resident(&demand, device, configuration)?;
    if problem.is_batch() {
        return batch::of(&demand, device, resident);
    }
    let estimate = step_seconds(&demand, device, &resident);
    Some(plan_of(problem, device, resident, estimate))
}

fn plan_of(problem: &Problem, device: &DeviceSpec, resident: Resident, estimate: f64) -> Plan {
    let mut traffic = Traffic::uncached(problem, device);
    let share = resident.planes_registers as f64 / resident.planes as f64;
    traffic.cached_registers = traffic.cells * share;
    traffic.cached_shared = traffic.cells - traffic.cached_registers;
    let exchanged = (1.0 - resident.valid(problem.shape.cells())).max(0.0) / resident.depth as f64;
    traffic.halo_bytes = 2.0 * traffic.cells * traffic.changing_bytes * exchanged;
    traffic.overhead_seconds = device.barrier_seconds / resident.depth as f64;
    let depth = resident.depth as u32;
    let mut plan = base(problem, device, Execution::Persistent, Schedule::Resident(resident), traffic);
    plan.cache = CachePolicy::Mixed;
    plan.depth = depth;
    plan.estimated_seconds = estimate;
    plan
}

impl Plan {
    /// Returns the same resident plan with `planes` planes of a warp in registers, as the compiler's report of spills
    /// may ask; `None` where shared memory has no room for the others.
    pub fn with_resident_registers(&self, problem: &Problem, planes: usize) -> Option<Plan> {
        let resident = self.resident()?;
        let configuration = Configuration { planes_registers: planes, ..resident.configuration() };
        let mut plan = plan_configuration(problem, &self.device, &configuration)?;
        plan.notes = self.notes.clone();
        Some(plan)
    }
}

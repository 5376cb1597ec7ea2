//! The persistent schedule: the time loop is in the kernel, and a block keeps its tile on the chip for the
//! whole run (PERKS, Zhang et al., ICS'23). It sweeps the tile plane by plane.
//!
//! The swept axis is the slowest that the domain has (y of a plane, z of a cube); a *plane* is what lies
//! across it. Each tile's first planes live in registers, the next in shared memory, the rest in device
//! memory, and all are updated in place. A window of the planes around the computed one slides along in
//! registers, and cells of other threads are exchanged through a ring in shared memory. In every step the rim
//! of each tile is published in device memory for its neighbours.

mod candidates;
mod description;
mod estimate;
mod room;
#[cfg(test)]
mod tests;

use serde::Serialize;

use super::cpu::check_depth;
use super::general::refuse_others;
use super::{CachePolicy, Execution, Options, Plan, Schedule, base};
use crate::device::{Capability, DeviceSpec};
use crate::domain::Axes;
use crate::error::{Error, Result};
use crate::program::Problem;

pub use self::candidates::Configuration;
use self::candidates::candidates;
use self::estimate::{step_seconds, traffic};
use self::room::{planes_shared, ring_bytes, shared_bytes};

/// The largest radius that a persistent kernel's register window takes.
pub const MAX_PERSISTENT_RADIUS: usize = 12;

/// The blocks for which a block waits between stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Synchronisation {
    /// Each block waits for the blocks whose tiles touch its own.
    Neighbours,
    /// All blocks wait for all.
    Grid,
}

/// Tiles that blocks own for the whole run. Pairs are (slower, faster) axis of a plane, triples (swept,
/// slower, faster).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Persistent {
    /// Threads of a block.
    pub threads: [usize; 2],
    /// Cells of a plane that a thread owns.
    pub cells_per_thread: [usize; 2],
    /// Tiles of the domain.
    pub tiles: [usize; 3],
    /// The fewest and the most planes of a tile; the two differ by one at most.
    pub planes: [usize; 2],
    /// Planes in registers: the first of each block's first tile.
    pub planes_registers: usize,
    /// Planes in shared memory: those after the planes in registers.
    pub planes_shared: usize,
    /// Planes that arrive and are computed between two barriers of the block.
    pub chunk: usize,
    /// Chunks whose lateral halo is prefetched at once.
    pub halo_ahead: usize,
    /// Blocks launched: one for each tile, or as many as can be resident.
    pub blocks: usize,
    /// Blocks resident on one multiprocessor.
    pub blocks_per_multiprocessor: usize,
    /// How blocks wait for each other.
    pub synchronisation: Synchronisation,
    /// Bytes of dynamic shared memory of a block.
    pub shared_bytes: usize,
    /// Registers that a thread may use.
    pub registers: usize,
}

impl Persistent {
    /// Returns the cells of a tile's plane along its two axes.
    pub fn plane(&self) -> [usize; 2] {
        [self.threads[0] * self.cells_per_thread[0], self.threads[1] * self.cells_per_thread[1]]
    }

    /// Returns the threads of a block.
    pub fn threads_per_block(&self) -> usize {
        self.threads[0] * self.threads[1]
    }

    /// Returns the number of tiles of the domain.
    pub fn tile_count(&self) -> usize {
        self.tiles.iter().product()
    }

    /// Returns the free choices of the sweep.
    pub fn configuration(&self) -> Configuration {
        Configuration {
            threads: self.threads,
            cells_per_thread: self.cells_per_thread,
            blocks_per_multiprocessor: self.blocks_per_multiprocessor,
            chunk: self.chunk,
        }
    }

    /// Returns the bytes of the ring through which threads exchange cells: two halves of `chunk` planes with
    /// their lateral halo.
    pub fn ring_bytes(&self, problem: &Problem) -> usize {
        ring_bytes(problem, self.plane(), self.chunk)
    }

    /// Returns the same sweep with `planes` of its planes in registers. Those given up go to shared memory as
    /// far as there is room, unless `policy` is `registers`.
    fn with_planes_in_registers(
        &self,
        problem: &Problem,
        device: &DeviceSpec,
        policy: CachePolicy,
        planes: usize,
    ) -> Persistent {
        let mut persistent = self.clone();
        persistent.planes_registers = planes;
        if policy != CachePolicy::Registers {
            persistent.planes_shared = planes_shared(problem, device, &persistent);
        }
        persistent.shared_bytes = shared_bytes(problem, &persistent);
        persistent
    }

    /// Returns the cells of the domain that stay in registers, and those in shared memory.
    pub fn cached_cells(&self, problem: &Problem) -> [usize; 2] {
        let extents = Axes::of(problem.shape.dimensions()).order(problem.shape.padded());
        let plane = self.plane();
        let mut cells = [0; 2];
        for tile in 0..self.blocks.min(self.tile_count()) {
            let at = [
                tile / (self.tiles[1] * self.tiles[2]),
                tile / self.tiles[2] % self.tiles[1],
                tile % self.tiles[2],
            ];
            let planes = self.planes_of(at[0], extents[0]);
            let side =
                |axis: usize| extents[axis].saturating_sub(at[axis] * plane[axis - 1]).min(plane[axis - 1]);
            let area = side(1) * side(2);
            let registers = self.planes_registers.min(planes);
            cells[0] += area * registers;
            cells[1] += area * self.planes_shared.min(planes - registers);
        }
        cells
    }

    /// Returns the planes of the tiles in row `row` of the swept axis, whose extent is `extent`. The first
    /// rows have one plane more.
    pub fn planes_of(&self, row: usize, extent: usize) -> usize {
        extent / self.tiles[0] + usize::from(row < extent % self.tiles[0])
    }
}

/// Plans a persistent kernel for a device that reports its registers and shared memory: the first of
/// [`persistent_plans`].
pub fn plan_persistent(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Plan> {
    let plans = persistent_plans(problem, device, options)?;
    plans.into_iter().next().ok_or_else(|| {
        Error::limit(
            "shared memory of a block of a persistent kernel",
            format!(
                "the exchange ring of {} fields of radius {:?}",
                problem.program.fields().len(),
                problem.program.radius()
            ),
            format!("{} bytes", device.shared_bytes_per_block),
            "use --execution stepwise",
        )
    })
}

/// Returns all plans of persistent kernels that fit a device, the one that the model finds fastest first.
pub fn persistent_plans(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Vec<Plan>> {
    problem.check()?;
    refuse_others(problem, device, &Options { execution: Execution::Persistent, ..*options })?;
    check_depth(options.depth)?;
    device.require(Capability::Barrier, "a persistent kernel")?;
    if let Some(&far) = problem.program.radius().iter().find(|&&r| r > MAX_PERSISTENT_RADIUS) {
        return Err(Error::limit(
            "radius of a stencil in a persistent kernel",
            far,
            MAX_PERSISTENT_RADIUS,
            "use --execution stepwise",
        ));
    }
    let policy = if options.cache == CachePolicy::Auto { CachePolicy::Mixed } else { options.cache };
    // Sweeps that keep the whole domain on the chip come first: the model's estimate of a rest in device
    // memory is too coarse to compare with them. Those that keep nothing come last, because a policy that is asked
    // for is followed where it can be.
    let mut sweeps: Vec<(u8, f64, Persistent)> = candidates(problem, device, policy)
        .map(|persistent| {
            let kept = persistent.cached_cells(problem).iter().sum::<usize>();
            let rank = if kept == problem.shape.cells() { 0 } else { 1 + u8::from(kept == 0) };
            (rank, step_seconds(problem, device, &persistent), persistent)
        })
        .collect();
    sweeps.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    Ok(sweeps.into_iter().map(|(_, _, persistent)| plan_of(problem, device, policy, persistent)).collect())
}

/// Returns the plan of a configuration, if it is one of those that [`persistent_plans`] would consider.
pub fn plan_configuration(
    problem: &Problem,
    device: &DeviceSpec,
    policy: CachePolicy,
    configuration: &Configuration,
) -> Option<Plan> {
    let policy = if policy == CachePolicy::Auto { CachePolicy::Mixed } else { policy };
    let persistent = candidates(problem, device, policy)
        .find(|persistent| persistent.configuration() == *configuration)?;
    Some(plan_of(problem, device, policy, persistent))
}

/// Returns the plan that runs a sweep.
fn plan_of(problem: &Problem, device: &DeviceSpec, policy: CachePolicy, persistent: Persistent) -> Plan {
    let traffic = traffic(problem, device, &persistent);
    let estimate = step_seconds(problem, device, &persistent);
    let mut plan = base(problem, device, Execution::Persistent, Schedule::Persistent(persistent), traffic);
    plan.cache = policy;
    plan.estimated_seconds = estimate;
    plan
}

impl Plan {
    /// Returns the same plan with `planes` planes in registers, a multiple of the chunk, as the compiler's
    /// report of spills may ask. A plan that is not persistent stays as it is.
    pub fn with_planes_in_registers(&self, problem: &Problem, planes: usize) -> Plan {
        let Some(persistent) = self.persistent() else { return self.clone() };
        let planes = planes.min(persistent.planes[0]) / persistent.chunk * persistent.chunk;
        let persistent = persistent.with_planes_in_registers(problem, &self.device, self.cache, planes);
        let mut plan = plan_of(problem, &self.device, self.cache, persistent);
        plan.notes = self.notes.clone();
        plan
    }
}

//! 2.5-D streaming with temporal blocking, the warp form for CUDA: each launch advances several steps while
//! every plane of the domain passes through the chip once.
//!
//! A block owns a window across the swept axis and streams along it. The stages of `depth` steps stand behind
//! one another. Each stage turns the plane that arrives into a plane of its result and keeps partial sums
//! ([`carry`](super::carry)). Windows overlap because cells near their sides go wrong by a radius per stage
//! (the SM tiling of EBISU, Zhang et al., ICS'23). Along the fastest axis a window is as wide as a warp.

mod description;
mod edges;

use serde::{Deserialize, Serialize};

use crate::plan::{Plan, Schedule};

pub use self::edges::Edges;

/// The free choices of a streaming kernel; the rest follows from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Configuration {
    /// Steps per launch.
    pub depth: usize,
    /// Warps per block.
    pub warps: usize,
    /// Cells of a plane that a thread owns.
    pub cells_per_thread: [usize; 2],
    /// Whether stages work a plane apart.
    pub lag: bool,
    /// Planes of the input in shared memory.
    pub ahead: usize,
    /// Values per cell and stage that are carried in shared memory.
    pub carried_shared: usize,
    /// Blocks resident on one multiprocessor.
    pub blocks_per_multiprocessor: usize,
    /// Blocks launched per resident block.
    pub waves: usize,
}

/// Windows that stream. Pairs are (slower, faster) axis of a plane, triples (swept, slower, faster).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WarpStreaming {
    /// Steps per launch.
    pub depth: usize,
    /// Whether the depth was asked for, rather than chosen by the planner.
    pub depth_asked: bool,
    /// Warps per block, one above another along the slower axis of a plane.
    pub warps: usize,
    /// Cells of a plane that a thread owns.
    pub cells_per_thread: [usize; 2],
    /// Cells along each axis that go wrong at a side of a window where the domain goes on.
    pub margin: [usize; 3],
    /// Windows of the domain along the two axes of a plane.
    pub tiles: [usize; 2],
    /// Blocks per launch: the planes of all windows are cut into so many shares of equal cost.
    pub shares: usize,
    /// The cost of all planes of a window that meets no boundary across, and of a window that does: in
    /// shares, or relative to each other.
    pub window_costs: [usize; 2],
    /// The additional cost of beginning with a window, in planes, if a share may have planes of several
    /// windows.
    pub fill: usize,
    /// Whether a stage takes what the stage before it made a plane ago, instead of just now. Then one barrier
    /// per plane serves all stages, and they do not wait for each other.
    pub lag: bool,
    /// Planes of the input in shared memory: one in use, the others on their way.
    pub ahead: usize,
    /// Values per cell and stage that are carried from plane to plane in registers.
    pub carried_registers: usize,
    /// Values per cell and stage that are carried in shared memory.
    pub carried_shared: usize,
    /// Blocks resident on one multiprocessor.
    pub blocks_per_multiprocessor: usize,
    /// Blocks launched per resident block.
    pub waves: usize,
    /// Whether blocks stay for all passes of a launch, and between two wait for those around them: all are resident, and
    /// passes are short.
    pub chained: bool,
    /// Whether the address of a copied word is computed by summing cells first, or by summing addresses. The results
    /// are the same; only the compiler's report shows which takes fewer registers.
    pub sums_cells: bool,
    /// What a kernel of a slab stores, where it gives planes to its neighbours; `None` where it stores all planes.
    pub edges: Option<Edges>,
    /// Bytes of dynamic shared memory of a block.
    pub shared_bytes: usize,
    /// Registers that a thread may use.
    pub registers: usize,
    /// The share of the computed cells that are kept; less than 1 because windows overlap. It is the valid
    /// portion V of EBISU (eq. 9).
    pub valid: f64,
    /// The depth, in steps, beyond which device memory would no longer be the bottleneck if all else were at
    /// its peak (EBISU, eq. 17).
    pub sufficient_depth: f64,
}

impl WarpStreaming {
    /// Returns the cells of a window's plane along its two axes.
    pub fn window(&self) -> [usize; 2] {
        [self.warps * self.cells_per_thread[0], 32 * self.cells_per_thread[1]]
    }

    /// Returns the threads of a block.
    pub fn threads_per_block(&self) -> usize {
        32 * self.warps
    }

    /// Returns the free choices of the windows.
    pub fn configuration(&self) -> Configuration {
        Configuration {
            depth: self.depth,
            warps: self.warps,
            cells_per_thread: self.cells_per_thread,
            lag: self.lag,
            ahead: self.ahead,
            carried_shared: self.carried_shared,
            blocks_per_multiprocessor: self.blocks_per_multiprocessor,
            waves: self.waves,
        }
    }
}

impl Plan {
    /// Returns the same streaming plan with a launch per pass; `None` where it has that already. The kernel then needs fewer
    /// registers.
    pub fn unchained(&self) -> Option<Plan> {
        let mut plan = self.clone();
        match &mut plan.schedule {
            Schedule::WarpStreaming(streaming) if streaming.chained => streaming.chained = false,
            _ => return None,
        }
        Some(plan)
    }

    /// Returns the same streaming plan with the places of copies summed the other way; `None` of other plans.
    pub fn with_other_sums(&self) -> Option<Plan> {
        let mut plan = self.clone();
        match &mut plan.schedule {
            Schedule::WarpStreaming(streaming) => streaming.sums_cells = !streaming.sums_cells,
            _ => return None,
        }
        Some(plan)
    }
}

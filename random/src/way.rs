//! Ways to run a problem on the CPU that no planner would choose.

use abide_core::plan::{Cpu, Schedule, Tiling};
use abide_core::{Execution, Plan};
use proptest::prelude::*;

/// A way to run: a launch per stage, or passes of some depth, in some number of tiles and blocks of planes,
/// by threads that keep their tiles or not.
#[derive(Debug, Clone)]
pub struct Way {
    chunk: usize,
    tiled: Option<(u32, [usize; 3], usize, bool)>,
}

impl Way {
    /// Returns the plan for this many threads, and the rows in it.
    pub fn of(&self, mut plan: Plan, threads: usize) -> (Plan, Cpu) {
        let tiling = self.tiled.map(|(depth, tiles, block, persistent)| {
            plan.depth = depth;
            plan.execution = if persistent { Execution::Persistent } else { Execution::Streaming };
            Tiling { tiles, tile: [0; 3], block, ring_bytes: 0, overlap: 1.0 }
        });
        let rows = Cpu { threads, pinned: false, chunk: self.chunk, fuse: true, tiling };
        plan.schedule = Schedule::Cpu(rows.clone());
        (plan, rows)
    }
}

/// Returns any way.
pub fn ways() -> impl Strategy<Value = Way> {
    let tiled = (1u32..6, [1usize..4, 1usize..4, 1usize..4], 1usize..4, any::<bool>());
    let chunk = prop::sample::select(vec![1usize, 3, 8, 512]);
    (chunk, prop::option::weighted(0.8, tiled)).prop_map(|(chunk, tiled)| Way { chunk, tiled })
}

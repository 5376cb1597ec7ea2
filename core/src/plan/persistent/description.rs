//! A persistent plan in words.

use super::{Persistent, Synchronisation};
use crate::plan::Plan;
use crate::plan::description::{Describe, Line};
use crate::units::{count, times};

impl Describe for Persistent {
    fn summary(&self, plan: &Plan) -> String {
        format!(
            "persistent, cache {}, {:.1} % on the chip, {} of {} threads, {} + {} of {} planes in registers + shared memory",
            plan.cache,
            100.0 * plan.cached_share(),
            count(self.blocks, "block"),
            self.threads_per_block(),
            self.planes_registers,
            self.planes_shared,
            self.planes[1],
        )
    }

    fn lines(&self, plan: &Plan) -> Vec<Line> {
        let share = plan.cached_share();
        let fits = if share >= 1.0 {
            "all of it fits"
        } else {
            "the rest passes through device memory in each step"
        };
        let total = plan.traffic.cells.max(1.0);
        let [least, most] = self.planes;
        let planes = if least == most { most.to_string() } else { format!("{least}–{most}") };
        let waits = match self.synchronisation {
            Synchronisation::Neighbours => "each block for the blocks whose tiles touch its own",
            Synchronisation::Grid => "every block for all, once per stage",
        };
        vec![
            (
                "tiling",
                format!(
                    "{} tiles of {planes} planes of {} cells; {} of {} threads, {} cells of a plane per thread, {} per SM",
                    times(&self.tiles),
                    times(&self.plane()),
                    count(self.blocks, "block"),
                    times(&self.threads),
                    times(&self.cells_per_thread),
                    count(self.blocks_per_multiprocessor, "block"),
                ),
            ),
            (
                "planes",
                format!(
                    "{} in registers, {} in shared memory, {} in device memory; {} between barriers",
                    self.planes_registers,
                    self.planes_shared,
                    most - (self.planes_registers + self.planes_shared).min(most),
                    self.chunk,
                ),
            ),
            (
                "cached",
                format!(
                    "{}: {:.1} % of the domain stays on the chip ({:.1} % in registers, {:.1} % in shared memory); {fits}",
                    plan.cache,
                    100.0 * share,
                    100.0 * plan.traffic.cached_registers / total,
                    100.0 * plan.traffic.cached_shared / total,
                ),
            ),
            (
                "budget",
                format!(
                    "up to {} registers per thread, {} bytes of shared memory per block",
                    self.registers, self.shared_bytes
                ),
            ),
            ("waits", waits.to_owned()),
        ]
    }
}

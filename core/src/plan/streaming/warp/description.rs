//! The warp form of 2.5-D streaming in words.

use super::WarpStreaming;
use crate::plan::Plan;
use crate::plan::description::{Describe, Line};
use crate::units::{count, times};

impl WarpStreaming {
    /// Returns the windows and how they are cut, in words.
    fn sweep(&self) -> String {
        let window = times(&self.window());
        format!("{} windows of {window} cells, swept in {} equal chunks", times(&self.tiles), self.shares)
    }
}

impl Describe for WarpStreaming {
    fn summary(&self, _: &Plan) -> String {
        format!(
            "2.5-D streaming, temporal depth {}, {}, {} per block × {} per SM",
            self.depth,
            self.sweep(),
            count(self.warps, "warp"),
            count(self.blocks_per_multiprocessor, "block"),
        )
    }

    fn lines(&self, _: &Plan) -> Vec<Line> {
        let stages = if self.lag { "a plane apart" } else { "in the same plane" };
        let pass = match self.chained {
            true => "pass, all passes in one launch",
            false => "launch",
        };
        let given = self.edges.as_ref().map(|edges| {
            let [low, high] = edges.given;
            let given = format!(
                "planes {}..{} are stored; the first {low} and the last {high} into the neighbours' memory, too",
                edges.own.start, edges.own.end
            );
            ("given", given)
        });
        let lines = vec![
            (
                "tiling",
                format!(
                    "{}; {} per block, {} cells per thread, {} per SM",
                    self.sweep(),
                    count(self.warps, "warp"),
                    times(&self.cells_per_thread),
                    count(self.blocks_per_multiprocessor, "block"),
                ),
            ),
            (
                "depth",
                format!(
                    "{} steps per {pass} ({:.1} take device memory out of the way, EBISU eq. 17); consecutive stages work {stages}",
                    self.depth, self.sufficient_depth,
                ),
            ),
            (
                "overlap",
                format!(
                    "halos of {} cells where windows meet; {:.0} % of the computed cells are kept (EBISU's V)",
                    times(&self.margin.map(|margin| 2 * margin)),
                    100.0 * self.valid,
                ),
            ),
            (
                "carried",
                format!(
                    "{} values per cell and stage in registers, {} in shared memory; {} planes of input in shared memory",
                    self.carried_registers, self.carried_shared, self.ahead
                ),
            ),
            (
                "budget",
                format!(
                    "up to {} registers per thread, {} bytes of shared memory per block",
                    self.registers, self.shared_bytes
                ),
            ),
        ];
        lines.into_iter().chain(given).collect()
    }
}

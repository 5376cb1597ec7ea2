//! A CPU's plan in words.

use super::Cpu;
use crate::plan::description::{Describe, Line};
use crate::plan::{Execution, Plan};
use crate::units::{count, times};

impl Describe for Cpu {
    fn summary(&self, plan: &Plan) -> String {
        let threads = count(self.threads, "thread");
        match &self.tiling {
            None => format!("stepwise on {threads}"),
            Some(tiling) => format!(
                "{}, temporal depth {}, {} tiles of {} on {threads}",
                if plan.execution == Execution::Streaming {
                    "2.5-D streaming"
                } else {
                    plan.execution.name()
                },
                plan.depth,
                times(&tiling.tiles),
                times(&tiling.tile),
            ),
        }
    }

    fn lines(&self, plan: &Plan) -> Vec<Line> {
        let pinned = if self.pinned { ", each pinned to a core" } else { "" };
        let threads = count(self.threads, "thread");
        let mut lines =
            vec![("threads", format!("{threads}{pinned}, rows in chunks of {} cells", self.chunk))];
        if let Some(tiling) = &self.tiling {
            let ring = tiling.ring_bytes as f64 / 1e3;
            lines.extend([
                ("tiles", format!("{} of {} cells", times(&tiling.tiles), times(&tiling.tile))),
                (
                    "depth",
                    format!(
                        "{} steps per pass; the planes between them take {ring:.0} kB of cache per thread",
                        plan.depth
                    ),
                ),
                (
                    "overlap",
                    format!(
                        "{:.1} % of the cells are recomputed where tiles meet",
                        100.0 * (tiling.overlap - 1.0)
                    ),
                ),
            ]);
        }
        lines
    }
}

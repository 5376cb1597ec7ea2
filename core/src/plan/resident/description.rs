//! A resident plan in words.

use super::{Exchange, Resident};
use crate::plan::Plan;
use crate::plan::description::{Describe, Line};
use crate::units::{count, times};

impl Describe for Resident {
    fn summary(&self, plan: &Plan) -> String {
        format!(
            "persistent, all of the domain on the chip, {} of {} threads, {} per exchange, {} of {} planes in registers",
            count(self.blocks(), "block"),
            self.threads_per_block(),
            count(plan.depth as usize, "step"),
            self.planes_registers,
            self.planes,
        )
    }

    fn lines(&self, plan: &Plan) -> Vec<Line> {
        let along = if self.stacked { "behind one another" } else { "one above another" };
        let valid = self.valid(plan.shape.cells()).min(1.0);
        let exchange = if self.exchanges() {
            let way = match self.exchange {
                Exchange::Counted => "a counter tells when they have come",
                Exchange::Tagged => "each word has a tag",
            };
            format!(
                "every {}, {} cells deep, {way}; {:.0} % of the computed cells are kept",
                count(self.depth, "step"),
                times(&self.margin),
                100.0 * valid
            )
        } else {
            "none: one block holds the domain".to_owned()
        };
        vec![
            (
                "tiling",
                format!(
                    "{} tiles of {} cells; {} {along} per block, each of {} of {}×{} cells per thread; {} per SM",
                    times(&self.tiles),
                    times(&self.tile),
                    count(self.warps, "warp"),
                    count(self.planes, "plane"),
                    self.cells_per_thread[0],
                    self.cells_per_thread[1],
                    count(self.blocks_per_multiprocessor, "block"),
                ),
            ),
            (
                "planes",
                format!(
                    "{} of a warp's in registers, {} in shared memory; lines that other warps read are copied there {}",
                    self.planes_registers,
                    self.planes - self.planes_registers,
                    if self.halves == 2 { "twice, by turns" } else { "once" },
                ),
            ),
            ("exchange", exchange),
            (
                "budget",
                format!(
                    "up to {} registers per thread, {} bytes of shared memory per block",
                    self.registers, self.shared_bytes
                ),
            ),
        ]
    }
}

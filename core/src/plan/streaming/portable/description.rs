//! The portable form of 2.5-D streaming in words.

use super::{Handover, PortableStreaming};
use crate::plan::Plan;
use crate::plan::description::{Describe, Line};
use crate::units::times;

impl Describe for PortableStreaming {
    fn summary(&self, _: &Plan) -> String {
        format!(
            "2.5-D streaming, temporal depth {}, {} windows of {} in {} chunks, {} threads × {} cells per plane",
            self.configuration.depth,
            times(&self.tiles),
            times(&self.window()),
            self.configuration.shares,
            self.threads_per_block(),
            times(&self.configuration.cells),
        )
    }

    fn lines(&self, _: &Plan) -> Vec<Line> {
        let c = &self.configuration;
        let handover = match c.handover {
            Handover::Slots => "two barriers per plane",
            Handover::DoubleSlots => "one barrier per plane",
            Handover::Shuffles => "threads shuffle cells, without barriers",
        };
        vec![
            (
                "tiling",
                format!(
                    "{} windows of {} cells, each swept in {} chunks of planes ({} at a side of the domain); {} threads per block, \
                     {} cells per thread, {} bytes of workgroup memory",
                    times(&self.tiles),
                    times(&self.window()),
                    c.shares,
                    self.side_shares,
                    times(&c.threads),
                    times(&c.cells),
                    self.shared_bytes,
                ),
            ),
            (
                "depth",
                format!(
                    "{} steps per launch, {} planes behind the plane that arrives; {handover}",
                    c.depth, self.behind
                ),
            ),
            (
                "overlap",
                format!(
                    "halos of {} cells where windows and chunks meet; {:.0} % of the computed cells are kept (EBISU's V)",
                    times(&self.margin.map(|[low, high]| low + high)),
                    100.0 * self.valid,
                ),
            ),
            (
                "carried",
                format!(
                    "{} values per thread in registers; planes are loaded {} before their use, {} cells at once",
                    self.carried, c.ahead, self.lanes
                ),
            ),
        ]
    }
}

//! Overlapped tiling in words.

use super::Overlapped;
use crate::plan::Plan;
use crate::plan::description::{Describe, Line};
use crate::units::times;

impl Describe for Overlapped {
    fn summary(&self, _: &Plan) -> String {
        format!(
            "overlapped tiling, temporal depth {}, {} windows of {}, {} threads × {} cells",
            self.configuration.depth,
            times(&self.blocks),
            times(&self.window()),
            self.threads_per_block(),
            times(&self.configuration.cells),
        )
    }

    fn lines(&self, _: &Plan) -> Vec<Line> {
        let c = &self.configuration;
        let barriers = if c.double { "one barrier" } else { "a barrier before and after the new values" };
        let halo = self.halo.map(|[low, high]| low + high);
        vec![
            (
                "tiling",
                format!(
                    "{} windows of {} cells; {} threads per block with {} cells each in registers, {} bytes of workgroup memory",
                    times(&self.blocks),
                    times(&self.window()),
                    times(&c.threads),
                    times(&c.cells),
                    self.shared_bytes,
                ),
            ),
            (
                "depth",
                format!("{} steps per launch; {barriers} per stage whose cells are exchanged", c.depth),
            ),
            (
                "overlap",
                format!(
                    "halos of {} cells; {:.0} % of the computed cells are kept",
                    times(&halo),
                    100.0 * self.valid
                ),
            ),
        ]
    }
}

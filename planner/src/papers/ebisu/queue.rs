//! The circular multi-queue of EBISU (§4.2): the planes that a block holds between the steps of a pass.

use abide_core::{Error, Result};
use serde::Serialize;

use super::Costs;

/// A circular multi-queue, by how its planes are found.
///
/// Lazy streaming (§4.3.2) would take one more plane per step. It is left out because the paper's own depths
/// leave it out: with it, 3d7pt would fit only 5 steps on an A100 instead of the 8 of §6.3.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Queue {
    /// Indices are moved on after each plane; the queue has as many planes as are needed.
    Shifted,
    /// Indices are computed modulo a power of two, to which the number of planes is rounded up.
    Computed,
}

impl Queue {
    /// Returns the planes that a pass of `depth` steps holds (the range of listings 5 and 6).
    pub fn planes(self, costs: &Costs, depth: usize) -> usize {
        let planes = planes_per_step(costs).saturating_mul(depth).saturating_add(1);
        match self {
            Queue::Shifted => planes,
            Queue::Computed => planes.checked_next_power_of_two().unwrap_or(usize::MAX),
        }
    }

    /// Returns the bytes that the planes of a pass of `depth` steps take, each plane with a frame of one
    /// radius.
    pub fn bytes(self, costs: &Costs, tile: [usize; 2], depth: usize) -> f64 {
        self.planes(costs, depth) as f64 * plane_bytes(costs, tile)
    }

    /// Returns the greatest depth whose planes fit in `capacity` bytes; 0 if no depth does, `usize::MAX` if
    /// any does, as for a program that taps no other plane.
    pub fn deepest(self, costs: &Costs, tile: [usize; 2], capacity: usize) -> usize {
        let most = (capacity as f64 / plane_bytes(costs, tile)) as usize;
        let most = match (self, most.checked_ilog2()) {
            (Queue::Computed, Some(power)) => 1 << power,
            _ => most,
        };
        match most.checked_sub(1) {
            Some(queued) => queued.checked_div(planes_per_step(costs)).unwrap_or(usize::MAX),
            None => 0,
        }
    }

    /// Checks that there is room for a pass; the error names the deepest pass for which there is room.
    pub fn fit(self, costs: &Costs, tile: [usize; 2], depth: usize, capacity: usize) -> Result<()> {
        let bytes = self.bytes(costs, tile, depth);
        if bytes <= capacity as f64 {
            return Ok(());
        }
        let [rows, columns] = [0, 1].map(|axis| tile[axis] as f64 + 2.0 * costs.radius[axis + 1] as f64);
        let change = match self.deepest(costs, tile, capacity) {
            0 => "make the tile smaller".to_owned(),
            deepest => format!("use a depth of {deepest} or less, or a smaller tile"),
        };
        Err(Error::limit(
            "shared memory of a block",
            format!(
                "{:.1} KiB for {} planes of {rows} × {columns} cells at depth {depth}",
                bytes / 1024.0,
                self.planes(costs, depth)
            ),
            format!("{} KiB", capacity / 1024),
            change,
        ))
    }
}

fn planes_per_step(costs: &Costs) -> usize {
    costs.radius[0].saturating_mul(2)
}

fn plane_bytes(costs: &Costs, tile: [usize; 2]) -> f64 {
    costs.framed(tile, 1.0) * (costs.dtype.bytes() * costs.fields) as f64
}

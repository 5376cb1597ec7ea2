//! The circular multi-queue of EBISU (§4.2, §4.3.2): the planes that a block holds between the steps of a
//! pass.

use serde::Serialize;

use super::Costs;
use crate::error::{Error, Result};

/// How a queue's planes are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Addressing {
    /// Indices are moved on after each plane: as many planes as are needed.
    Shifted,
    /// Indices are computed modulo a power of two, which rounds the planes up to it.
    Computed,
}

/// A circular multi-queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Queue {
    /// How planes are found.
    pub addressing: Addressing,
    /// Lazy streaming: a step waits until all planes it taps are complete, which takes a plane more a step
    /// and saves all barriers of a pass but one.
    pub lazy: bool,
}

impl Queue {
    /// Planes that a pass of `depth` steps holds (the range of listings 5–7).
    pub fn planes(&self, costs: &Costs, depth: usize) -> usize {
        let planes = self.planes_per_step(costs).saturating_mul(depth).saturating_add(1);
        match self.addressing {
            Addressing::Shifted => planes,
            Addressing::Computed => planes.checked_next_power_of_two().unwrap_or(usize::MAX),
        }
    }

    /// Bytes that those planes take, each with a frame of one radius.
    pub fn bytes(&self, costs: &Costs, tile: [usize; 2], depth: usize) -> f64 {
        self.planes(costs, depth) as f64 * plane_bytes(costs, tile)
    }

    /// The greatest depth whose planes fit `capacity` bytes; 0 where no depth does, `usize::MAX` where any
    /// does, as in a domain without a swept axis.
    pub fn deepest(&self, costs: &Costs, tile: [usize; 2], capacity: usize) -> usize {
        let most = (capacity as f64 / plane_bytes(costs, tile)) as usize;
        let most = match (self.addressing, most.checked_ilog2()) {
            (Addressing::Computed, Some(power)) => 1 << power,
            _ => most,
        };
        match most.checked_sub(1) {
            Some(queued) => queued.checked_div(self.planes_per_step(costs)).unwrap_or(usize::MAX),
            None => 0,
        }
    }

    /// The widest plane along its faster axis, its frame included, of which `rows` rows at depth `depth` fit
    /// `capacity` bytes, in cells.
    pub fn widest(&self, costs: &Costs, rows: usize, depth: usize, capacity: usize) -> usize {
        let column = (rows as f64 + 2.0 * costs.radius[1] as f64) * cell_bytes(costs);
        (capacity as f64 / (self.planes(costs, depth) as f64 * column)) as usize
    }

    /// The bytes of a pass, or an error with the deepest pass there is room for.
    pub fn fit(&self, costs: &Costs, tile: [usize; 2], depth: usize, capacity: usize) -> Result<f64> {
        let bytes = self.bytes(costs, tile, depth);
        if bytes <= capacity as f64 {
            return Ok(bytes);
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

    fn planes_per_step(&self, costs: &Costs) -> usize {
        costs.radius[0].saturating_mul(2).saturating_add(usize::from(self.lazy))
    }
}

fn plane_bytes(costs: &Costs, tile: [usize; 2]) -> f64 {
    costs.framed(tile, 1.0) * cell_bytes(costs)
}

fn cell_bytes(costs: &Costs) -> f64 {
    (costs.dtype.bytes() * costs.fields) as f64
}

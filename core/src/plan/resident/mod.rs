//! The persistent schedule of domains that lie on the chip as a whole: the time loop is in the kernel, blocks keep
//! their tiles in registers and shared memory, and exchange cells once per `depth` steps (temporal blocking
//! within PERKS's execution model, Zhang et al., ICS'23).
//!
//! A tile is made of *lines* along the fastest axis, as wide as a warp. Of a line or a square, warps stand one
//! behind another along the swept axis; of a cube, along the slower axis of a plane. A warp sweeps its planes
//! once a stage, with partial sums between planes ([`carry`](super::streaming::carry)). Tiles overlap, because
//! near their sides cells go wrong by a radius a stage until the next exchange.

mod description;

use serde::{Deserialize, Serialize};

/// How tiles learn that what they read of each other has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Exchange {
    /// By a counter for each block: stores, the counter, and loads follow one another.
    Counted,
    /// By a tag beside each 32 bits: readers load until the tags are right, of twice the bytes.
    Tagged,
}

impl Exchange {
    /// All ways.
    pub const ALL: [Exchange; 2] = [Exchange::Counted, Exchange::Tagged];
}

/// The free choices of tiles; the rest follows from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Configuration {
    /// Steps between two exchanges.
    pub depth: usize,
    /// Warps of a block.
    pub warps: usize,
    /// Planes of a warp.
    pub planes: usize,
    /// Planes of a warp that stay in registers.
    pub planes_registers: usize,
    /// Cells of a plane that a thread owns.
    pub cells_per_thread: [usize; 2],
    /// Blocks resident on one multiprocessor.
    pub blocks_per_multiprocessor: usize,
    /// How tiles exchange cells. Tiles that exchange none count as counted.
    pub exchange: Exchange,
}

/// Tiles that blocks own for the whole run. Triples are (swept, slower, faster) axis, pairs the first two or,
/// per thread, the last two.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Resident {
    /// Steps between two exchanges.
    pub depth: usize,
    /// Warps of a block.
    pub warps: usize,
    /// Whether warps stand one behind another along the swept axis, and not along the slower axis of a plane.
    pub stacked: bool,
    /// Planes of a warp.
    pub planes: usize,
    /// The planes of those that stay in registers; the others stay in shared memory.
    pub planes_registers: usize,
    /// Cells of a plane that a thread owns.
    pub cells_per_thread: [usize; 2],
    /// Tiles of the domain.
    pub tiles: [usize; 3],
    /// Cells of a tile.
    pub tile: [usize; 3],
    /// Cells that go wrong between two exchanges at a side of a tile where the domain goes on.
    pub margin: [usize; 3],
    /// Lines beyond a tile that it reads.
    pub ring: [usize; 2],
    /// Copies in shared memory of the lines that other warps read: two by turns, or one, which costs a barrier.
    pub halves: usize,
    /// Blocks resident on one multiprocessor.
    pub blocks_per_multiprocessor: usize,
    /// How tiles exchange cells.
    pub exchange: Exchange,
    /// Bytes of dynamic shared memory of a block.
    pub shared_bytes: usize,
    /// Registers that a thread may use.
    pub registers: usize,
}

impl Resident {
    /// Returns the threads of a block.
    pub fn threads_per_block(&self) -> usize {
        32 * self.warps
    }

    /// Returns the blocks of a launch: one for each tile.
    pub fn blocks(&self) -> usize {
        self.tiles.iter().product()
    }

    /// Returns whether tiles read cells of each other, or a tile those of its own far end.
    pub fn exchanges(&self) -> bool {
        self.blocks() > 1 || self.margin != [0; 3]
    }

    /// Returns the exchanges of a launch of so many steps: all passes but the last end with one.
    pub fn exchanges_in(&self, steps: u64) -> u64 {
        if self.exchanges() { steps.saturating_sub(1) / self.depth as u64 } else { 0 }
    }

    /// Returns the share of the computed cells that are the domain's and computed once.
    pub fn valid(&self, cells: usize) -> f64 {
        cells as f64 / (self.blocks() * self.tile.iter().product::<usize>()) as f64
    }

    /// Returns the free choices of the tiles.
    pub fn configuration(&self) -> Configuration {
        Configuration {
            depth: self.depth,
            warps: self.warps,
            planes: self.planes,
            planes_registers: self.planes_registers,
            cells_per_thread: self.cells_per_thread,
            blocks_per_multiprocessor: self.blocks_per_multiprocessor,
            exchange: self.exchange,
        }
    }
}

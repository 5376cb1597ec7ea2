//! The persistent schedule: the time loop is in the kernel, and a block keeps its tile on the chip for the
//! whole run (PERKS, Zhang et al., ICS'23). It sweeps the tile plane by plane.
//!
//! The swept axis is the slowest that the domain has (y of a plane, z of a cube); a *plane* is what lies
//! across it. Each tile's first planes live in registers, the next in shared memory, the rest in device
//! memory, and all are updated in place. A window of the planes around the computed one slides along in
//! registers, and cells of other threads are exchanged through a ring in shared memory. In every step the rim
//! of each tile is published in device memory for its neighbours.

mod description;

use serde::{Deserialize, Serialize};

use super::stepwise::staged_fields;
use crate::domain::Axes;
use crate::program::{Problem, Stage};

/// The free choices of a sweep; the rest follows from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Configuration {
    /// Threads of a block, along the slower and the faster axis of a plane.
    pub threads: [usize; 2],
    /// Cells of a plane that a thread owns.
    pub cells_per_thread: [usize; 2],
    /// Blocks resident on one multiprocessor.
    pub blocks_per_multiprocessor: usize,
    /// Planes between two barriers of a block.
    pub chunk: usize,
}

/// The blocks for which a block waits between stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Synchronisation {
    /// Each block waits for the blocks whose tiles touch its own.
    Neighbours,
    /// All blocks wait for all.
    Grid,
}

/// Tiles that blocks own for the whole run. Pairs are (slower, faster) axis of a plane, triples (swept,
/// slower, faster).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Persistent {
    /// Threads of a block.
    pub threads: [usize; 2],
    /// Cells of a plane that a thread owns.
    pub cells_per_thread: [usize; 2],
    /// Tiles of the domain.
    pub tiles: [usize; 3],
    /// The fewest and the most planes of a tile; the two differ by one at most.
    pub planes: [usize; 2],
    /// Planes in registers: the first of each block's first tile.
    pub planes_registers: usize,
    /// Planes in shared memory: those after the planes in registers.
    pub planes_shared: usize,
    /// Planes that arrive and are computed between two barriers of the block.
    pub chunk: usize,
    /// Chunks whose lateral halo is prefetched at once.
    pub halo_ahead: usize,
    /// Blocks launched: one for each tile, or as many as can be resident.
    pub blocks: usize,
    /// Blocks resident on one multiprocessor.
    pub blocks_per_multiprocessor: usize,
    /// How blocks wait for each other.
    pub synchronisation: Synchronisation,
    /// Bytes of dynamic shared memory of a block.
    pub shared_bytes: usize,
    /// Registers that a thread may use.
    pub registers: usize,
}

impl Persistent {
    /// Returns the cells of a tile's plane along its two axes.
    pub fn plane(&self) -> [usize; 2] {
        [self.threads[0] * self.cells_per_thread[0], self.threads[1] * self.cells_per_thread[1]]
    }

    /// Returns the threads of a block.
    pub fn threads_per_block(&self) -> usize {
        self.threads[0] * self.threads[1]
    }

    /// Returns the number of tiles of the domain.
    pub fn tile_count(&self) -> usize {
        self.tiles.iter().product()
    }

    /// Returns the free choices of the sweep.
    pub fn configuration(&self) -> Configuration {
        Configuration {
            threads: self.threads,
            cells_per_thread: self.cells_per_thread,
            blocks_per_multiprocessor: self.blocks_per_multiprocessor,
            chunk: self.chunk,
        }
    }

    /// Returns the bytes of the ring through which threads exchange cells: two halves of `chunk` planes with
    /// their lateral halo.
    pub fn ring_bytes(&self, problem: &Problem) -> usize {
        ring_bytes(problem, self.plane(), self.chunk)
    }

    /// Returns the cells of the domain that stay in registers, and those in shared memory.
    pub fn cached_cells(&self, problem: &Problem) -> [usize; 2] {
        let extents = Axes::of(problem.shape.dimensions()).order(problem.shape.padded());
        let plane = self.plane();
        let mut cells = [0; 2];
        for tile in 0..self.blocks.min(self.tile_count()) {
            let at = [
                tile / (self.tiles[1] * self.tiles[2]),
                tile / self.tiles[2] % self.tiles[1],
                tile % self.tiles[2],
            ];
            let planes = self.planes_of(at[0], extents[0]);
            let side =
                |axis: usize| extents[axis].saturating_sub(at[axis] * plane[axis - 1]).min(plane[axis - 1]);
            let area = side(1) * side(2);
            let registers = self.planes_registers.min(planes);
            cells[0] += area * registers;
            cells[1] += area * self.planes_shared.min(planes - registers);
        }
        cells
    }

    /// Returns the planes of the tiles in row `row` of the swept axis, whose extent is `extent`. The first
    /// rows have one plane more.
    pub fn planes_of(&self, row: usize, extent: usize) -> usize {
        extent / self.tiles[0] + usize::from(row < extent % self.tiles[0])
    }
}

pub(super) fn ring_bytes(problem: &Problem, plane: [usize; 2], chunk: usize) -> usize {
    let axes = Axes::of(problem.shape.dimensions());
    let stage = |stage: &Stage| {
        let [_, ry, rx] = axes.order(stage.footprint.radius);
        staged_fields(stage).len() * (plane[0] + 2 * ry) * (plane[1] + 2 * padding(rx, problem))
    };
    let cells = problem.program.stages().iter().map(stage).max().unwrap_or(0);
    2 * chunk * cells * problem.dtype.bytes()
}

/// Returns the cells before a row of the ring: the radius, rounded up so that the row's first own cell is
/// aligned to 16 bytes.
fn padding(radius: usize, problem: &Problem) -> usize {
    radius.next_multiple_of(16 / problem.dtype.bytes())
}

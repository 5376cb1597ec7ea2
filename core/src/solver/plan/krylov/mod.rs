//! Plans of persistent solvers on CUDA devices: who owns which rows, where vectors and matrix stay, and how
//! blocks wait for each other.
//!
//! A block owns consecutive rows for the whole solve. Systems that fit go to one block or to one thread-block
//! cluster, where waiting is cheap and every block holds the whole exchanged vector in shared memory. Other
//! systems go to all multiprocessors, where the exchanged vector passes through the last-level cache. Vectors
//! and matrix fill shared memory and registers in the order of the traffic that they save (PERKS, ICS'23,
//! section 4.3: vectors are touched more often than the matrix).

mod basis;
mod explain;
mod slabs;
pub mod sums;
mod vectors;

use std::ops::Range;

use serde::Serialize;

use super::{SolvePlan, SolveSchedule};
use crate::real::DType;
use crate::solver::options::{Method, Preconditioning, SolveOptions};

pub use basis::{REDUCED, SUMMED, group, products};
pub use explain::residents;
pub use slabs::{Given, Slabs, rows_of};
pub use sums::Sums;
pub use vectors::{VECTOR_NAMES, Vector, is_pointwise};

/// Rows of a slice, and lanes of a warp.
pub const SLICE: usize = 32;

/// The most blocks of a thread-block cluster (more than 8 are not portable, but sm_90 has them).
pub const CLUSTER: usize = 16;

/// The most rows that are spread over all blocks.
pub const SPREAD_ROWS: usize = 128;

/// The most entries of a slice's row that a thread has under way at once.
pub const UNDER_WAY: usize = 9;

/// The blocks that work on a system, and so how they wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Space {
    /// One block.
    Block,
    /// The blocks of one cluster.
    Cluster,
    /// A block on every multiprocessor.
    Grid,
}

/// The way in which a block divides the product of its rows among its threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Division {
    /// A thread per row; the entries of 32 rows lie side by side, and the rows of a slice are padded to one
    /// length.
    Sliced {
        /// Entries of every row, if all slices have the same length.
        width: Option<usize>,
    },
    /// Neighbouring lanes per row: 1, 2, 4 … 32.
    Split {
        /// The lanes per row.
        lanes: usize,
    },
    /// A merge path: every thread has the same number of rows plus entries, whatever the rows' lengths.
    Merged {
        /// Rows and entries per thread and turn; odd.
        items: usize,
    },
    /// A thread per cell of a stencil.
    Stencil,
}

/// The place where a vector of the method stays from iteration to iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Home {
    /// Device memory, through the last-level cache.
    Device,
    /// Shared memory.
    Shared,
    /// Registers of the thread that owns the rows.
    Registers,
}

/// Whose directions of conjugate gradients are made by those who read them, of residuals that go with the sums: nobody waits for
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RecomputedHalo {
    /// Nobody's: directions are exchanged.
    Nothing,
    /// Those of other slabs; the blocks of a slab exchange theirs.
    Slabs,
    /// Those of all other blocks.
    Blocks,
}

/// The rows of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// The first row.
    pub first: usize,
    /// The number of rows.
    pub rows: usize,
    /// Entries as laid out, padding included.
    pub entries: usize,
    /// The number of first rows whose entries stay in shared memory.
    pub cached: usize,
    /// Entries of the cached rows.
    pub cached_entries: usize,
    /// The first row that the block reads, from which its columns are counted.
    pub base: usize,
    /// Rows from that one to the last that the block reads, its own among them; 0 where no other block is asked.
    pub reach: usize,
    /// Entries of spread rows in the columns of the block's rows.
    pub spread_entries: usize,
    /// Other blocks read none of its rows from the first number up to the second; the first is the number of rows where
    /// they may read all.
    pub seams: [usize; 2],
}

impl Share {
    /// Returns the share of some rows, of which nothing else is known.
    pub fn of(rows: Range<usize>) -> Share {
        let (first, rows) = (rows.start, rows.len());
        let seams = [rows; 2];
        Share {
            first,
            rows,
            entries: 0,
            cached: 0,
            cached_entries: 0,
            base: 0,
            reach: 0,
            spread_entries: 0,
            seams,
        }
    }

    /// Returns the entries that do not stay in shared memory.
    pub fn streamed(&self) -> usize {
        self.entries - self.cached_entries + self.spread_entries
    }

    /// Returns the rows that other blocks may read.
    pub fn published(&self) -> usize {
        let [before, from] = self.seams;
        if before < from { self.rows - (from - before) } else { self.rows }
    }

    /// Returns all entries that the block multiplies.
    pub fn work(&self) -> usize {
        self.entries + self.spread_entries
    }
}

/// The free choices of a layout; the planner tries several configurations and keeps the one with the least
/// estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Configuration {
    /// The blocks that work on the system.
    pub space: Space,
    /// The number of blocks.
    pub blocks: usize,
    /// Threads per block, a multiple of 32 from 128 on.
    pub threads: usize,
    /// The division of the product.
    pub division: Division,
    /// The most vectors in registers.
    pub registers: usize,
    /// The most rows of 32 that a warp sums at a time.
    pub run: usize,
    /// Whether waiting blocks prefetch what the next product streams.
    pub ahead: bool,
    /// Entries beyond which a row is spread over all blocks of a grid; `None` spreads no row.
    pub spread: Option<usize>,
    /// The slabs that the blocks of a grid are divided among.
    pub slabs: Slabs,
}

/// The offset in bytes at which each part of a block's shared memory begins.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Regions {
    /// Sums of runs: of the block's own on the grid, where those of groups of windows follow them; else of all.
    pub scratch: usize,
    /// Sums over all rows.
    pub totals: usize,
    /// Numbers derived from the sums.
    pub derived: usize,
    /// Whether a wait has been given up.
    pub lost: usize,
    /// GMRES's least-squares problem.
    pub triangle: usize,
    /// Sums of runs of many dot products.
    pub parts: usize,
    /// Sums of all runs of a cluster, of many dot products.
    pub projected: usize,
    /// The whole exchanged vector.
    pub replica: usize,
    /// Vectors, by [`Vector`]; 0 for those in other places.
    pub vectors: Vec<usize>,
    /// Sums of warps over pieces of spread rows; later those rows' sums.
    pub pieces: usize,
    /// The first entry of each of the block's pieces.
    pub piece_offsets: usize,
    /// Row or slice offsets.
    pub offsets: usize,
    /// Products of a merge tile.
    pub tile: usize,
    /// Open sums of the merge tile's warps.
    pub carries: usize,
    /// Whether rows ended in the merge tile's warps.
    pub closed: usize,
    /// Values of the matrix.
    pub values: usize,
    /// Columns of the matrix.
    pub columns: usize,
    /// Bytes in all.
    pub total: usize,
}

/// The layout of a persistent solve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Krylov {
    /// The blocks that work on the system.
    pub space: Space,
    /// The number of blocks.
    pub blocks: usize,
    /// Threads per block.
    pub threads: usize,
    /// The most rows of a thread.
    pub rows_per_thread: usize,
    /// The division of the product.
    pub division: Division,
    /// Bytes per column number: 2 if all columns of a block are close enough to each other.
    pub column_bytes: usize,
    /// The vectors of the method and their places, in the kernel's order.
    pub vectors: Vec<(Vector, Home)>,
    /// The rows of each block.
    #[serde(skip)]
    pub shares: Vec<Share>,
    /// Entries beyond which a row is spread over all blocks; `None` spreads no row.
    pub spread: Option<usize>,
    /// The rows that are spread, ascending.
    pub spread_rows: Vec<usize>,
    /// How rows are joined to sums.
    pub sums: Sums,
    /// Buffers of the exchanged vector, used by turns: 2 if the next vector is published before all blocks
    /// have met again.
    pub turns: usize,
    /// Whose directions are made by those who read them.
    pub recomputed: RecomputedHalo,
    /// Entries that a block fetches into the last-level cache while it waits, of those that the next product streams.
    pub ahead: usize,
    /// The most iterations of GMRES's cycle, and the vectors of its basis; 0 for other methods.
    pub restart: usize,
    /// Whether row offsets stay in shared memory.
    pub offsets_kept: bool,
    /// Whether the streamed part of the matrix exceeds the last-level cache, and should not displace the
    /// vectors there.
    pub evict_first: bool,
    /// The parts of shared memory.
    pub regions: Regions,
    /// Barriers per iteration.
    pub barriers: usize,
    /// Seconds per iteration by the planner's model.
    pub seconds: f64,
    /// The most vectors in registers that were asked for.
    pub registers: usize,
    /// The most rows of 32 that a warp was allowed to sum at a time.
    pub run: usize,
    /// The slabs that the blocks are divided among.
    pub slabs: Slabs,
    /// For each block and each slab but its own, the rows that the slab reads; empty for one slab.
    #[serde(skip)]
    pub given: Vec<Given>,
    /// For each slab, the rows of others that it reads, with those between: before its own and behind them; empty for one
    /// slab.
    #[serde(skip)]
    pub beyond: Vec<[Range<usize>; 2]>,
}

impl Krylov {
    /// Returns the free choices from which this layout was made.
    pub fn configuration(&self) -> Configuration {
        let Krylov { space, blocks, threads, division, registers, run, spread, slabs, .. } = *self;
        // The width follows from the matrix again.
        let division =
            if let Division::Sliced { .. } = division { Division::Sliced { width: None } } else { division };
        let ahead = self.ahead > 0;
        Configuration { space, blocks, threads, division, registers, run, ahead, spread, slabs }
    }

    /// Returns whether loops over a thread's rows are unrolled, as rows in registers demand.
    pub fn is_unrolled(&self) -> bool {
        self.vectors.iter().any(|(_, home)| *home == Home::Registers)
    }

    /// Returns the number of vectors in device memory through which blocks of a grid exchange others.
    pub fn exchanged(&self) -> usize {
        match self.space {
            Space::Grid => self.turns + usize::from(self.recomputed == RecomputedHalo::Slabs),
            Space::Block | Space::Cluster => 0,
        }
    }

    /// Returns the rows of the share with the most rows.
    pub fn most_rows(&self) -> usize {
        self.shares.iter().map(|share| share.rows).max().unwrap_or(0)
    }

    /// Returns the rows of the longest reach: what a block reads of the exchanged vector, its own part among it.
    pub fn longest_reach(&self) -> usize {
        self.shares.iter().map(|share| share.reach).max().unwrap_or(0)
    }

    /// Returns the most entries of spread rows that a block has.
    pub fn most_spread_entries(&self) -> usize {
        self.shares.iter().map(|share| share.spread_entries).max().unwrap_or(0)
    }

    /// Returns the work of the heaviest share over that of the mean share: 1 if all blocks have as much to
    /// do.
    pub fn imbalance(&self) -> f64 {
        let most = self.shares.iter().map(Share::work).max().unwrap_or(0) as f64;
        let all = self.shares.iter().map(Share::work).sum::<usize>() as f64;
        if all > 0.0 { most * self.shares.len() as f64 / all } else { 1.0 }
    }
}

/// Returns the preconditioner that the kernel applies: Jacobi's method without one divides by the diagonal.
pub fn applied(options: &SolveOptions) -> Preconditioning {
    match (options.method, options.preconditioner) {
        (Method::Jacobi(_), Preconditioning::None) => Preconditioning::Jacobi,
        (_, preconditioner) => preconditioner,
    }
}

impl SolvePlan {
    /// Returns the layout of a persistent solve; `None` if the plan is another.
    pub fn krylov(&self) -> Option<&Krylov> {
        match &self.schedule {
            SolveSchedule::Krylov(krylov) => Some(krylov),
            _ => None,
        }
    }
}

/// Returns the bytes of an entry: value and column.
pub fn entry_bytes(dtype: DType, column_bytes: usize) -> usize {
    dtype.bytes() + column_bytes
}

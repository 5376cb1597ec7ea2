//! The bytes that an iteration moves, and its time by a simple model: the slowest of shared memory,
//! last-level cache and device memory, and the waits.

use abide_core::DeviceSpec;
use abide_core::solver::plan::krylov::{
    Configuration, Division, Home, Krylov, RecomputedHalo, SLICE, Share, Space, UNDER_WAY, Vector, applied,
    entry_bytes,
};
use abide_core::solver::{Matrix, SolveOptions, SolveTraffic};

use super::slabs::across;
use super::vectors;

/// Accesses to each value of a vector per iteration, about.
const TOUCHES: f64 = 3.0;

/// Seconds that a reduction takes besides its barrier: three barriers of a block, ten shuffles, and reading
/// the other blocks' sums, either from shared memory or from the last-level cache.
const REDUCTION: [f64; 2] = [0.15e-6, 0.45e-6];

/// Seconds of a barrier of a block's threads, and of a cluster (measured on an H200).
const BLOCK_BARRIER: f64 = 0.04e-6;

const CLUSTER_BARRIER: f64 = 0.25e-6;

/// Clocks of a chain of two loads, column and then gathered value: both from shared memory, the gathered
/// value from afar, or both from afar.
const CHAIN: [f64; 3] = [60.0, 330.0, 700.0];

/// Clocks per entry in a chain: loads are issued side by side, sums follow one another.
const ENTRY: f64 = 8.0;

/// Clocks in which a warp sums its lanes and the block meets.
const PIECE: f64 = 200.0;

/// Seconds that all blocks wait while memory serves their prefetches (on an H200, half and twice this value gain
/// less).
const WAIT: f64 = 1.5e-6;

/// Entries of whole lines of the last-level cache, of values and of columns.
const LINES: usize = 64;

/// Clocks of a rotation of GMRES's column; rotations follow one another.
const ROTATION: f64 = 20.0;

/// Bytes that leave the multiprocessors in an iteration: both those that the last-level cache can keep and
/// those that it cannot.
struct Beyond {
    matrix: f64,
    vectors: f64,
    /// Bytes of GMRES's basis that an iteration reads and writes, and of the whole basis.
    basis: [f64; 2],
}

fn beyond(matrix: &Matrix, options: &SolveOptions, krylov: &Krylov) -> Beyond {
    let real = matrix.dtype().bytes();
    let products = (options.method.products() * (1 + applied(options).products())) as f64;
    let streamed: usize = krylov.shares.iter().map(Share::streamed).sum();
    let is_homeless = |(vector, home): &&(Vector, Home)| {
        *home == Home::Device && !vectors::is_seldom(options.method, *vector)
    };
    let homeless = krylov.vectors.iter().filter(is_homeless).count();
    let vector = (matrix.rows() * real) as f64;
    let published: usize = krylov.shares.iter().map(Share::published).sum();
    Beyond {
        matrix: products * (streamed * entry_bytes(matrix.dtype(), krylov.column_bytes)) as f64,
        vectors: homeless as f64 * vector + (krylov.exchanged() * published * real) as f64,
        basis: [krylov.consulted() * vector, krylov.basis() as f64 * vector],
    }
}

/// Returns the bytes between memory and the chip. Data that fit in the last-level cache are not moved. If not
/// all of them fit there, the matrix is streamed past the vectors.
pub fn traffic(
    matrix: &Matrix,
    device: &DeviceSpec,
    options: &SolveOptions,
    krylov: &Krylov,
) -> SolveTraffic {
    let Beyond { matrix: streamed, vectors, basis: [consulted, basis] } = beyond(matrix, options, krylov);
    // A fifth of the cache is left to other data that pass through it.
    let slabs = krylov.slabs.count;
    let room = 0.8 * (slabs * device.l2_bytes) as f64;
    let moved = if streamed + vectors + basis <= room {
        0.0
    } else if vectors + basis <= room {
        streamed
    } else if vectors <= room {
        streamed + consulted
    } else {
        streamed + 2.0 * vectors + consulted
    };
    SolveTraffic::new(matrix, options, moved, slabs * (device.on_chip_bytes() + device.l2_bytes))
}

/// Returns the entries that a block prefetches while it waits: as many as memory can deliver in that time.
pub fn ahead(device: &DeviceSpec, configuration: &Configuration, entry: usize) -> usize {
    let blocks = (configuration.blocks / configuration.slabs.count).max(1) as f64;
    let bytes = device.memory_bandwidth * WAIT / blocks;
    bytes as usize / entry / LINES * LINES
}

/// Returns the seconds per iteration.
pub fn seconds(matrix: &Matrix, device: &DeviceSpec, options: &SolveOptions, krylov: &Krylov) -> f64 {
    let real = matrix.dtype().bytes() as f64;
    let entry = entry_bytes(matrix.dtype(), krylov.column_bytes) as f64;
    let products = (options.method.products() * (1 + applied(options).products())) as f64;
    let multiprocessors = device.multiprocessors.max(1) as f64;
    let clock = device.shared_bandwidth / (128.0 * multiprocessors);
    let blocks = krylov.blocks as f64;
    let most_rows = krylov.most_rows() as f64;
    let entries = match krylov.division {
        Division::Stencil => matrix.nonzeros() as f64 / blocks,
        _ => krylov.shares.iter().map(|share| share.entries).max().unwrap_or(0) as f64,
    };
    let cached = krylov.shares.iter().map(|share| share.cached_entries).max().unwrap_or(0) as f64;
    let near = krylov.vectors.iter().filter(|(_, home)| *home == Home::Shared).count() as f64;
    // Gathers hit shared memory or the first-level cache, which is the same memory.
    let pieces = krylov.most_spread_entries() as f64;
    let shared = products * (cached * entry + (entries + pieces) * real) + TOUCHES * near * most_rows * real;
    let shared = shared / (128.0 * clock);
    let Beyond { matrix: streamed, vectors: homeless, basis: [consulted, _] } =
        beyond(matrix, options, krylov);
    // Each line of a gathered vector comes once or twice, by the first-level cache; lines of the block's own
    // part do not come if that part is in shared memory.
    let is_near = |(vector, home): &(Vector, Home)| {
        Some(*vector) == vectors::exchanged(options.method) && *home == Home::Shared
    };
    let lines = if krylov.vectors.iter().any(is_near) { 1.0 } else { 2.0 };
    let gathered = if krylov.recomputed == RecomputedHalo::Blocks {
        // Once, of rows of others, whatever the entries.
        (krylov.longest_reach() as f64 - most_rows).max(0.0) * blocks * real
    } else if krylov.space == Space::Grid {
        products * entries.min(lines * most_rows) * blocks * real
    } else {
        0.0
    };
    // A multiprocessor takes at most 64 bytes per clock from the last-level cache.
    let through = streamed * krylov.imbalance() + TOUCHES * homeless + consulted + gathered;
    let slabs = krylov.slabs.count as f64;
    let cache = through / (slabs * device.l2_bandwidth).min(blocks * 64.0 * clock);
    let memory = traffic(matrix, device, options, krylov).moved / (slabs * device.memory_bandwidth);
    let turns = (most_rows / krylov.threads as f64).ceil();
    let orthogonal =
        krylov.passes(matrix.dtype().bytes()) * turns * CHAIN[1] + krylov.restart as f64 / 2.0 * ROTATION;
    let product = chains(krylov, entries, cached >= entries) + spread_chains(krylov);
    let latency = (products * product + orthogonal) / clock;
    let (barrier, reduction) = match krylov.space {
        Space::Block => (BLOCK_BARRIER, REDUCTION[0]),
        Space::Cluster => (CLUSTER_BARRIER, REDUCTION[0]),
        Space::Grid => (device.barrier_seconds, REDUCTION[1]),
    };
    let across = across(krylov, device, products, matrix.dtype().bytes());
    shared.max(cache).max(memory) + latency + krylov.barriers as f64 * (barrier + reduction) + across
}

/// Returns the clocks of a thread's loads that wait for each other in one product.
fn chains(krylov: &Krylov, entries: f64, is_cached: bool) -> f64 {
    let (rows, threads) = (krylov.most_rows().max(1) as f64, krylov.threads as f64);
    let mean = (entries / rows).ceil();
    let (lanes, at_once, folds) = match krylov.division {
        Division::Sliced { width: Some(width) } => (1.0, width.min(UNDER_WAY) as f64, 0.0),
        Division::Sliced { width: None } => (1.0, 4.0, 0.0),
        // There is a shuffle per halving, and a barrier before the owners read the sums.
        Division::Split { lanes } => (lanes as f64, 4.0, 30.0 * (lanes as f64).log2() + 40.0),
        // There are two scans and three barriers per tile.
        Division::Merged { items } => {
            let tiles = ((rows + entries) / (threads * items as f64)).ceil();
            return tiles * (CHAIN[1] + 500.0 + 2.0 * ENTRY * items as f64);
        }
        Division::Stencil => (1.0, mean, 0.0),
    };
    let is_near = krylov.recomputed == RecomputedHalo::Blocks && krylov.division != Division::Stencil;
    let chain = match krylov.space {
        Space::Grid if is_near && is_cached => CHAIN[0],
        Space::Grid if is_near || is_cached => CHAIN[1],
        Space::Grid => CHAIN[2],
        Space::Block | Space::Cluster => CHAIN[0],
    };
    let trips = (mean / lanes / at_once).ceil() * (rows * lanes / threads).ceil();
    trips * (chain + ENTRY * at_once.min(mean)) + folds
}

/// Returns the clocks that the pieces of spread rows add to a product: each warp's loads of its part of the
/// pieces, its shuffles and the barriers of the block; then the owner's loads of all pieces.
fn spread_chains(krylov: &Krylov) -> f64 {
    if krylov.spread_rows.is_empty() {
        return 0.0;
    }
    let (rows, warps) = (krylov.spread_rows.len(), (krylov.threads / SLICE).max(1));
    // A warp takes its rows one after the other, or several warps share a row.
    let turns = rows.div_ceil(warps) as f64;
    let trips = (krylov.most_spread_entries() as f64 / (4.0 * krylov.threads as f64)).max(turns).ceil();
    trips * (CHAIN[2] + 4.0 * ENTRY) + turns * PIECE + CHAIN[1] + 2.0 * PIECE
}

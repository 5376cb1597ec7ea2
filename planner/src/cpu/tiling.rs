//! The choice of a CPU's tiles and depth, by a model of its caches.

use abide_core::plan::traffic::Traffic;
use abide_core::plan::{Cpu, Levels, Schedule, Tiling, across};
use abide_core::{Depth, DeviceSpec, Error, Execution, Plan, Problem, Result};

use super::CHUNK;
use crate::base::base;
use abide_core::domain::Boundary;

/// The most steps of a pass on a CPU.
pub const MAX_CPU_DEPTH: u32 = 256;

/// Depths to choose from. Deeper passes gain little, because memory is no longer what limits them.
const DEPTHS: [u32; 11] = [1, 2, 3, 4, 6, 8, 10, 12, 16, 24, 32];

/// Cells of a tile's row to choose from; the whole row is a choice too.
const WIDTHS: [usize; 6] = [256, 512, 1024, 2048, 4096, 8192];

/// Rows of a tile's plane to choose from in three dimensions; the whole plane is a choice too.
const HEIGHTS: [usize; 8] = [8, 16, 24, 32, 48, 64, 128, 256];

/// Tiles along the streamed axis per thread to choose from.
const BANDS: [usize; 4] = [1, 2, 4, 8];

/// The share of a core's peak that rows in its caches reach: sums of products load a value per operation.
const EFFICIENCY: f64 = 0.35;

/// The share of a core's own cache that rings may take; the rest is for the rows that pass through.
const RING_SHARE: f64 = 0.5;

/// Seconds that rows cost beside their cells.
struct RowCosts {
    /// A row of a sweep.
    swept: f64,
    /// A row of a tile whose taps read rows in rings: at least, and in addition for each operation.
    tiled: f64,
    operation: f64,
    /// A level's turn.
    turn: f64,
}

/// Costs for a formula that is carried out step by step, each step looked up for every row.
const STEPS: RowCosts = RowCosts { swept: 36e-9, tiled: 20e-9, operation: 3.5e-9, turn: 70e-9 };

/// Costs for a formula that is one sum of taps, none of which reaches beyond an end of its row. The formula
/// is looked up once for all rows.
const SUMS: RowCosts = RowCosts { swept: 14e-9, tiled: 16e-9, operation: 0.0, turn: 20e-9 };

/// Bytes of a first-level cache that the rows beside a computed one may take, and the seconds per byte of a
/// row that does not stay there until the next row reads it too.
const FIRST_CACHE: f64 = 32768.0;

const SECOND_CACHE_SECONDS: f64 = 5e-12;

/// Planes per turn of a level to choose from.
const BLOCKS: [usize; 5] = [1, 2, 3, 4, 6];

/// The additional time of a cell whose rings spill from a core's own cache, for each stage of a step, as a share of its time
/// through memory. It is less than 1 as long as the spilled planes go to a cache that is closer than memory, of which a thread
/// has its share.
const SPILL_SHARE: f64 = 0.3;

/// Seconds from one pass to the next if all threads meet.
const MEETING_SECONDS: f64 = 10e-6;

/// Bytes of a core's private cache, if the device does not report them.
const OWN_CACHE: usize = 1 << 20;

/// The quantities from which the estimates are made.
struct Model<'p> {
    problem: &'p Problem,
    threads: f64,
    /// Seconds that a core computes for a cell and step.
    compute: f64,
    /// Seconds that a cell's bytes take through memory in a step-by-step run, at one thread's share of the
    /// bandwidth.
    memory: f64,
    /// Bytes of all fields of a cell, and of those that change.
    cell_bytes: [f64; 2],
    /// Operations per cell and stage.
    operations: f64,
    /// Costs of rows beside their cells.
    row: RowCosts,
    /// Rows that taps reach on either side.
    reach: f64,
    /// Bytes of the cache that a core has to itself, and of a thread's share of the cache that all have.
    own_cache: f64,
    shared_cache: f64,
    /// The stages of a step.
    stages: f64,
    /// Whether both arrays of all fields fit in the private caches of all cores combined.
    is_cached: bool,
    /// Computed cells along each axis.
    cells: [usize; 3],
    periodic: [bool; 3],
}

impl<'p> Model<'p> {
    fn new(problem: &'p Problem, device: &DeviceSpec) -> Model<'p> {
        let threads = device.multiprocessors.max(1) as f64;
        let traffic = Traffic::uncached(problem, device);
        let (extents, radius) = (problem.shape.padded(), problem.program.radius());
        let own_cache = device.caches.and_then(|caches| caches.level2_bytes).unwrap_or(OWN_CACHE) as f64;
        // A line that is written is read first.
        let bytes = traffic.load_bytes + 2.0 * traffic.store_bytes;
        // The domain as a whole may stay in the cores' own caches, which are several times as fast as the
        // cache that all cores share.
        let all = traffic.cells * (traffic.cell_bytes + traffic.changing_bytes);
        let is_cached = all <= 1.25 * threads * own_cache;
        let closer = if is_cached { 4.0 } else { 1.0 };
        let rate = |rate: f64| if rate > 0.0 { rate } else { f64::INFINITY };
        Model {
            problem,
            threads,
            compute: threads * traffic.flops.max(2.0) / rate(EFFICIENCY * traffic.flops_per_second),
            memory: threads * bytes / rate(closer * device.memory_bandwidth),
            cell_bytes: [traffic.cell_bytes, traffic.changing_bytes],
            operations: traffic.flops / problem.program.stages().len().max(1) as f64,
            row: if sums_alone(problem) { SUMS } else { STEPS },
            reach: radius[1] as f64,
            own_cache,
            shared_cache: (device.l2_bytes as f64 / threads).max(own_cache),
            stages: problem.program.stages().len() as f64 / problem.program.cycle().max(1) as f64,
            is_cached,
            cells: std::array::from_fn(|axis| {
                problem.boundaries.computed(axis, extents[axis], radius[axis]).len()
            }),
            periodic: problem.boundaries.0.map(|sides| sides[0] == Boundary::Periodic),
        }
    }

    fn total(&self) -> f64 {
        self.cells.iter().map(|&cells| cells as f64).product()
    }

    /// Returns the tiling with these tile counts, and its estimate in seconds per step.
    fn tiling(&self, levels: &Levels, tiles: [usize; 3]) -> (Tiling, f64) {
        let tile: [usize; 3] = std::array::from_fn(|axis| self.cells[axis].div_ceil(tiles[axis].max(1)));
        let open =
            std::array::from_fn(|axis| tiles[axis] > 1 || (self.periodic[axis] && axis == levels.stream));
        let overlap = levels.overlap(tile, open);
        let beyond = levels.beyond();
        let plane: usize =
            [across(levels.stream), 2].iter().map(|&axis| tile[axis] + 2 * beyond[axis]).product();
        let planes: usize = levels.storages.iter().sum();
        let ring_bytes = planes * plane * self.problem.dtype.bytes();
        let depth = levels.depth as f64;
        let count = tiles.iter().product::<usize>().max(1) as f64;
        let rounds = (count / self.threads).ceil() * self.threads / count;
        // Planes that do not stay in the core's own cache pass through the shared one at every level.
        let over = |cache: f64| ((ring_bytes as f64 / (RING_SHARE * cache)) - 1.0).clamp(0.0, 1.0);
        let (spilled, far) = (over(self.own_cache), over(self.shared_cache));
        let share = SPILL_SHARE + (1.0 - SPILL_SHARE) * far;
        let lines = tile[across(levels.stream)].max(1) as f64;
        let RowCosts { tiled, operation, turn, .. } = self.row;
        let turn = tiled + operation * self.operations + turn / (lines * levels.block as f64);
        let row = turn * levels.levels.len() as f64 / depth / tile[2].max(1) as f64;
        let compute = overlap * (self.compute + self.again(tile[2]) + row)
            + spilled * share * self.stages * self.memory;
        // Memory works while levels compute, but what levels load from their caches waits for the same few
        // line buffers. So the two times are added.
        let cell = compute + overlap * self.memory / depth;
        let seconds = self.total() * cell / self.threads * rounds.min(self.threads);
        let communicator = if count > 1.0 { MEETING_SECONDS / depth } else { 0.0 };
        let seconds = seconds + communicator;
        (Tiling { tiles, tile, block: levels.block, ring_bytes, overlap }, seconds)
    }

    /// Returns the seconds per cell that rows of `width` cells add because they come from the second-level
    /// cache again for each row that reads them.
    fn again(&self, width: usize) -> f64 {
        let [read, written] = self.cell_bytes;
        let beside = 2.0 * self.reach;
        let bytes = width as f64 * ((beside + 1.0) * read + written);
        (bytes / FIRST_CACHE - 1.0).clamp(0.0, 1.0) * beside * read * SECOND_CACHE_SECONDS
    }

    fn counts(&self, axis: usize, extents: &[usize]) -> Vec<usize> {
        let cells = self.cells[axis].max(1);
        let mut counts = vec![1];
        counts.extend(extents.iter().filter(|&&extent| extent < cells).map(|&extent| cells.div_ceil(extent)));
        counts.dedup();
        counts
    }

    /// Returns the best tiling for a pipeline, and its estimate in seconds per step.
    fn best(&self, levels: &Levels, execution: Execution) -> (Tiling, f64) {
        let (stream, across) = (levels.stream, across(levels.stream));
        let threads = self.threads as usize;
        let mut best: Option<(Tiling, f64)> = None;
        for x in self.counts(2, &WIDTHS) {
            for rows in self.counts(across, &HEIGHTS) {
                let bands = BANDS.iter().map(|&bands| bands * threads).chain([1]);
                for bands in bands {
                    let bands = bands.clamp(1, self.cells[stream].max(1));
                    // Threads that keep their tiles for the run need equal numbers of them.
                    let (shared, most) = (bands * rows * x, threads.min(self.cells[stream].max(1)));
                    if execution == Execution::Persistent && bands != most && shared % threads != 0 {
                        continue;
                    }
                    let mut tiles = [1; 3];
                    (tiles[stream], tiles[across], tiles[2]) = (bands, rows, x);
                    let found = self.tiling(levels, tiles);
                    if best.as_ref().is_none_or(|best| found.1 < best.1) {
                        best = Some(found);
                    }
                }
            }
        }
        best.unwrap_or_else(|| self.tiling(levels, [1; 3]))
    }
}

/// Checks whether every stage is one sum of weighted taps, each a multiplication and all but one an addition,
/// and no tap reaches beyond an end of a row.
fn sums_alone(problem: &Problem) -> bool {
    let fixed = problem.boundaries.0[2] == [Boundary::Fixed; 2];
    fixed
        && problem.program.stages().iter().all(|stage| {
            let footprint = &stage.footprint;
            footprint.linear && footprint.stores == 1 && footprint.flops + 1 == 2 * footprint.taps
        })
}

/// Returns the estimate in seconds per step of a run in which every stage sweeps the whole domain.
pub(super) fn stepwise_seconds(problem: &Problem, device: &DeviceSpec) -> f64 {
    let model = Model::new(problem, device);
    let stages = model.stages;
    let row = stages * model.row.swept / model.cells[2].max(1) as f64;
    let compute = model.compute + model.again(model.cells[2]) + row;
    model.total() * compute.max(model.memory) / model.threads + stages * MEETING_SECONDS
}

/// Plans passes of the depth asked for, or of the best depth.
pub(super) fn plan(
    problem: &Problem,
    device: &DeviceSpec,
    depth: Depth,
    execution: Execution,
) -> Result<Plan> {
    let model = Model::new(problem, device);
    let depths = match depth {
        Depth::Auto => DEPTHS.to_vec(),
        Depth::Steps(depth) if depth <= MAX_CPU_DEPTH => vec![depth],
        Depth::Steps(depth) => {
            return Err(Error::limit(
                "temporal depth",
                depth,
                MAX_CPU_DEPTH,
                "ask for a smaller --depth or auto",
            ));
        }
    };
    let mut best: Option<(u32, Tiling, f64)> = None;
    for depth in depths {
        for block in BLOCKS {
            let levels = Levels::new(problem, depth as usize, block);
            let (tiling, seconds) = model.best(&levels, execution);
            if best.as_ref().is_none_or(|best| seconds < best.2) {
                best = Some((depth, tiling, seconds));
            }
        }
    }
    let Some((depth, tiling, mut seconds)) = best else {
        return Err(Error::limit("temporal depth", 0, "1 or more", "ask for --depth auto"));
    };
    if execution == Execution::Persistent {
        // Threads that keep their tiles pay only if the tiles stay in the cores' own caches. Elsewhere a
        // thread that falls behind holds its neighbours up.
        seconds += if model.is_cached { -0.9 * MEETING_SECONDS / f64::from(depth) } else { 0.05 * seconds };
    }
    let threads = device.multiprocessors.max(1);
    let mut traffic = Traffic::uncached(problem, device);
    let passes = f64::from(depth);
    traffic.pass_steps = depth;
    traffic.load_bytes = tiling.overlap * traffic.cell_bytes / passes;
    traffic.store_bytes = traffic.changing_bytes / passes;
    traffic.overhead_seconds = MEETING_SECONDS / passes;
    let rows = Cpu { threads, pinned: false, chunk: CHUNK, fuse: true, tiling: Some(tiling) };
    let mut plan = base(problem, device, execution, Schedule::Cpu(rows), traffic);
    plan.depth = depth;
    plan.estimated_seconds = seconds;
    Ok(plan)
}

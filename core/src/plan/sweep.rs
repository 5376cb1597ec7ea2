//! The schedule of a persistent kernel: a block owns a tile for the whole run and sweeps it plane by plane.
//!
//! The swept axis is the slowest there is (y of a plane, z of a cube); a *plane* is what lies across it. Each tile's
//! first planes live in registers, the next in shared memory, the rest in device memory, and are updated in place; a
//! window of the planes around the one computed slides along in registers, and cells of other threads are exchanged
//! through a ring in shared memory. The rim of each tile is published in device memory every step for its neighbours.

use serde::Serialize;

use super::tiles::staged_fields;
use super::{CachePolicy, Execution, Options, Plan, Schedule, base, perks::Traffic, rows::check_depth};
use crate::device::DeviceSpec;
use crate::error::{Error, Result};
use crate::program::{Problem, Stage};

/// The largest radius that a persistent kernel's register window takes.
pub const MAX_SWEEP_RADIUS: usize = 12;

/// Which of the three padded axes is swept, and which two lie in a plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Axes(pub [usize; 3]);

impl Axes {
    /// The axes (swept, plane's slower, plane's faster) of a domain of `dimensions` axes. A line and a square have a
    /// plane of one row; a line is a single plane.
    pub fn of(dimensions: usize) -> Axes {
        if dimensions == 3 { Axes([0, 1, 2]) } else { Axes([1, 0, 2]) }
    }

    /// `values` of the padded axes in the order swept, slower, faster.
    pub fn order<T: Copy>(self, values: [T; 3]) -> [T; 3] {
        self.0.map(|axis| values[axis])
    }
}

/// Where a plane of a tile stays between steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// In the registers of the threads that own its cells.
    Registers,
    /// In the block's shared memory.
    Shared,
    /// In device memory.
    Memory,
}

/// How blocks wait for each other between stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Synchronisation {
    /// Each block waits for the blocks whose tiles touch its own.
    Neighbours,
    /// All blocks wait for all.
    Grid,
}

/// Tiles that blocks own for the whole run. Pairs are (slower, faster) axis of a plane, triples (swept, slower, faster).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sweep {
    /// Threads of a block.
    pub threads: [usize; 2],
    /// Cells of a plane that a thread owns.
    pub cells_per_thread: [usize; 2],
    /// Tiles of the domain.
    pub tiles: [usize; 3],
    /// The fewest and the most planes of a tile; tiles differ by one plane at most.
    pub planes: [usize; 2],
    /// Planes in registers: the first of each block's first tile.
    pub planes_registers: usize,
    /// Planes in shared memory: the next.
    pub planes_shared: usize,
    /// Planes that arrive and are computed between two barriers of the block.
    pub chunk: usize,
    /// Chunks whose lateral halo is fetched at once, ahead of its use.
    pub halo_ahead: usize,
    /// Blocks launched: one for each tile, or as many as can be resident.
    pub blocks: usize,
    /// Blocks resident on one multiprocessor.
    pub blocks_per_multiprocessor: usize,
    /// How blocks wait for each other.
    pub synchronisation: Synchronisation,
    /// Bytes of dynamic shared memory of a block.
    pub shared_bytes: usize,
    /// Registers a thread may use.
    pub registers: usize,
}

impl Sweep {
    /// Cells of a tile's plane along its two axes.
    pub fn plane(&self) -> [usize; 2] {
        [self.threads[0] * self.cells_per_thread[0], self.threads[1] * self.cells_per_thread[1]]
    }

    /// Threads of a block.
    pub fn threads_per_block(&self) -> usize {
        self.threads[0] * self.threads[1]
    }

    /// All tiles of the domain.
    pub fn tile_count(&self) -> usize {
        self.tiles.iter().product()
    }

    /// Where plane `plane` of a block's first tile stays.
    pub fn place(&self, plane: usize) -> Place {
        if plane < self.planes_registers {
            Place::Registers
        } else if plane < self.planes_registers + self.planes_shared {
            Place::Shared
        } else {
            Place::Memory
        }
    }

    /// Bytes of the ring through which threads exchange cells: two halves of `chunk` planes with their lateral halo.
    pub fn ring_bytes(&self, problem: &Problem) -> usize {
        ring_bytes(problem, self.plane(), self.chunk)
    }

    /// The same sweep with `planes` of its planes in registers; those given up go to shared memory as far as it reaches
    /// (unless `policy` is `registers`).
    fn with_planes_in_registers(
        &self,
        problem: &Problem,
        device: &DeviceSpec,
        policy: CachePolicy,
        planes: usize,
    ) -> Sweep {
        let mut sweep = self.clone();
        sweep.planes_registers = planes;
        if policy != CachePolicy::Registers {
            sweep.planes_shared = planes_shared(problem, device, &sweep);
        }
        sweep.shared_bytes = shared_bytes(problem, &sweep);
        sweep
    }

    /// Cells of the domain that stay in registers and in shared memory.
    pub fn cached_cells(&self, problem: &Problem) -> [usize; 2] {
        let extents = Axes::of(problem.shape.dimensions()).order(problem.shape.padded());
        let across = |axis: usize| (extents[axis].div_ceil(self.tiles[axis]), extents[axis]);
        let plane = self.plane();
        let mut cells = [0; 2];
        for tile in 0..self.blocks.min(self.tile_count()) {
            let at =
                [tile / (self.tiles[1] * self.tiles[2]), tile / self.tiles[2] % self.tiles[1], tile % self.tiles[2]];
            let planes = self.planes_of(at[0], across(0).1);
            let side = |axis: usize| extents[axis].saturating_sub(at[axis] * plane[axis - 1]).min(plane[axis - 1]);
            let area = side(1) * side(2);
            let registers = self.planes_registers.min(planes);
            cells[0] += area * registers;
            cells[1] += area * self.planes_shared.min(planes - registers);
        }
        cells
    }

    /// Planes of the tile in row `row` of the swept axis, whose extent is `extent`: the first rows have one more.
    pub fn planes_of(&self, row: usize, extent: usize) -> usize {
        extent / self.tiles[0] + usize::from(row < extent % self.tiles[0])
    }
}

fn ring_bytes(problem: &Problem, plane: [usize; 2], chunk: usize) -> usize {
    let axes = Axes::of(problem.shape.dimensions());
    let stage = |stage: &Stage| {
        let [_, ry, rx] = axes.order(stage.footprint.radius);
        staged_fields(stage).len() * (plane[0] + 2 * ry) * (plane[1] + 2 * padding(rx, problem))
    };
    let cells = problem.program.stages().iter().map(stage).max().unwrap_or(0);
    2 * chunk * cells * problem.dtype.bytes()
}

/// Cells before a row of the ring: the radius, rounded up so that the row's first own cell is aligned to 16 bytes.
pub(crate) fn padding(radius: usize, problem: &Problem) -> usize {
    radius.next_multiple_of(16 / problem.dtype.bytes())
}

fn shared_bytes(problem: &Problem, sweep: &Sweep) -> usize {
    let plane = sweep.plane();
    let cells = problem.program.fields().len() * sweep.planes_shared * plane[0] * plane[1];
    sweep.ring_bytes(problem) + cells * problem.dtype.bytes()
}

/// The shared memory of one of `blocks` blocks on a multiprocessor.
fn shared_limit(device: &DeviceSpec, blocks: usize) -> usize {
    device.shared_bytes_per_block.min((device.shared_bytes / blocks).saturating_sub(device.shared_bytes_reserved))
}

/// The most planes that shared memory holds beside the ring, of those not in registers.
fn planes_shared(problem: &Problem, device: &DeviceSpec, sweep: &Sweep) -> usize {
    let limit = shared_limit(device, sweep.blocks_per_multiprocessor);
    let plane = sweep.plane();
    let bytes = problem.program.fields().len() * plane[0] * plane[1] * problem.dtype.bytes();
    let room = limit.saturating_sub(sweep.ring_bytes(problem)) / bytes;
    room.min(sweep.planes[1] - sweep.planes_registers)
}

/// Registers a thread needs besides the planes it keeps: the window of the largest stage, addresses and temporaries.
fn working_registers(problem: &Problem, cells_per_thread: [usize; 2], chunk: usize) -> usize {
    let axes = Axes::of(problem.shape.dimensions());
    let words = problem.dtype.bytes() / 4;
    let own = cells_per_thread[0] * cells_per_thread[1];
    let stage = |stage: &Stage| {
        let field = |radius: &[usize; 3]| {
            let [rs, ry, rx] = axes.order(*radius);
            let extended = (cells_per_thread[0] + 2 * ry) * (cells_per_thread[1] + 2 * rx);
            let star = stage.footprint.neighbourhood != crate::footprint::Neighbourhood::Box;
            let lateral = extended - own;
            (2 * rs + chunk) * own + if star { lateral } else { (2 * rs + chunk) * lateral }
        };
        let window: usize = stage.footprint.field_radius.iter().flatten().map(field).sum();
        window + chunk * own * stage.writes.len()
    };
    let values = problem.program.stages().iter().map(stage).max().unwrap_or(0);
    36 + words * values
}

/// Plans a persistent kernel for a device with registers and shared memory to plan with: the first of [`sweep_plans`].
pub fn plan_sweep(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Plan> {
    let plans = sweep_plans(problem, device, options)?;
    plans.into_iter().next().ok_or_else(|| {
        Error::limit(
            "shared memory of a block of a persistent kernel",
            format!(
                "the exchange ring of {} fields of radius {:?}",
                problem.program.fields().len(),
                problem.program.radius()
            ),
            format!("{} bytes", device.shared_bytes_per_block),
            "use --execution stepwise",
        )
    })
}

/// All plans of persistent kernels that fit a device, the one that the model finds fastest first.
pub fn sweep_plans(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Vec<Plan>> {
    problem.check()?;
    check_depth(options.depth)?;
    if device.registers == 0 || device.multiprocessors == 0 {
        return Err(Error::Unsupported {
            backend: "wgpu",
            reason: "a persistent kernel needs a device-wide barrier, which only CUDA devices offer".to_owned(),
            change: "use --execution stepwise, or --backend cuda".to_owned(),
        });
    }
    if let Some(&far) = problem.program.radius().iter().find(|&&r| r > MAX_SWEEP_RADIUS) {
        return Err(Error::limit(
            "radius of a stencil in a persistent kernel",
            far,
            MAX_SWEEP_RADIUS,
            "use --execution stepwise",
        ));
    }
    let policy = if options.cache == CachePolicy::Auto { CachePolicy::Mixed } else { options.cache };
    // What fits on the chip whole comes first: beside it the model's estimate of a rest in device memory is too coarse.
    let mut sweeps: Vec<(bool, f64, Sweep)> = candidates(problem, device, policy)
        .map(|sweep| {
            let whole = sweep.cached_cells(problem).iter().sum::<usize>() == problem.shape.cells();
            (!whole, step_seconds(problem, device, &sweep), sweep)
        })
        .collect();
    sweeps.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    Ok(sweeps.into_iter().map(|(_, _, sweep)| plan_of(problem, device, policy, sweep)).collect())
}

/// The plan that runs a sweep.
fn plan_of(problem: &Problem, device: &DeviceSpec, policy: CachePolicy, sweep: Sweep) -> Plan {
    let traffic = traffic(problem, device, &sweep);
    let estimate = step_seconds(problem, device, &sweep);
    let mut plan = base(problem, device, Execution::Persistent, Schedule::Sweep(sweep), traffic);
    plan.cache = policy;
    plan.estimated_seconds = estimate;
    plan
}

impl Plan {
    /// The same plan with `planes` planes in registers, a multiple of the chunk, as the compiler's report of spills may
    /// ask; a plan that is not persistent stays as it is.
    pub fn with_planes_in_registers(&self, problem: &Problem, planes: usize) -> Plan {
        let Some(sweep) = self.sweep() else { return self.clone() };
        let planes = planes / sweep.chunk * sweep.chunk;
        let sweep = sweep.with_planes_in_registers(problem, &self.device, self.cache, planes);
        let mut plan = plan_of(problem, &self.device, self.cache, sweep);
        plan.notes = self.notes.clone();
        plan
    }
}

/// All sweeps of a policy that fit: threads, cells a thread and blocks a multiprocessor, each with as many planes on the
/// chip as it can hold.
fn candidates<'a>(
    problem: &'a Problem,
    device: &'a DeviceSpec,
    policy: CachePolicy,
) -> impl Iterator<Item = Sweep> + 'a {
    let three = problem.shape.dimensions() == 3;
    let rows: &[usize] = if three { &[1, 2, 3, 4, 5, 6, 8, 10, 12, 16] } else { &[1] };
    let columns: Vec<usize> =
        if three { vec![16, 32, 64, 128] } else { (32..=512).step_by(32).chain([768, 1024]).collect() };
    let vector = 16 / problem.dtype.bytes();
    let cells: &[[usize; 2]] =
        if three { &[[1, 1], [2, 1], [1, 2], [2, 2], [1, 4]] } else { &[[1, 2], [1, 4], [1, 8]] };
    // Wider than 32 bytes a thread, the window's registers leave none for planes.
    let cells = cells.iter().filter(move |c| c[1] <= 2 * vector && (c[1] < vector || c[1] % vector == 0));
    let threads = rows.iter().flat_map(move |&y| columns.clone().into_iter().map(move |x| [y, x]));
    threads
        .flat_map(move |threads| cells.clone().map(move |&cells| (threads, cells)))
        .flat_map(|(threads, cells)| [1, 2, 4, 8].map(|blocks| (threads, cells, blocks)))
        .flat_map(|(threads, cells, blocks)| [1, 2, 4].map(|chunk| (threads, cells, blocks, chunk)))
        .filter_map(move |(threads, cells, blocks, chunk)| {
            candidate(problem, device, policy, threads, cells, blocks, chunk)
        })
}

fn candidate(
    problem: &Problem,
    device: &DeviceSpec,
    policy: CachePolicy,
    threads: [usize; 2],
    cells_per_thread: [usize; 2],
    blocks_per_multiprocessor: usize,
    chunk: usize,
) -> Option<Sweep> {
    let per_block = threads[0] * threads[1];
    let resident_threads = per_block * blocks_per_multiprocessor;
    if per_block > device.threads_per_block
        || resident_threads > device.threads.min(1024)
        || resident_threads < 192
        || !per_block.is_multiple_of(device.warp)
    {
        return None;
    }
    let axes = Axes::of(problem.shape.dimensions());
    let extents = axes.order(problem.shape.padded());
    let radius = axes.order(problem.program.radius());
    let plane = [threads[0] * cells_per_thread[0], threads[1] * cells_per_thread[1]];
    let resident = device.multiprocessors * blocks_per_multiprocessor;
    let across = [extents[1].div_ceil(plane[0]), extents[2].div_ceil(plane[1])];
    // A tile must be as thick as the radius, so that only touching tiles exchange cells.
    let rows = (resident / (across[0] * across[1]).max(1)).min(extents[0] / radius[0].max(1)).clamp(1, extents[0]);
    let tiles = [rows, across[0], across[1]];
    let planes = [extents[0] / rows, extents[0].div_ceil(rows)];
    let tile_count = tiles.iter().product::<usize>();
    let registers = (device.registers / resident_threads).min(device.registers_per_thread) / 8 * 8;
    let registers = if registers >= 248 { device.registers_per_thread } else { registers };
    let own = cells_per_thread[0] * cells_per_thread[1];
    // Some eight cells a thread between barriers hide the latency of arithmetic and of the barrier itself; more only
    // take registers.
    if chunk > 1 && (chunk * own > 8 || chunk > planes[0]) {
        return None;
    }
    // Tiles at the far side of a plane may be narrower than the radius; then a neighbour's neighbour is needed too.
    let last = |axis: usize| extents[axis] - (tiles[axis] - 1) * plane[axis - 1];
    let touching = (1..3).all(|axis| tiles[axis] == 1 || last(axis) >= radius[axis]) && planes[0] >= radius[0];
    let mut sweep = Sweep {
        threads,
        cells_per_thread,
        tiles,
        planes,
        planes_registers: 0,
        planes_shared: 0,
        chunk,
        halo_ahead: 1,
        blocks: tile_count.min(resident),
        blocks_per_multiprocessor,
        synchronisation: if tile_count <= resident && touching {
            Synchronisation::Neighbours
        } else {
            Synchronisation::Grid
        },
        shared_bytes: 0,
        registers,
    };
    if sweep.ring_bytes(problem) > shared_limit(device, blocks_per_multiprocessor) {
        return None;
    }
    // As many chunks ahead as give every thread a cell of halo to fetch; measured on an H200, eight beat one by 7 %.
    let halo = 2 * radius[1] * (plane[1] + 2 * radius[2]) + 2 * radius[2] * plane[0];
    sweep.halo_ahead = (per_block / (chunk * halo).max(1)).clamp(1, 8);
    let working = working_registers(problem, cells_per_thread, chunk);
    if working > registers && resident_threads > 256 {
        return None;
    }
    let room = registers.saturating_sub(working) / (problem.program.fields().len() * own * problem.dtype.bytes() / 4);
    if matches!(policy, CachePolicy::Shared | CachePolicy::Mixed) {
        sweep.planes_shared = planes_shared(problem, device, &sweep);
    }
    if matches!(policy, CachePolicy::Registers | CachePolicy::Mixed) {
        // Only what shared memory does not hold goes to registers: they are the dearer place, for every plane there is
        // code of its own.
        let wanted = planes[0].min(planes[1] - sweep.planes_shared).next_multiple_of(chunk);
        sweep.planes_registers = wanted.min(room / chunk * chunk).min(planes[0] / chunk * chunk);
        sweep.planes_shared = sweep.planes_shared.min(planes[1] - sweep.planes_registers);
    }
    sweep.shared_bytes = shared_bytes(problem, &sweep);
    Some(sweep)
}

/// What a step moves under a sweep, for the projection.
fn traffic(problem: &Problem, device: &DeviceSpec, sweep: &Sweep) -> Traffic {
    let axes = Axes::of(problem.shape.dimensions());
    let extents = axes.order(problem.shape.padded());
    let bytes = problem.dtype.bytes() as f64;
    let mut traffic = Traffic::uncached(problem, device);
    let [registers, shared] = sweep.cached_cells(problem);
    (traffic.cached_registers, traffic.cached_shared) = (registers as f64, shared as f64);
    let plane = sweep.plane();
    let side = [sweep.planes[1], plane[0].min(extents[1]), plane[1].min(extents[2])];
    let own = (sweep.cells_per_thread[0] * sweep.cells_per_thread[1]) as f64;
    for stage in problem.program.stages() {
        for radius in stage.footprint.field_radius.iter().flatten().filter(|r| **r != [0; 3]) {
            let radius = axes.order(*radius);
            let halo = (0..3).filter(|&axis| sweep.tiles[axis] > 1).map(|axis| {
                let face: usize = (0..3).filter(|&other| other != axis).map(|other| side[other]).product();
                2 * radius[axis] * face
            });
            // Stored by one tile, loaded by another; uncached planes are counted whole already.
            traffic.halo_bytes += 2.0 * bytes * (halo.sum::<usize>() * sweep.blocks) as f64 * traffic.cached_share();
            let extended = (sweep.cells_per_thread[0] + 2 * radius[1]) * (sweep.cells_per_thread[1] + 2 * radius[2]);
            traffic.kernel_shared_bytes += bytes * (1.0 + (extended as f64 - own) / own);
        }
    }
    traffic.overhead_seconds = device.barrier_seconds * problem.program.stages().len() as f64;
    traffic
}

/// The planner's own estimate of a step, finer than the projected peak: it also counts the tail of uneven tiles, the
/// issue of instructions and the latency that few threads leave bare.
fn step_seconds(problem: &Problem, device: &DeviceSpec, sweep: &Sweep) -> f64 {
    let traffic = traffic(problem, device, sweep);
    let plane = sweep.plane();
    let rounds = sweep.tile_count().div_ceil(sweep.blocks);
    let busiest = (rounds * sweep.planes[1] * plane[0] * plane[1] * sweep.blocks_per_multiprocessor) as f64;
    let own = (sweep.cells_per_thread[0] * sweep.cells_per_thread[1]) as f64;
    let threads = (sweep.threads_per_block() * sweep.blocks_per_multiprocessor) as f64;
    // Issue slots a cell: the arithmetic and some selects and moves; a share of the row's exchange between threads; and
    // of the barrier, which a block of one warp hardly feels. Fitted to 2d5pt on an H200.
    let barrier = if sweep.threads_per_block() <= device.warp { 20.0 } else { 80.0 };
    let instructions = 10.0 + traffic.flops / 2.0 + 40.0 / own + barrier / (own * sweep.chunk as f64);
    let clocks = device.shared_bandwidth.max(1.0) / 128.0;
    let hidden = (threads / 448.0).min(1.0);
    let issue = busiest * device.multiprocessors as f64 * instructions / (128.0 * clocks) / hidden;
    let arithmetic = busiest * device.multiprocessors as f64 * traffic.flops / traffic.flops_per_second.max(1.0);
    let uncached = traffic.cells - traffic.cached();
    let streamed = uncached * (traffic.load_bytes + traffic.store_bytes);
    let in_l2 = 2.0 * uncached * traffic.changing_bytes < device.l2_bytes as f64 * 0.8;
    let bandwidth = if in_l2 { device.l2_bandwidth } else { device.memory_bandwidth };
    // Few threads keep few loads in flight: measured on an H200, planes in device memory move at half the peak.
    let memory = 2.0 * streamed / bandwidth + traffic.halo_bytes / device.l2_bandwidth;
    let shared = (2.0 * traffic.cell_bytes * traffic.cached_shared + traffic.kernel_shared_bytes * traffic.cells)
        / device.shared_bandwidth.max(1.0);
    let barrier = match sweep.synchronisation {
        Synchronisation::Neighbours => 0.8,
        Synchronisation::Grid => 1.0 + 0.1 * sweep.blocks_per_multiprocessor as f64,
    };
    issue.max(arithmetic).max(shared) + memory + barrier * traffic.overhead_seconds
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::catalogue;
    use crate::grid::Shape;
    use crate::real::DType;

    fn problem(name: &str, extents: &[usize], dtype: DType) -> Problem {
        let program = catalogue::find(name).unwrap().program(extents.len()).unwrap();
        Problem::new(Arc::new(program), Shape::new(extents).unwrap(), dtype).unwrap()
    }

    /// Table 2 of the PERKS report (paper 001): the rows marked F are domains that the device holds whole.
    #[test]
    fn the_fully_cached_domains_of_the_report_fit() {
        type Row = (&'static str, [&'static str; 4]);
        // A100 f32, V100 f32, A100 f64, V100 f64.
        let rows: [Row; 13] = [
            ("2d5pt", ["3072x2160", "2560x1536", "2304x1536", "2048x1120"]),
            ("2ds9pt", ["4608x1824", "2048x1760", "2304x1152", "1536x1280"]),
            ("2d13pt", ["4608x1440", "2560x1408", "4608x576", "2048x800"]),
            ("2d17pt", ["3072x2448", "4096x800", "2304x1440", "2560x576"]),
            ("2d21pt", ["4608x1536", "2560x1408", "3072x1008", "4096x320"]),
            ("2ds25pt", ["4608x672", "2048x1600", "4608x576", "4096x280"]),
            ("2d9pt", ["3072x2592", "2560x1664", "2304x1920", "1792x1280"]),
            ("2d25pt", ["4608x1536", "2560x1408", "4608x816", "2048x720"]),
            ("3d7pt", ["126x192x256", "68x160x256", "39x288x256", "80x128x128"]),
            ("3d13pt", ["81x288x256", "32x320x256", "33x288x256", "8x320x256"]),
            ("3d17pt", ["84x288x256", "160x64x256", "36x288x256", "32x160x256"]),
            ("3d27pt", ["81x192x256", "160x64x256", "33x288x256", "32x160x256"]),
            ("poisson", ["90x288x256", "160x64x256", "36x288x256", "32x160x256"]),
        ];
        let mut short = Vec::new();
        for (name, sizes) in rows {
            for (column, size) in sizes.iter().enumerate() {
                let (device, dtype) =
                    [("a100", DType::F32), ("v100", DType::F32), ("a100", DType::F64), ("v100", DType::F64)][column];
                let shape: Shape = size.parse().unwrap();
                let problem = problem(name, shape.extents(), dtype);
                let device = DeviceSpec::preset(device).unwrap();
                let options = Options { execution: Execution::Persistent, ..Options::default() };
                let plan = plan_sweep(&problem, &device, &options).unwrap();
                if plan.cached_share() < 1.0 || !plan.explain().contains("all of it fits") {
                    short.push(format!(
                        "{name} {size} {dtype} {}: {:.3} {:?}",
                        device.name,
                        plan.cached_share(),
                        plan.schedule
                    ));
                }
            }
        }
        assert!(short.is_empty(), "{} rows\n{}", short.len(), short.join("\n"));
    }

    #[test]
    fn every_policy_keeps_cells_where_it_says() {
        let device = DeviceSpec::preset("h200").unwrap();
        let problem = problem("2d5pt", &[2304, 2304], DType::F64);
        let plan = |cache| {
            let options = Options { execution: Execution::Persistent, cache, ..Options::default() };
            plan_sweep(&problem, &device, &options).unwrap()
        };
        let traffic = |cache| plan(cache).traffic;
        assert_eq!(traffic(CachePolicy::None).cached(), 0.0);
        let shared = traffic(CachePolicy::Shared);
        assert!(shared.cached_shared > 0.0 && shared.cached_registers == 0.0);
        let registers = traffic(CachePolicy::Registers);
        assert!(registers.cached_registers > 0.0 && registers.cached_shared == 0.0);
        let mixed = plan(CachePolicy::Mixed);
        assert_eq!(mixed.cached_share(), 1.0);
        assert!(mixed.traffic.cached_registers > 0.0 && mixed.traffic.cached_shared > 0.0);
        let sweep = mixed.sweep().unwrap();
        assert!(sweep.shared_bytes <= device.shared_bytes_per_block);
        assert!(sweep.blocks <= device.multiprocessors * sweep.blocks_per_multiprocessor);
    }

    #[test]
    fn any_extent_is_planned_and_covered() {
        let device = DeviceSpec::preset("h200").unwrap();
        for extents in [
            vec![1],
            vec![7],
            vec![1_000_003],
            vec![1, 1],
            vec![2, 100_000],
            vec![100_003, 3],
            vec![1, 1, 1],
            vec![3, 509, 2],
        ] {
            let name = ["1d3pt", "2d5pt", "3d7pt"][extents.len() - 1];
            let problem = problem(name, &extents, DType::F32);
            for &cache in CachePolicy::ALL {
                let options = Options { execution: Execution::Persistent, cache, ..Options::default() };
                let plan = plan_sweep(&problem, &device, &options).unwrap();
                let sweep = plan.sweep().unwrap();
                let [s, y, x] = Axes::of(extents.len()).order(problem.shape.padded());
                let plane = sweep.plane();
                assert!(sweep.tiles[1] * plane[0] >= y && sweep.tiles[2] * plane[1] >= x, "{extents:?}");
                assert_eq!((0..sweep.tiles[0]).map(|row| sweep.planes_of(row, s)).sum::<usize>(), s);
                assert!(sweep.planes_registers <= sweep.planes[0]);
                assert!(plan.cached_share() <= 1.0);
            }
        }
    }

    #[test]
    fn giving_up_registers_moves_planes_to_shared_memory() {
        let device = DeviceSpec::preset("h200").unwrap();
        let problem = problem("2d5pt", &[2304, 2304], DType::F64);
        let options = Options { execution: Execution::Persistent, ..Options::default() };
        let plan = plan_sweep(&problem, &device, &options).unwrap();
        let before = plan.sweep().unwrap();
        let fewer = plan.with_planes_in_registers(&problem, before.planes_registers - before.chunk);
        let after = fewer.sweep().unwrap();
        assert_eq!(after.planes_registers + after.chunk, before.planes_registers);
        assert!(after.planes_shared >= before.planes_shared);
    }

    #[test]
    fn far_taps_are_refused_in_words() {
        let far = crate::stencil::LinearStencil::new("far", &[([-40], 0.5), ([40], 0.5)]).unwrap();
        let program = crate::program::Program::new(&far).unwrap();
        let problem = Problem::new(Arc::new(program), Shape::new(&[1000]).unwrap(), DType::F32).unwrap();
        let device = DeviceSpec::preset("a100").unwrap();
        let error = plan_sweep(&problem, &device, &Options::default()).unwrap_err().to_string();
        assert!(error.contains("40 asked, the limit is 12"), "{error}");
        let plan = super::super::plan(&problem, &device, &Options::default()).unwrap();
        assert_eq!(plan.execution, Execution::Stepwise);
        assert!(plan.notes[0].contains("limit"), "{:?}", plan.notes);
    }
}

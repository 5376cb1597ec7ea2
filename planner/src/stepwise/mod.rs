//! Plans of launches per stage or group of stages, and of one persistent kernel of the same stages and groups.

mod general;
mod launch;
mod lowering;
mod persistent_program;
mod tables;

use abide_core::device::Capability;
use abide_core::expr::Node;
use abide_core::plan::fused::Partition;
use abide_core::plan::tables::shared_bytes as bytes_of_tables;
use abide_core::plan::traffic::Traffic;
use abide_core::plan::{Schedule, Stepwise, staged_fields};
use abide_core::{DType, DeviceSpec, Execution, Lowering, Options, Plan, Problem, Result, Stage};

use self::general::plan_launches;
use self::launch::launch_seconds;
use self::lowering::{fit, lowering, points, rows, team};
use crate::base::base;
use crate::limits::{check_buffer, check_depth};

pub(crate) use general::moved;
pub use general::{plan_grouped, plan_searched};
pub(crate) use launch::stage_seconds;
pub(crate) use lowering::{plan_loops, refuse_loops, refuse_points_and_teams};
pub(crate) use persistent_program::{chain_seconds, compare};
pub use persistent_program::{plan_persistent_program, with_fewer_blocks};

/// The most operations of a formula whose text a kernel has once for each cell of a thread. Properties of 10 to 33 species, 1000
/// to 4200 nodes, took 2.3 to 4 times as long on an H100 where their text stood four times: a warp waited for instructions.
const SHORT: usize = 256;

/// Threads of a block whose formulas are long: two blocks of 256 would leave a quarter of an H200's registers unused where a
/// thread has 96.
const THREADS_OF_LONG: usize = 128;

/// The cells of a block whose taps read device memory, a thread each: their neighbours come from the first-level cache. On an H200
/// blocks of 256 threads took 0.99 to 1.07 of the time, rows of 128 cells 0.96 to 1.10.
const DIRECT: [usize; 3] = [1, 4, 32];

/// Returns the cells of a block whose taps read device memory. A thread takes several planes where a formula in f32 reaches so far
/// across them that most of what a plane reads the next ones read, too: a star of radius 4 on 512³ took 0.87 of the time on an H200,
/// in f64 1.04.
fn direct_tile(problem: &Problem, device: &DeviceSpec) -> [usize; 3] {
    const FAR: usize = 4;
    // Blocks of a multiprocessor, lest some have none.
    const LEAST: usize = 16;
    let [_, y, x] = DIRECT;
    let tall = [2 * FAR, y, x];
    let stages = problem.program.stages();
    let reaches_far = stages.iter().any(|stage| stage.footprint.radius[0] >= FAR);
    let blocks = problem.shape.cells() / tall.iter().product::<usize>();
    let is_tall = problem.dtype == DType::F32
        && reaches_far
        && !stages.iter().any(is_long)
        && blocks >= LEAST * device.multiprocessors;
    if is_tall { tall } else { DIRECT }
}

/// Returns whether a launch per stage of CUDA reads taps from device memory instead of staging tiles: in three dimensions, where the
/// halo is a large part of a tile, and where the fields that are tapped around leave a multiprocessor few blocks. On an H200,
/// 512³: a star of radius 4 of four fields 1.95 (f32) and 2.9 (f64) times as fast, Maxwell's equations 1.6, D3Q19 2.4.
fn reads_directly(problem: &Problem, device: &DeviceSpec, tile: [usize; 3]) -> bool {
    let leaves_few = |bytes: usize| bytes == 0 || 4 * bytes > device.shared_bytes;
    let is_better = |stage: &Stage| {
        !staged_fields(stage).is_empty()
            && (problem.shape.dimensions() == 3 || leaves_few(tile_bytes(problem, device, stage, tile)))
    };
    device.has(Capability::Warps)
        && device.threads_per_block >= DIRECT.iter().product()
        && problem.program.stages().iter().any(is_better)
}

/// Returns whether a stage has more operations than text should have several times.
fn is_long(stage: &Stage) -> bool {
    let is_operation = |node: &&Node| node.operands().next().is_some();
    stage.dag.nodes.iter().filter(is_operation).count() > SHORT
}

/// Plans a launch per stage, within the device's limits of threads and shared memory. This is the only plan
/// of a problem that is not plain, and then nothing is staged in shared memory.
///
/// # Errors
///
/// Those of [`Problem::check`]; [`Error::Limit`](abide_core::Error::Limit) where a field is too large for the device;
/// [`Error::Unsupported`](abide_core::Error::Unsupported) where the problem is not plain and the options ask for anything else.
pub fn plan_stepwise(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Plan> {
    problem.check()?;
    if !problem.is_plain() {
        return plan_launches(problem, device, options);
    }
    check_depth(options.depth)?;
    let piece_cells = piece_cells(problem, device)?;
    let (mut tile, mut threads) = tile_of(problem, device);
    let lowering = lowering(problem, device, options);
    let rows = rows(problem, device, options, lowering)?;
    let points = points(problem, device, options, lowering, rows)?;
    let team = team(problem, options, lowering)?;
    let stages = problem.program.stages();
    let is_staged = stages.iter().any(|stage| !staged_fields(stage).is_empty());
    let is_long = stages.iter().any(is_long);
    if !is_staged && is_long && lowering == Lowering::Straight && tables::are_shared(device) {
        let slowest = threads.iter().position(|threads| *threads > 1).unwrap_or(2);
        while threads.iter().product::<usize>() > THREADS_OF_LONG && threads[slowest] > 1 {
            threads[slowest] /= 2;
        }
        tile = threads;
    }
    if !is_staged && stages.iter().any(|stage| stage.set_alone().len() < stage.writes.len()) {
        // A point may have thousands of results: several points of a thread, one after another, would leave few blocks.
        tile = threads;
    }
    let is_direct = lowering == Lowering::Straight && reads_directly(problem, device, tile);
    if is_direct {
        (tile, threads) = (direct_tile(problem, device), DIRECT);
    }
    let shared_of = |tile| -> Vec<usize> {
        let of = |stage| if is_direct { 0 } else { tile_bytes(problem, device, stage, tile) };
        stages.iter().map(of).collect()
    };
    let mut shared_bytes = shared_of(tile);
    let (mut tables, mut launched) = (Vec::new(), None);
    if lowering.keeps_loops() {
        tables = tables::place(problem, device, options, &shared_bytes)?;
        let table_bytes = tables.iter().map(|tables| bytes_of_tables(tables));
        let block_bytes = table_bytes.clone().zip(&shared_bytes).map(|(tables, tile)| tables + tile).max();
        let goes_on = table_bytes.max().is_some_and(|bytes| bytes > 0);
        fit(points, team, is_staged, goes_on, &mut tile, &mut threads)?;
        shared_bytes = shared_of(tile);
        // All that a device may hold at once, so that none of it waits.
        let by_shared = |bytes: usize| device.shared_bytes / (bytes + device.shared_bytes_reserved).max(1);
        let resident =
            block_bytes.map_or(1, by_shared).min(device.threads / (threads.iter().product::<usize>() * team));
        launched = goes_on.then(|| device.multiprocessors.max(1) * resident.max(1));
    }
    let mut traffic = Traffic::uncached(problem, device);
    traffic.overhead_seconds = device.launch_seconds * problem.program.stages().len() as f64;
    let staged =
        if is_direct { reached_cells(problem, device) } else { staged_cells(problem, tile, &shared_bytes) };
    let estimate = stages.iter().zip(staged).map(|(stage, staged)| {
        let bytes = problem.stage_bytes(stage).into_iter().sum();
        launch_seconds(device, stage_seconds(problem, device, stage, bytes, staged))
    });
    let estimate = estimate.sum();
    let unstaged: Vec<&str> = problem
        .program
        .stages()
        .iter()
        .zip(&shared_bytes)
        .filter(|(stage, bytes)| !is_direct && **bytes == 0 && !staged_fields(stage).is_empty())
        .map(|(stage, _)| stage.name.as_str())
        .collect();
    let note = format!(
        "the tile of {} does not fit in shared memory: its taps read device memory",
        unstaged.join(", ")
    );
    let mut plan = base(
        problem,
        device,
        Execution::Stepwise,
        Schedule::Stepwise(Stepwise {
            tile,
            threads,
            shared_bytes,
            piece_cells,
            is_repeated: !is_long && team == 1,
            lowering,
            points,
            team,
            rows,
            tables,
            launched,
            partition: Partition::default(),
        }),
        traffic,
    );
    plan.estimated_seconds = estimate;
    if !unstaged.is_empty() {
        plan.notes.push(note);
    }
    let pieces = problem.shape.cells().div_ceil(piece_cells);
    if pieces > 1 {
        plan.notes.push(format!(
            "a field is split over {pieces} buffers, for {} binds {} bytes at most",
            device.name, device.buffer_bytes
        ));
    }
    Ok(plan)
}

/// Cells of which a piece of a field holds a multiple: whole lines of memory.
const PIECE: usize = 64;

/// Returns the cells of a field that go into one buffer: all of them if the device can bind such a buffer.
fn piece_cells(problem: &Problem, device: &DeviceSpec) -> Result<usize> {
    let Err(why) = check_buffer(problem, device) else { return Ok(problem.shape.cells()) };
    let cells = device.buffer_bytes as usize / problem.dtype.bytes() / PIECE * PIECE;
    // On a device that reports its memory, a buffer may bind all of it: no larger field fits.
    if cells == 0 || device.memory_bytes > 0 { Err(why) } else { Ok(cells) }
}

/// Returns for each stage the cells that a tile stages for each of its own: 1 where it stages none.
fn staged_cells(problem: &Problem, tile: [usize; 3], shared_bytes: &[usize]) -> Vec<f64> {
    let staged = |(stage, bytes): (&Stage, &usize)| {
        let fields = staged_fields(stage).len();
        if *bytes == 0 || fields == 0 {
            return 1.0;
        }
        let cells = *bytes / (fields * problem.dtype.bytes());
        cells as f64 / tile.iter().product::<usize>() as f64
    };
    problem.program.stages().iter().zip(shared_bytes).map(staged).collect()
}

/// Returns for each stage what a tile's halos add to the cells that it reads, as [`staged_cells`] does, of the tiles that a
/// launch per stage has where a block's shared memory holds them.
pub(super) fn reached_cells(problem: &Problem, device: &DeviceSpec) -> Vec<f64> {
    let (tile, _) = tile_of(problem, device);
    let stages = problem.program.stages().iter();
    let shared = stages.map(|stage| tile_bytes(problem, device, stage, tile)).collect::<Vec<_>>();
    staged_cells(problem, tile, &shared)
}

/// Returns the bytes of shared memory of a stage's tile with its halos; 0 where it stages nothing, or a block has too few.
fn tile_bytes(problem: &Problem, device: &DeviceSpec, stage: &Stage, tile: [usize; 3]) -> usize {
    if !stage.sweeps() {
        return 0;
    }
    let radius = stage.footprint.radius;
    let cells: usize = (0..3).map(|axis| tile[axis] + 2 * radius[axis]).product();
    let bytes = staged_fields(stage).len() * cells * problem.dtype.bytes();
    if bytes <= device.shared_bytes_per_block { bytes } else { 0 }
}

/// Returns the tile and the threads of a block: long in the fastest axis, so that loads are whole lines.
fn tile_of(problem: &Problem, device: &DeviceSpec) -> ([usize; 3], [usize; 3]) {
    let (mut tile, mut threads) = match problem.shape.dimensions() {
        1 => ([1, 1, 1024], [1, 1, 256]),
        2 => ([1, 32, 64], [1, 8, 32]),
        _ => ([8, 8, 32], [2, 4, 32]),
    };
    let limit = device.threads_per_block.max(1);
    // Halve the longest side until the block is small enough.
    while threads.iter().product::<usize>() > limit {
        let axis = (0..3).max_by_key(|&axis| threads[axis]).unwrap_or(2);
        threads[axis] /= 2;
    }
    // A tile whose halos make it too large for shared memory shrinks along its longest axis, down to the
    // threads.
    let fits = |tile: [usize; 3]| {
        problem.program.stages().iter().filter(|stage| stage.sweeps()).all(|stage| {
            let radius = stage.footprint.radius;
            let cells: usize = (0..3).map(|axis| tile[axis] + 2 * radius[axis]).product();
            staged_fields(stage).len() * cells * problem.dtype.bytes() <= device.shared_bytes_per_block
        })
    };
    while !fits(tile) {
        match (0..3).filter(|&axis| tile[axis] > threads[axis]).max_by_key(|&axis| tile[axis]) {
            Some(axis) => tile[axis] /= 2,
            None => break,
        }
    }
    (tile, threads)
}

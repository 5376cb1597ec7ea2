//! The stepwise schedule, a launch per stage: each block loads a tile with its halo into shared memory.

use serde::Serialize;

use super::description::{Describe, Line, times};
use super::fused::{Fused, Partition};
use super::general::plan_general;
use super::launch::{launch_seconds, stage_seconds};
use super::lowering::{fit, lowering, points, rows, team};
use super::tables::{self, PlacedTable};
use super::{Execution, Lowering, Options, Plan, Schedule, base, cpu::check_depth, perks::Traffic};
use crate::device::DeviceSpec;
use crate::error::{Error, Result};
use crate::expr::Node;
use crate::program::{Problem, Stage};

/// The most operations of a formula whose text a kernel has once for each cell of a thread. Properties of 10 to 33 species, 1000
/// to 4200 nodes, took 2.3 to 4 times as long on an H100 where their text stood four times: a warp waited for instructions.
const SHORT: usize = 256;

/// Threads of a block whose formulas are long: two blocks of 256 would leave a quarter of an H200's registers unused where a
/// thread has 96.
const THREADS_OF_LONG: usize = 128;

/// Returns whether a stage has more operations than text should have several times.
fn is_long(stage: &Stage) -> bool {
    let is_operation = |node: &&Node| node.operands().next().is_some();
    stage.dag.nodes.iter().filter(is_operation).count() > SHORT
}

/// The tiles of a launch per stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stepwise {
    /// Cells of a tile along the three axes, slowest first.
    pub tile: [usize; 3],
    /// Threads of a block along the three axes, slowest first; each divides the tile. Where a team computes each point, its teams.
    pub threads: [usize; 3],
    /// For each stage, bytes of shared memory for its tile with halos; 0 if its taps are read from device
    /// memory instead.
    pub shared_bytes: Vec<usize>,
    /// The most cells of a field in one buffer. On a device that binds no buffer large enough for the field,
    /// the field lies in several.
    pub piece_cells: usize,
    /// Whether a kernel's text has the formula once for each cell of a thread, so that their loads do not wait for each other.
    pub is_repeated: bool,
    /// How the loops of formulas become text; straight where they have none.
    pub lowering: Lowering,
    /// Points of a thread along the fastest axis that share a pass over loops; 1 unless they are jammed.
    pub points: usize,
    /// Threads that share the loops of a point; 1 unless a team does.
    pub team: usize,
    /// The most turns of a loop that share a pass over its inner loops; 1 where each turn has its own pass.
    pub rows: usize,
    /// For each stage, the tables of its formula, by their numbers; none where loops are written out.
    pub tables: Vec<Vec<PlacedTable>>,
    /// The blocks of a launch where each loads tables into shared memory and goes over tiles one after another; `None`
    /// where each has one tile.
    pub launched: Option<usize>,
    /// The stages of a problem that is not plain in groups; no steps where it is plain.
    pub partition: Partition,
}

impl Stepwise {
    /// Returns the blocks of a domain along the three axes, slowest first.
    pub fn blocks(&self, extents: [usize; 3]) -> [usize; 3] {
        std::array::from_fn(|axis| extents[axis].div_ceil(self.tile[axis]))
    }

    /// Returns the blocks of a launch over a domain.
    pub fn launched(&self, extents: [usize; 3]) -> usize {
        let tiles = self.blocks(extents).iter().product();
        self.launched.map_or(tiles, |launched| launched.min(tiles))
    }

    /// Returns the bytes of shared memory that the tables of a stage take before its tile.
    pub fn table_bytes(&self, stage: usize) -> usize {
        self.tables.get(stage).map_or(0, |tables| tables::shared_bytes(tables))
    }

    /// Returns the threads of a block.
    pub fn threads_per_block(&self) -> usize {
        self.threads.iter().product::<usize>() * self.team
    }
}

impl Describe for Stepwise {
    fn summary(&self, _: &Plan) -> String {
        format!("stepwise, tiles of {}, {} threads per block", times(&self.tile), self.threads_per_block())
    }

    fn lines(&self, _: &Plan) -> Vec<Line> {
        let bytes = self.shared_bytes.iter().max().copied().unwrap_or(0);
        let (tile, threads) = (times(&self.tile), self.threads_per_block());
        let threads = if self.team > 1 { threads.to_string() } else { times(&self.threads) };
        let tiling =
            format!("tiles of {tile} cells, {threads} threads and {bytes} bytes of shared memory per block");
        let mut lines = vec![("tiling", tiling)];
        match self.lowering {
            Lowering::Auto | Lowering::Straight => {}
            Lowering::Loops => lines.push(("loops", "loops of formulas stay loops".to_owned())),
            Lowering::Jammed => {
                let words = format!("{} points of a thread go through loops together", self.points);
                lines.push(("loops", words));
            }
            Lowering::Team => lines.push(("loops", format!("{} threads share those of a point", self.team))),
        }
        if self.rows > 1 {
            let words =
                format!("up to {} turns of a loop go through the loops within it together", self.rows);
            lines.push(("rows", words));
        }
        if let Some(words) = tables::words(&self.tables) {
            lines.push(("tables", words));
        }
        if let Some(launched) = self.launched {
            let words =
                format!("{launched} at the most, each of which loads tables once and goes over tiles");
            lines.push(("blocks", words));
        }
        let fused: Vec<(&[usize], &Fused)> =
            self.partition.all().filter_map(|group| Some((&*group.stages, group.fused.as_ref()?))).collect();
        if !fused.is_empty() {
            let (kernels, stages) =
                (self.partition.all().count(), self.partition.all().map(|g| g.stages.len()));
            lines.push(("groups", format!("{} stages in {kernels} groups", stages.sum::<usize>())));
        }
        let mut before = 0;
        for split in &self.partition.splits {
            let first = split.stage + before;
            let last = first + split.parts.len() - 1;
            before += split.parts.len() - 1;
            lines.push((
                "split",
                format!("stage {} of the program runs in parts, as stages {first} to {last}", split.stage),
            ));
        }
        for (stages, fused) in fused {
            let numbers: Vec<String> = stages.iter().map(usize::to_string).collect();
            let (rings, tile) = (fused.rings.len(), times(&fused.tile));
            lines.push((
                "group",
                format!(
                    "stages {}: tiles of {tile} and {} threads, {rings} names in shared memory, {} rows behind at the most",
                    numbers.join(", "),
                    fused.threads,
                    fused.members.iter().map(|member| member.lag).max().unwrap_or(0)
                ),
            ));
        }
        lines
    }
}

/// Returns the fields of a stage that a tile must stage: those tapped away from the cell itself.
pub fn staged_fields(stage: &Stage) -> Vec<usize> {
    let radii = stage.footprint.field_radius.iter().enumerate();
    radii.filter(|(_, radius)| radius.is_some_and(|r| r != [0; 3])).map(|(field, _)| field).collect()
}

/// Plans a launch per stage, within the device's limits of threads and shared memory. This is the only plan
/// of a problem that is not plain, and then nothing is staged in shared memory.
///
/// # Errors
///
/// Those of [`Problem::check`]; [`Error::Limit`] where a field is too large for the device;
/// [`Error::Unsupported`] where the problem is not plain and the options ask for anything else.
pub fn plan_stepwise(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Plan> {
    problem.check()?;
    if !problem.is_plain() {
        return plan_general(problem, device, options);
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
    let shared_of = |tile| -> Vec<usize> {
        stages.iter().map(|stage| tile_bytes(problem, device, stage, tile)).collect()
    };
    let mut shared_bytes = shared_of(tile);
    let (mut tables, mut launched) = (Vec::new(), None);
    if lowering.keeps_loops() {
        tables = tables::place(problem, device, options, &shared_bytes)?;
        let table_bytes = tables.iter().map(|tables| tables::shared_bytes(tables));
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
    let staged = staged_cells(problem, tile, &shared_bytes);
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
        .filter(|(stage, bytes)| **bytes == 0 && !staged_fields(stage).is_empty())
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

/// Refuses a problem whose fields are too large for a kernel to bind each as one buffer.
pub(super) fn check_buffer(problem: &Problem, device: &DeviceSpec) -> Result<()> {
    let bytes = problem.shape.bytes(problem.dtype) as u64;
    if bytes <= device.buffer_bytes {
        return Ok(());
    }
    Err(Error::limit(
        format!("bytes of one field on {}", device.name),
        bytes,
        device.buffer_bytes,
        "choose a smaller size, f32 or another backend",
    ))
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

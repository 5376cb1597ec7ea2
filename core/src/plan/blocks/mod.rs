//! The schedule of temporal blocking on devices without a barrier of all workgroups: each dispatch advances several steps.
//!
//! A workgroup owns a *window*: a tile of the domain with a halo around it. Each of its threads keeps a block of cells in
//! registers for as many steps as the depth, and gives the block's edges to its neighbours through workgroup memory
//! ([`Exchange`]). Cells near the window's sides go wrong by the reach of a step each step; when the halo is used up, the tile is
//! written (overlapped tiling; Meng and Skadron, ICS'09). An axis that a window holds *whole* needs no halo: a domain that
//! fits into one window stays there for hundreds of steps.

mod exchange;
mod model;
mod search;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::perks::Traffic;
use super::{CachePolicy, Depth, Execution, Options, Plan, Schedule, base, plan_tiles};
use crate::device::DeviceSpec;
use crate::error::{Error, Result};
use crate::grid::Boundary;
use crate::program::{Problem, Program};

pub use self::exchange::{Exchange, Given, Source, refreshes};
pub use self::search::neighbours as blocks_neighbours;

/// Steps of a dispatch where windows need no halo: enough that starting it costs nothing beside them, and few enough that
/// it ends long before a system would think that the device hangs.
const MOST_STEPS: usize = 512;

/// The most words of registers for the cells of a thread.
const MOST_WORDS: usize = 64;

/// The most operations of the unrolled formulas of a block: compilers take time for each.
const MOST_OPERATIONS: usize = 3000;

/// The most taps of a stage: each is an argument of its function, of which WGSL allows 255.
const MOST_TAPS: usize = 240;

/// The free choices of windows. Triples are along the three axes, slowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Form {
    /// Steps of a dispatch.
    pub depth: usize,
    /// Threads of a window.
    pub threads: [usize; 3],
    /// Cells of a thread.
    pub cells: [usize; 3],
    /// Whether new values have slots of their own, so that a stage needs one barrier and not two.
    pub double: bool,
}

/// Windows that advance several steps a dispatch. Triples are along the three axes, slowest first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Blocks {
    /// What was chosen freely.
    pub form: Form,
    /// Whether the depth was asked for, and not the planner's choice.
    pub depth_asked: bool,
    /// Axes that a window holds whole.
    pub whole: [bool; 3],
    /// Cells of a window below and above its tile: halo, or ghost cells of an axis that is held whole.
    pub halo: [[usize; 2]; 3],
    /// Cells of a tile.
    pub tile: [usize; 3],
    /// Windows of the domain.
    pub blocks: [usize; 3],
    /// Bytes of workgroup memory of a window.
    pub shared_bytes: usize,
    /// The share of the computed cells that are kept, for windows overlap: the valid portion V of EBISU (eq. 9).
    pub valid: f64,
}

impl Blocks {
    /// Cells of a window along the three axes.
    pub fn window(&self) -> [usize; 3] {
        std::array::from_fn(|axis| self.form.threads[axis] * self.form.cells[axis])
    }

    /// Threads of a window.
    pub fn threads_per_block(&self) -> usize {
        self.form.threads.iter().product()
    }

    /// Whether ghost cells are refreshed from slots along any axis.
    pub fn refreshes(&self, problem: &Problem) -> bool {
        let radius = problem.program.radius();
        (0..3).any(|axis| refreshes(problem, axis, self.whole[axis], radius[axis]))
    }

    /// What threads give each other, for the program simplified for the problem's type.
    pub fn exchange(&self, problem: &Problem, simplified: &Program) -> Exchange {
        let Form { threads, cells, double, .. } = self.form;
        Exchange::of(simplified, threads, cells, self.refreshes(problem), double)
    }
}

/// Plans for a device that has no barrier of all workgroups and does not tell its registers: a launch a stage, or windows
/// of several steps, whichever is asked for or estimated to be faster.
pub fn plan_portable(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Plan> {
    if options.execution == Execution::Streaming {
        return plan_blocks(problem, device, options);
    }
    if !matches!(options.depth, Depth::Auto | Depth::Steps(1)) && options.execution == Execution::Auto {
        return plan_blocks(problem, device, options);
    }
    let mut stepwise = plan_tiles(problem, device, options)?;
    if options.execution != Execution::Auto || options.depth != Depth::Auto {
        return Ok(stepwise);
    }
    match plan_blocks(problem, device, options) {
        Ok(blocks) if blocks.estimated_seconds < stepwise.estimated_seconds => Ok(blocks),
        Ok(_) => Ok(stepwise),
        Err(why) => {
            stepwise.notes.push(format!("not streaming, for that cannot: {why}"));
            Ok(stepwise)
        }
    }
}

/// Plans windows of several steps: the first of [`blocks_plans`].
pub fn plan_blocks(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Plan> {
    let plans = blocks_plans(problem, device, options)?;
    plans.into_iter().next().ok_or_else(|| {
        let depth = match options.depth {
            Depth::Auto => "1 step deep".to_owned(),
            Depth::Steps(steps) => format!("{steps} steps deep"),
        };
        Error::limit(
            format!("windows of several steps on {}", device.name),
            format!(
                "{} fields of radius {:?} on {} {}, {depth}",
                problem.program.fields().len(),
                problem.program.radius(),
                problem.shape,
                problem.dtype,
            ),
            format!(
                "windows with a tile inside their halo, of {} threads, {} registers of cells a thread, \
                 {MOST_OPERATIONS} operations of its cells together, {MOST_TAPS} taps a stage and {} bytes of workgroup memory",
                device.threads_per_block,
                search::most_words(device),
                device.shared_bytes_per_block
            ),
            "use a smaller --depth, or --execution stepwise",
        )
    })
}

/// All plans of windows that fit a device, the one that the model finds fastest first.
pub fn blocks_plans(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Vec<Plan>> {
    problem.check()?;
    super::tiles::check_buffer(problem, device)?;
    if options.cache != CachePolicy::Auto {
        return Err(Error::invalid(
            format!("--cache {} with --execution streaming", options.cache),
            "a streaming kernel keeps no cell from launch to launch",
            "leave --cache at auto, or use --backend cuda --execution persistent",
        ));
    }
    let demand = Demand::of(problem);
    let mut plans: Vec<(f64, Blocks)> = search::candidates(&demand, device, options.depth);
    plans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let depth_asked = options.depth != Depth::Auto;
    let plan = |(estimate, blocks)| plan_of(problem, device, Blocks { depth_asked, ..blocks }, estimate);
    Ok(plans.into_iter().map(plan).collect())
}

/// The plan of a form, where it fits.
pub fn plan_form(problem: &Problem, device: &DeviceSpec, form: &Form) -> Option<Plan> {
    super::tiles::check_buffer(problem, device).ok()?;
    let demand = Demand::of(problem);
    let (layout, cost) = search::layout(&demand, device, form)?;
    let blocks = search::blocks(&demand, &layout, form)?;
    let estimate = model::step_seconds(&demand, device, &blocks, &cost);
    Some(plan_of(problem, device, blocks, estimate))
}

fn plan_of(problem: &Problem, device: &DeviceSpec, blocks: Blocks, estimate: f64) -> Plan {
    let depth = blocks.form.depth;
    let mut traffic = Traffic::uncached(problem, device);
    traffic.load_bytes = traffic.cell_bytes / depth as f64;
    traffic.store_bytes = traffic.changing_bytes / depth as f64;
    traffic.overhead_seconds = device.launch_seconds / depth as f64;
    let mut plan = base(problem, device, Execution::Streaming, Schedule::Blocks(blocks), traffic);
    plan.depth = depth as u32;
    plan.estimated_seconds = estimate;
    plan
}

/// What a problem asks of windows, whatever their form.
struct Demand<'a> {
    problem: &'a Problem,
    /// Simplified, as kernels are made of it.
    program: Program,
    radius: [usize; 3],
    /// How far a step reaches below and above a cell along each axis, all stages together.
    reach: [[usize; 2]; 3],
    /// Operations of a cell and step; a fused multiply-add is one.
    operations: usize,
}

impl Demand<'_> {
    fn of(problem: &Problem) -> Demand<'_> {
        let program = problem.program.simplified(problem.dtype);
        let mut reach = [[0; 2]; 3];
        for stage in program.stages() {
            for axis in 0..3 {
                let offsets = stage.dag.taps().map(|tap| tap.offset[axis]);
                let (low, high) = offsets.fold((0, 0), |(low, high), at| (low.min(at), high.max(at)));
                let mut sides = [low.unsigned_abs() as usize, high.unsigned_abs() as usize];
                // What lies beyond a mirror is a cell on this side of it.
                if problem.boundaries.0[axis].contains(&Boundary::Mirror) {
                    sides = [sides[0].max(sides[1]); 2];
                }
                (0..2).for_each(|side| reach[axis][side] += sides[side]);
            }
        }
        let operations = program.operations().max(1);
        Demand { problem, radius: problem.program.radius(), program, reach, operations }
    }
}

//! The choice of EBISU's model (§6, table 1): how wide a tile is, how deep a pass, and which tiling.

use abide_core::domain::Axes;
use abide_core::units::{count, times};
use abide_core::{DeviceSpec, Error, Problem, Result};
use serde::Serialize;

use super::queue::Queue;
use super::{
    Costs, Practical, Tiling, device_tiling, sm_tiling, sufficient_depth, sufficient_depth_device_tile,
    sufficient_width,
};
use crate::papers::STEPS;

/// The rows of a plane that a thread owns, its instruction-level parallelism (§6.1). With the
/// threads of [`fewest_threads`] they saturate memory, shared memory and arithmetic.
pub const CELLS_PER_THREAD: usize = 4;

/// The least share of its computation that an SM tile must keep for [`choose`], by default. The paper goes as deep as
/// the overhead is "acceptable" and stops at 77 %, where the next step would leave 66 % (§6.3.2).
pub const LEAST_VALID: f64 = 0.75;

/// Barriers per pass of device tiling, n: lazy streaming leaves one (§5.2.2).
const BARRIERS: usize = 1;

/// The rules that [`choose`] keeps to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rules {
    /// How a block's planes are held.
    pub queue: Queue,
    /// Bytes on the chip for a block's planes.
    pub capacity_bytes: usize,
    /// The least valid share of an SM tile, 0 to 1.
    pub least_valid: f64,
    /// Steps of the run: no pass is deeper.
    pub steps: usize,
}

impl Rules {
    /// Returns the paper's choices (table 1) for a domain of `dimensions` axes: addresses computed for
    /// squares, shifted for cubes; planes in the shared memory of one block.
    pub fn of(device: &DeviceSpec, dimensions: usize, steps: usize) -> Rules {
        Rules {
            queue: if dimensions == 3 { Queue::Shifted } else { Queue::Computed },
            capacity_bytes: device.shared_bytes_per_block,
            least_valid: LEAST_VALID,
            steps,
        }
    }
}

/// Both tilings at the depth that suits each.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Choice {
    /// SM tiling, no deeper than suffices.
    pub sm: Practical,
    /// Device tiling, as deep as fits, so that more steps share the barrier.
    pub device: Practical,
}

impl Choice {
    /// Returns the faster of the two tilings (eq. 20 and 21).
    pub fn faster(&self) -> &Practical {
        if self.device.gcells_per_s > self.sm.gcells_per_s { &self.device } else { &self.sm }
    }

    /// Returns the slower of the two tilings.
    pub fn slower(&self) -> &Practical {
        if self.faster().tiling == Tiling::Sm { &self.device } else { &self.sm }
    }
}

/// Returns which tiling is faster, how deep, and at what rate (§6.3, eq. 20 and 21), for tiles of `tile`
/// cells per block.
///
/// SM tiling takes its fastest depth up to the one that suffices (eq. 17), as far as there is room and it
/// keeps the least valid share. Device tiling goes as deep as there is room.
///
/// In 2D the choice is clear. In 3D it depends on the least valid share: the paper reports that device tiling is
/// faster for all its 3D stencils, but the model shows that for 3d7pt only. For stencils of radius 1 and more points,
/// which arithmetic binds, SM tiling is 4 to 10 % faster in the model. For 3d13pt, whose planes leave room for 3 steps
/// only, it is faster by half.
///
/// # Errors
///
/// [`Error::Limit`] if not even one step's planes fit; those of [`sufficient_depth`] if a rate of the device
/// is not known.
pub fn choose(costs: &Costs, device: &DeviceSpec, tile: [usize; 2], rules: &Rules) -> Result<Choice> {
    rules.queue.fit(costs, tile, 1, rules.capacity_bytes)?;
    let room = rules.queue.deepest(costs, tile, rules.capacity_bytes).min(rules.steps.max(1));
    let enough = (sufficient_depth(costs, device)?.ceil() as usize).clamp(1, room);
    let first = sm_tiling(costs, device, tile, 1);
    let sm = (2..=enough)
        .map(|depth| sm_tiling(costs, device, tile, depth))
        .take_while(|deeper| deeper.valid >= rules.least_valid)
        .fold(first, |best, deeper| if deeper.gcells_per_s > best.gcells_per_s { deeper } else { best });
    Ok(Choice { sm, device: device_tiling(costs, device, tile, room, BARRIERS) })
}

/// Returns the fewest resident threads of a multiprocessor that are worth having, in whole warps; 0 if the device does
/// not report its registers. Fewer threads do not give a thread more registers (§6.1), because it cannot address more.
pub fn fewest_threads(device: &DeviceSpec) -> usize {
    let warp = device.warp.unwrap_or(1);
    let threads = device.registers.zip(device.registers_per_thread).map_or(0, |(all, each)| all / each);
    threads / warp * warp
}

/// A row of the paper's table 1, for any problem and device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Design {
    /// The costs of a step per cell.
    pub costs: Costs,
    /// Threads per block, and so per multiprocessor.
    pub threads: usize,
    /// The depth that takes device memory out of the way under SM tiling (eq. 17), in steps.
    pub sufficient_depth: f64,
    /// The width from which a device tile's halos cost less than its cells (eq. 22 and 23), in cells.
    pub sufficient_width: f64,
    /// The depth that takes device memory out of the way under device tiling (eq. 18 and 19), in steps;
    /// `None` if no depth does.
    pub sufficient_depth_device_tile: Option<f64>,
    /// Both tilings at their depths.
    #[serde(flatten)]
    pub choice: Choice,
}

/// Returns what the paper would choose for a problem on a device.
///
/// # Errors
///
/// [`Error::Invalid`] for a domain of one axis; [`Error::Limit`] where the planes of a single step do not
/// fit; those of [`sufficient_depth`] where a rate of the device is not known.
pub fn design(problem: &Problem, device: &DeviceSpec) -> Result<Design> {
    let dimensions = problem.shape.dimensions();
    if dimensions < 2 {
        return Err(Error::invalid(
            "a domain of one axis",
            "EBISU streams along one axis and tiles across it",
            "give a domain of two or three axes",
        ));
    }
    let costs = Costs::of(&problem.program, problem.dtype, CELLS_PER_THREAD);
    let rules = Rules::of(device, dimensions, STEPS as usize);
    let tile = tile(&costs, device, dimensions, &rules)?;
    Ok(Design {
        threads: fewest_threads(device),
        sufficient_depth: sufficient_depth(&costs, device)?,
        sufficient_width: sufficient_width(&costs, device)?,
        sufficient_depth_device_tile: sufficient_depth_device_tile(&costs, device, tile),
        choice: choose(&costs, device, tile, &rules)?,
        costs,
    })
}

/// Returns the tile of one block: in 2D a line of a cell per thread, in 3D a square whose sides are whole
/// warps and that gives each thread its cells. It is wider than that as far as halos ask (eq. 23) and room
/// allows.
fn tile(costs: &Costs, device: &DeviceSpec, dimensions: usize, rules: &Rules) -> Result<[usize; 2]> {
    let threads = fewest_threads(device).max(1);
    let (unit, least) = if dimensions == 3 {
        let warp = device.warp.unwrap_or(1);
        (warp, (threads * CELLS_PER_THREAD).isqrt().next_multiple_of(warp))
    } else {
        (threads, threads)
    };
    let of_side = |side: usize| [if dimensions == 3 { side } else { 1 }, side];
    // No tile with more cells than there is room for could fit.
    let wanted = (sufficient_width(costs, device)?.ceil() as usize).min(rules.capacity_bytes);
    let sides = (least..wanted.next_multiple_of(unit).max(least) + 1).step_by(unit);
    let fits = |side: &usize| rules.queue.deepest(costs, of_side(*side), rules.capacity_bytes) > 0;
    Ok(of_side(sides.rev().find(fits).unwrap_or(least)))
}

impl Design {
    /// Returns the faster tiling in words.
    pub fn summary(&self, dimensions: usize) -> String {
        let faster = self.choice.faster();
        // A square's planes have one row.
        let tile = times(&faster.tile[usize::from(dimensions < 3)..]);
        let threads = format!("{} threads of {CELLS_PER_THREAD} rows per SM", self.threads);
        format!("{}, tiles of {tile} cells, {threads}; {}", tiling(faster), valid(faster))
    }

    /// Returns the further notes on the choice, a sentence each.
    pub fn notes(&self, problem: &Problem, device: &DeviceSpec) -> Vec<String> {
        let slower = self.choice.slower();
        let out_of_the_way = match self.sufficient_depth_device_tile {
            Some(depth) => format!("{depth:.1} under device tiling (eq. 19)"),
            None => format!(
                "under device tiling none do, because that takes tiles wider than {:.1} cells (eq. 23)",
                self.sufficient_width
            ),
        };
        let mut notes = vec![
            format!("instead, {}: {:.1} GCells/s; {}", tiling(slower), slower.gcells_per_s, valid(slower)),
            format!(
                "{:.1} steps take device memory out of the way under SM tiling (eq. 17), {out_of_the_way}",
                self.sufficient_depth
            ),
        ];
        let paper = if problem.shape.dimensions() == 3 { Tiling::Device } else { Tiling::Sm };
        if self.choice.faster().tiling != paper {
            let says = if paper == Tiling::Device { "device tiling in 3D" } else { "SM tiling in 2D" };
            notes.push(format!("the paper takes {says} (table 1); its model has the other ahead here"));
        }
        let [_, slower_axis, faster_axis] =
            Axes::of(problem.shape.dimensions()).order(problem.shape.padded());
        let tile = self.choice.sm.tile;
        let busy = device.multiprocessors * tile[0] * tile[1];
        if slower_axis < tile[0] || faster_axis < tile[1] || problem.shape.cells() < busy {
            notes.push(format!(
                "too small for the model, which fills {} SMs with a tile each and knows no domain's end",
                device.multiprocessors
            ));
        }
        notes
    }
}

/// Returns a tiling with its depth, in words.
fn tiling(practical: &Practical) -> String {
    let kind = if practical.tiling == Tiling::Sm { "SM tiling" } else { "device tiling" };
    format!("{kind}, {} per pass", count(practical.depth, "step"))
}

/// Returns in words what a tiling's valid share is a share of.
fn valid(practical: &Practical) -> String {
    let of = match practical.tiling {
        Tiling::Sm => "of the computed cells are kept",
        Tiling::Device => "of the time is not spent at barriers",
    };
    format!("{:.0} % {of} (V)", 100.0 * practical.valid)
}

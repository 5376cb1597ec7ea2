//! All configurations of streaming by warps that fit a device.

use serde::{Deserialize, Serialize};

use super::{WarpStreaming, carries};
use crate::device::DeviceSpec;
use crate::domain::Axes;
use crate::domain::Boundary;
use crate::plan::Depth;
use crate::program::Neighbourhood;
use crate::program::{Problem, Stage};

/// The cost of a plane in windows that meet no boundary across, and in windows that do: for planes of one
/// row, and of several. By the instructions of both; measured on an H200.
const PLANE_COSTS: [[usize; 2]; 2] = [[2, 5], [4, 5]];

/// Shares per window from which each window is cut by itself.
const SHARES_OF_A_WINDOW: usize = 8;

/// The free choices of a streaming kernel; the rest follows from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Configuration {
    /// Steps per launch.
    pub depth: usize,
    /// Warps per block.
    pub warps: usize,
    /// Cells of a plane that a thread owns.
    pub cells_per_thread: [usize; 2],
    /// Whether stages work a plane apart.
    pub lag: bool,
    /// Planes of the input in shared memory.
    pub ahead: usize,
    /// Values per cell and stage that are carried in shared memory.
    pub carried_shared: usize,
    /// Blocks resident on one multiprocessor.
    pub blocks_per_multiprocessor: usize,
    /// Blocks launched per resident block.
    pub waves: usize,
}

/// The demands of a program on every streaming kernel.
pub(super) struct Demand {
    /// The swept, slower and faster extents, the radii of a step, and whether either side of an axis is
    /// fixed.
    extents: [usize; 3],
    pub radius: [usize; 3],
    fixed: [[bool; 2]; 3],
    pub periodic: [bool; 3],
    shown_swept: bool,
    /// The most rows and columns beyond its own that a stage taps along a plane's axes, whether it taps off
    /// the axes too, and the most fields that a stage taps along the faster axis.
    pub edge_rows: usize,
    pub reach_x: usize,
    pub boxed: bool,
    pub lateral_fields: usize,
    /// The most values per cell that any stage carries.
    pub carried: usize,
    /// Stages per step, and the planes by which they delay the result.
    pub stages: usize,
    pub delay: usize,
    pub fields: usize,
    pub bytes: usize,
    /// Operations per cell and step.
    pub operations: usize,
}

impl Demand {
    pub(super) fn of(problem: &Problem) -> Demand {
        let axes = Axes::of(problem.shape.dimensions());
        let carries = carries(problem);
        let sides = axes.order(problem.boundaries.0);
        let sum =
            |axis: usize| problem.program.stages().iter().map(|s| axes.order(s.footprint.radius)[axis]).sum();
        let most = |of: &dyn Fn(&Stage) -> usize| problem.program.stages().iter().map(of).max().unwrap_or(0);
        Demand {
            extents: axes.order(problem.shape.padded()),
            radius: [0, 1, 2].map(sum),
            fixed: sides.map(|sides| sides.map(|side| side == Boundary::Fixed)),
            periodic: sides.map(|sides| sides.contains(&Boundary::Periodic)),
            edge_rows: most(&|s| axes.order(s.footprint.radius)[1]),
            reach_x: most(&|s| axes.order(s.footprint.radius)[2]),
            boxed: problem.program.stages().iter().any(|s| s.footprint.neighbourhood == Neighbourhood::Box),
            lateral_fields: most(&|s| {
                let radii = s.footprint.field_radius.iter().flatten();
                radii.filter(|radius| axes.order(**radius)[2] > 0).count()
            }),
            shown_swept: problem.boundaries.shows_a_side(axes.0[0]).is_some(),
            carried: carries.iter().map(|carry| carry.slots.len()).max().unwrap_or(0),
            stages: carries.len(),
            delay: carries.iter().map(|carry| carry.planes[1] as usize).sum(),
            fields: problem.program.fields().len(),
            bytes: problem.dtype.bytes(),
            operations: problem.program.simplified(problem.dtype).operations(),
        }
    }

    /// Returns the planes by which the result of a pass is behind the arriving plane.
    pub(super) fn behind(&self, depth: usize, lag: bool) -> usize {
        self.delay * depth + if lag { depth * self.stages - 1 } else { 0 }
    }
}

/// Returns the streaming kernel of a configuration; `None` if it does not fit the device or the domain.
pub(super) fn streaming(
    demand: &Demand,
    device: &DeviceSpec,
    configuration: &Configuration,
) -> Option<WarpStreaming> {
    let Configuration {
        depth,
        warps,
        cells_per_thread: own,
        lag,
        ahead,
        carried_shared,
        blocks_per_multiprocessor,
        waves,
    } = *configuration;
    let threads = 32 * warps;
    let resident_threads = threads * blocks_per_multiprocessor;
    let lanes = 16 / demand.bytes;
    let margin = [0, 1, 2].map(|axis| depth * demand.radius[axis]);
    // Windows start at a multiple of 16 bytes.
    let margin = [margin[0], margin[1], margin[2].next_multiple_of(lanes)];
    let window = [warps * own[0], 32 * own[1]];
    if threads > device.threads_per_block
        || resident_threads > device.threads
        || ahead < 2
        || carried_shared > demand.carried
        || (demand.shown_swept && !lag)
        || own[0] * own[1] > 32
        || own[0] < demand.edge_rows
        || (own[1] > 1 && own[1] % lanes != 0)
        || (demand.extents[1] == 1 && window[0] > 1)
    {
        return None;
    }
    // A periodic domain wraps once: the cells that a window needs from beyond the edge must lie in the
    // domain.
    if (0..3).any(|axis| demand.periodic[axis] && margin[axis] > demand.extents[axis]) {
        return None;
    }
    let mut tiles = [1; 3];
    for axis in [1, 2] {
        let (extent, size) = (demand.extents[axis], window[axis - 1]);
        let own_side = |side: usize| if demand.fixed[axis][side] { margin[axis] } else { 0 };
        let used = size.checked_sub(2 * margin[axis]).filter(|&used| used > 0)?;
        tiles[axis] = extent.saturating_sub(own_side(0) + own_side(1)).div_ceil(used).max(1);
    }
    let slots = device.multiprocessors * blocks_per_multiprocessor;
    let fill = margin[0] + demand.behind(depth, lag);
    let tiles = [tiles[1], tiles[2]];
    let division = divide(demand, tiles, waves * slots, fill);
    let registers = device.registers_for(resident_threads);
    let mut streaming = WarpStreaming {
        depth,
        depth_asked: true,
        warps,
        cells_per_thread: own,
        margin,
        tiles,
        shares: division.shares,
        window_costs: division.window_costs,
        fill: division.fill,
        lag,
        ahead,
        carried_registers: demand.carried - carried_shared,
        carried_shared,
        blocks_per_multiprocessor,
        waves,
        shared_bytes: 0,
        registers,
        valid: 0.0,
        sufficient_depth: 0.0,
    };
    let windows = streaming.tiles[0] * streaming.tiles[1];
    let planes = windows * demand.extents[0] + (windows + streaming.shares - 1) * margin[0];
    let computed = planes * window[0] * window[1];
    streaming.valid = demand.extents.iter().product::<usize>() as f64 / computed.max(1) as f64;
    streaming.shared_bytes = shared_bytes(demand, &streaming);
    (streaming.shared_bytes <= device.shared_bytes_for(blocks_per_multiprocessor)).then_some(streaming)
}

/// Returns the number of windows across, and how many of them meet a boundary there.
fn windows(demand: &Demand, tiles: [usize; 2]) -> [usize; 2] {
    let [rows, columns] = tiles;
    let sides = |axis: usize| {
        if demand.periodic[axis] || demand.extents[axis] == 1 { 0 } else { tiles[axis - 1].min(2) }
    };
    let all = rows * columns;
    [all, all - (rows - sides(1)) * (columns - sides(2))]
}

/// The division of all windows' planes into shares.
struct Division {
    shares: usize,
    window_costs: [usize; 2],
    fill: usize,
}

/// Cuts the planes of all windows into at most `most` shares of equal cost.
fn divide(demand: &Demand, tiles: [usize; 2], most: usize, fill: usize) -> Division {
    let planes = demand.extents[0];
    let [plane, side] = PLANE_COSTS[usize::from(demand.extents[1] > 1)];
    let [all, sides] = windows(demand, tiles);
    // The shares of a window in the middle, and of one at a side, if no share has planes of two windows.
    let whole = |middle: usize| [middle.min(planes), (middle * side / plane).min(planes)];
    let sum = |costs: [usize; 2]| (all - sides) * costs[0] + sides * costs[1];
    let middle = most * plane / (all * plane + sides * (side - plane));
    if middle >= SHARES_OF_A_WINDOW {
        let costs = whole(middle);
        return Division { shares: sum(costs), window_costs: costs, fill: 0 };
    }
    let window_costs = [plane, side].map(|cost| cost * (planes + fill));
    Division { shares: most.min(all * planes), window_costs, fill }
}

/// Returns the planes that a block goes through, including those that it does not store, in planes of windows
/// that meet no boundary.
pub(super) fn planes_of_share(demand: &Demand, streaming: &WarpStreaming) -> f64 {
    let [all, sides] = windows(demand, streaming.tiles);
    let [middle, side] = streaming.window_costs.map(|cost| cost as f64);
    let weighted = (all - sides) as f64 + sides as f64 * side / middle;
    let begin = streaming.margin[0] + demand.behind(streaming.depth, streaming.lag);
    weighted * (demand.extents[0] + streaming.fill) as f64 / streaming.shares as f64 + begin as f64
}

/// Returns the bytes of shared memory per block: the ring of input planes, the edges of strips, the carried
/// values that registers do not hold, and per warp a row on its way out.
fn shared_bytes(demand: &Demand, streaming: &WarpStreaming) -> usize {
    let [height, width] = streaming.window();
    let levels = streaming.depth * demand.stages;
    let kept = if demand.fixed.as_flattened().contains(&true) {
        demand.behind(streaming.depth, streaming.lag)
    } else {
        0
    };
    let ring = (streaming.ahead + kept) * demand.fields * (height + 2 * demand.edge_rows) * width;
    let edges = (1 + usize::from(streaming.lag))
        * (levels - 1)
        * demand.fields
        * (streaming.warps + 2)
        * 2
        * demand.edge_rows
        * width;
    let carried = levels * streaming.carried_shared * height * width;
    (ring + edges + carried + streaming.warps * width) * demand.bytes
}

/// Returns the registers that a thread is likely to need; the compiler has the last word.
pub(super) fn working_registers(demand: &Demand, streaming: &WarpStreaming) -> usize {
    let own = streaming.cells_per_thread[0] * streaming.cells_per_thread[1];
    let levels = streaming.depth * demand.stages;
    let kept =
        levels * streaming.carried_registers + if streaming.lag { (levels - 1) * demand.fields } else { 0 };
    let lateral =
        demand.edge_rows * streaming.cells_per_thread[1] + demand.reach_x * streaming.cells_per_thread[0];
    let moving = own * (3 * demand.fields + 2 * streaming.carried_shared) / 2 + lateral;
    36 + demand.bytes / 4 * (own * kept + moving)
}

/// The depths that are tried where none is asked for.
const DEPTHS: [usize; 11] = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24];

/// Returns all streaming kernels that fit.
pub(super) fn candidates(demand: &Demand, device: &DeviceSpec, depth: Depth) -> Vec<WarpStreaming> {
    let depths = match depth {
        Depth::Auto => DEPTHS.to_vec(),
        Depth::Steps(steps) => vec![steps as usize],
    };
    let flat = demand.extents[1] == 1;
    let lanes = 16 / demand.bytes;
    // If planes have one row, a block is one warp and many blocks share a multiprocessor. Else a block of
    // many warps has a multiprocessor alone, or shares it with one other.
    let rows: &[usize] = if flat { &[1] } else { &[1, 2, 3, 4, 5, 6] };
    let warps: &[usize] = if flat { &[1] } else { &[4, 8, 12, 16] };
    let blocks: &[usize] = if flat { &[4, 8, 12, 16, 20, 24] } else { &[1, 2] };
    // Planes of one row are short, so more of them must be on their way.
    let ahead: &[usize] = if flat { &[5] } else { &[2, 3, 4] };
    let shared = if flat { 0 } else { demand.carried.min(2) };
    let mut all = Vec::new();
    for &depth in &depths {
        for &warps in warps {
            for &row in rows {
                for column in [lanes, 2 * lanes] {
                    for &blocks_per_multiprocessor in blocks {
                        // Stages a plane apart hide the latency that few warps leave exposed, and take
                        // registers that many warps need.
                        let lags: &[bool] =
                            if flat && blocks_per_multiprocessor > 8 { &[false] } else { &[false, true] };
                        let kinds = (0..=shared).flat_map(|n| lags.iter().map(move |&lag| (lag, n)));
                        for ((lag, carried_shared), &ahead) in
                            kinds.flat_map(|kind| ahead.iter().map(move |a| (kind, a)))
                        {
                            let configuration = |waves| Configuration {
                                depth,
                                warps,
                                cells_per_thread: [row, column],
                                lag,
                                ahead,
                                carried_shared,
                                blocks_per_multiprocessor,
                                waves,
                            };
                            all.extend(
                                (1..=2).filter_map(|waves| streaming(demand, device, &configuration(waves))),
                            );
                        }
                    }
                }
            }
        }
    }
    // The compiler often finds a way with fewer registers; if it does not, its report of spills says so.
    all.retain(|streaming| {
        working_registers(demand, streaming) <= streaming.registers + streaming.registers / 10
    });
    all
}

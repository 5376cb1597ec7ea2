//! All configurations of streaming by warps that fit a device.

use abide_core::device::Capability;
use abide_core::plan::WarpStreaming;
use abide_core::plan::streaming::portable::count_windows;
use abide_core::plan::streaming::warp::Configuration;
use abide_core::{Depth, DeviceSpec};

use crate::streaming::requirement::Demand;
use crate::streaming::windows;
use abide_core::domain::Boundary;

/// The cost of a plane of one row in windows that meet no boundary across, and in windows that do: as measured with
/// 2d5pt on an H200.
const LINE_COSTS: [usize; 2] = [2, 5];

/// The cost of a plane of several rows in windows that meet no boundary across, and in windows that do: where all sides
/// keep their values or a domain goes on at its other side, and where a side gives values to ghost cells; of stars, and of
/// boxes, whose ghost rows have columns of other lanes beside them. Measured on an H200 with stencils of 7 to 27 points
/// under several divisions; 1 to 4 % are lost where a plan's own optimum is another.
const PLANE_COST: usize = 100;

const SIDE_COSTS: [[usize; 2]; 2] = [[115, 115], [112, 117]];

/// Bytes of device memory that are written at once. Two neighbouring windows that each keep a part of a sector both
/// write all of it.
pub(super) const SECTOR: usize = 32;

/// The lanes on which taps beyond a thread's own cells reach at most: the kernel has so many bits for each side.
const MOST_LANES: usize = 6;

/// Shares per window from which each window is cut by itself.
const SHARES_OF_A_WINDOW: usize = 8;

/// Returns the streaming kernel of a configuration; `None` if it does not fit the device or the domain.
pub(super) fn streaming(
    demand: &Demand<'_>,
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
    let mut margin = [0, 1, 2].map(|axis| demand.margin(depth, axis));
    // Windows start at a multiple of 16 bytes, and keep whole sectors where that takes no more windows.
    margin[2] = margin[2].next_multiple_of(lanes);
    let carried = demand.most_carried();
    let window = [warps * own[0], 32 * own[1]];
    if threads > device.threads_per_block
        || resident_threads > device.threads
        || ahead < 2
        || carried_shared > carried
        || demand.mirrored_late().is_some()
        || own[0] * own[1] > 32
        || own[0] < demand.radius[1]
        || demand.radius[2] > MOST_LANES * own[1]
        || (own[1] > 1 && own[1] % lanes != 0)
        || (demand.extents[1] == 1 && window[0] > 1)
    {
        return None;
    }
    let tiles = windows_of(demand, window, margin)?;
    let whole = [margin[0], margin[1], margin[2].next_multiple_of(SECTOR / demand.bytes)];
    if windows_of(demand, window, whole) == Some(tiles) {
        margin = whole;
    }
    let slots = device.multiprocessors * blocks_per_multiprocessor;
    let fill = margin[0] + demand.behind(depth, usize::from(lag));
    let costs = if demand.extents[1] > 1 { [PLANE_COST, side_cost(demand)] } else { LINE_COSTS };
    let division = divide(demand, tiles, waves * slots, fill, costs);
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
        carried_registers: carried - carried_shared,
        carried_shared,
        blocks_per_multiprocessor,
        waves,
        chained: division.shares <= slots && device.has(Capability::Barrier),
        sums_cells: true,
        edges: None,
        shared_bytes: 0,
        registers,
        valid: 0.0,
        sufficient_depth: 0.0,
    };
    let count = tiles[0] * tiles[1];
    let planes = count * demand.extents[0] + (count + streaming.shares - 1) * margin[0];
    streaming.valid = windows::valid(demand, planes as f64, window);
    streaming.shared_bytes = shared_bytes(demand, &streaming);
    (streaming.shared_bytes <= device.shared_bytes_for(blocks_per_multiprocessor)).then_some(streaming)
}

/// Returns the windows that cover a plane of the domain; `None` if they cannot.
fn windows_of(demand: &Demand<'_>, window: [usize; 2], margin: [usize; 3]) -> Option<[usize; 2]> {
    // A periodic domain wraps once: the cells that a window needs from beyond the edge must lie in the
    // domain. A window keeps cells between its margins even if it holds the whole domain.
    if (0..3).any(|axis| demand.is_periodic(axis) && margin[axis] > demand.extents[axis])
        || (1..3).any(|axis| window[axis - 1] <= 2 * margin[axis])
    {
        return None;
    }
    let mut tiles = [1; 2];
    for axis in [1, 2] {
        let lead = demand.sides[axis].map(|side| if side == Boundary::Periodic { margin[axis] } else { 0 });
        tiles[axis - 1] = windows::tiles(demand.extents[axis], window[axis - 1], [margin[axis]; 2], lead)?;
    }
    Some(tiles)
}

/// Returns the number of windows that meet no boundary across, and of those that do or, on a periodic axis of no
/// whole number of words, copy cells one by one from the other side.
fn windows_across(demand: &Demand<'_>, tiles: [usize; 2]) -> [usize; 2] {
    let whole = |axis: usize| axis < 2 || demand.extents[axis].is_multiple_of(16 / demand.bytes);
    let ends =
        |axis: usize| !(demand.is_periodic(axis) && whole(axis)) && (axis == 2 || demand.extents[axis] > 1);
    count_windows(tiles, windows::at_sides(tiles, ends))
}

/// Returns the cost of a plane of several rows in windows that meet a boundary across.
fn side_cost(demand: &Demand<'_>) -> usize {
    let gives = |side: &Boundary| !matches!(side, Boundary::Fixed | Boundary::Periodic);
    let gives = demand.sides[1..].as_flattened().iter().any(gives);
    SIDE_COSTS[usize::from(demand.is_boxed())][usize::from(gives)]
}

/// The division of all windows' planes into shares.
struct Division {
    shares: usize,
    window_costs: [usize; 2],
    fill: usize,
}

/// Cuts the planes of all windows into at most `most` shares of equal cost, by the cost of a plane in windows that meet
/// no boundary across and in windows that do.
fn divide(
    demand: &Demand<'_>,
    tiles: [usize; 2],
    most: usize,
    fill: usize,
    [plane, side]: [usize; 2],
) -> Division {
    let planes = demand.extents[0];
    let [middle, sides] = windows_across(demand, tiles);
    let whole = most * plane / (middle * plane + sides * side);
    if whole >= SHARES_OF_A_WINDOW {
        // No share has planes of two windows.
        let window_costs = shares_of_windows([middle, sides], planes, most, fill, [plane, side]);
        let shares = middle * window_costs[0] + sides * window_costs[1];
        return Division { shares, window_costs, fill: 0 };
    }
    let window_costs = [plane, side].map(|cost| cost * (planes + fill));
    Division { shares: most.min((middle + sides) * planes), window_costs, fill }
}

/// Returns the shares of a window that meets no boundary across, and of one that does, with which the slowest share is
/// the fastest: no share has planes of two windows.
fn shares_of_windows(
    [middle, sides]: [usize; 2],
    planes: usize,
    most: usize,
    fill: usize,
    costs: [usize; 2],
) -> [usize; 2] {
    let slowest = |shares: [usize; 2]| {
        let cost = |kind: usize| costs[kind] * (planes.div_ceil(shares[kind]) + fill);
        (0..2).filter(|&kind| [middle, sides][kind] > 0).map(cost).max()
    };
    let even = (most / (middle + sides)).clamp(1, planes);
    // Windows at a boundary take what the others leave.
    let left =
        |own: usize| (most - own * middle).checked_div(sides).map_or(own, |left| left.clamp(own, planes));
    let all = (1..=even).map(|own| [own, left(own)]);
    all.rev().min_by_key(|&shares| slowest(shares)).unwrap_or([even, even])
}

/// Returns the planes that a block goes through, including those that it does not store, in planes of windows
/// that meet no boundary.
pub(super) fn planes_of_share(demand: &Demand<'_>, streaming: &WarpStreaming) -> f64 {
    let windows = windows_across(demand, streaming.tiles).map(|count| count as f64);
    let costs = streaming.window_costs.map(|cost| cost as f64);
    let weighted = windows[0] + windows[1] * costs[1] / costs[0];
    let begin = streaming.margin[0] + demand.behind(streaming.depth, usize::from(streaming.lag));
    weighted * (demand.extents[0] + streaming.fill) as f64 / streaming.shares as f64 + begin as f64
}

/// Returns the bytes of shared memory per block: the ring of input planes, the edges of strips, the carried
/// values that registers do not hold, and per warp a row on its way out.
fn shared_bytes(demand: &Demand<'_>, streaming: &WarpStreaming) -> usize {
    let [height, width] = streaming.window();
    let (levels, edge_rows) = (demand.levels(streaming.depth), demand.radius[1]);
    let lag = usize::from(streaming.lag);
    let is_fixed = demand.sides.as_flattened().contains(&Boundary::Fixed);
    let kept = if is_fixed { demand.behind(streaming.depth, lag) } else { 0 };
    let ring = (streaming.ahead + kept) * demand.fields * (height + 2 * edge_rows) * width;
    let edges = (1 + lag) * (levels - 1) * demand.passing * (streaming.warps + 2) * 2 * edge_rows * width;
    let carried = levels * streaming.carried_shared * height * width;
    (ring + edges + carried + streaming.warps * width) * demand.bytes
}

/// Returns the registers that a thread is likely to need; the compiler has the last word.
pub(super) fn working_registers(demand: &Demand<'_>, streaming: &WarpStreaming) -> usize {
    let [rows, columns] = streaming.cells_per_thread;
    let own = rows * columns;
    let levels = demand.levels(streaming.depth);
    let kept =
        levels * streaming.carried_registers + if streaming.lag { (levels - 1) * demand.passing } else { 0 };
    let lateral = demand.radius[1] * columns + demand.radius[2] * rows;
    let moving = own * (3 * demand.passing + 2 * streaming.carried_shared) / 2 + lateral;
    let planes = demand.behind(streaming.depth, usize::from(streaming.lag)) + 1;
    let bits = demand.masks * (planes * own).div_ceil(32);
    36 + demand.bytes / 4 * (own * kept + moving) + bits
}

/// The depths that are tried where none is asked for.
const DEPTHS: [usize; 11] = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24];

/// Returns all streaming kernels that fit.
pub(super) fn candidates(demand: &Demand<'_>, device: &DeviceSpec, depth: Depth) -> Vec<WarpStreaming> {
    let flat = demand.extents[1] == 1;
    let lanes = 16 / demand.bytes;
    // If planes have one row, a block is one warp and many blocks share a multiprocessor. Else a block of
    // many warps has a multiprocessor alone, or shares it with one other.
    let rows: &[usize] = if flat { &[1] } else { &[1, 2, 3, 4, 5, 6] };
    let warps: &[usize] = if flat { &[1] } else { &[4, 8, 12, 16] };
    let blocks: &[usize] = if flat { &[4, 8, 12, 16, 20, 24] } else { &[1, 2] };
    // Planes of one row are short, so more of them must be on their way.
    let ahead: &[usize] = if flat { &[5] } else { &[2, 3, 4] };
    let shared = if flat { 0 } else { demand.most_carried().min(2) };
    let mut all = Vec::new();
    for depth in depth.or(&DEPTHS) {
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

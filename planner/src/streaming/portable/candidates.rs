//! The configurations that fit, and the windows and shares that follow from them.

use abide_core::plan::PortableStreaming;
use abide_core::plan::streaming::portable::{Arrival, Configuration, Handover};
use abide_core::{DType, Depth, DeviceSpec};

use super::estimate::Cost;
use super::{MOST_WORDS, estimate};
use crate::streaming::requirement::Demand;
use crate::streaming::windows;
use crate::workgroups::{MOST_ARGUMENTS, MOST_OPERATIONS, most_words, product, rates};
use abide_core::domain::Boundary;

/// Depths that are tried, unless one is asked for.
const DEPTHS: [usize; 11] = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20];

/// Ways to hand cells over, each with the planes by which loads precede their use.
const WAYS: [(Handover, usize); 6] = [
    (Handover::DoubleSlots, 1),
    (Handover::DoubleSlots, 2),
    (Handover::Slots, 1),
    (Handover::Shuffles, 1),
    (Handover::Shuffles, 2),
    (Handover::Shuffles, 4),
];

/// Rounds of workgroups for which shares are cut.
const ROUNDS: [usize; 4] = [1, 2, 3, 5];

/// The cost of a plane in a window at a side, in halves of the cost in a window in the middle.
const SIDE_COST: usize = 3;

/// Returns all plans of planes that fit, with their estimated seconds per step.
pub(super) fn candidates(
    demand: &Demand<'_>,
    device: &DeviceSpec,
    depth: Depth,
) -> Vec<(f64, PortableStreaming)> {
    let depths = depth.or(&DEPTHS);
    let mut found = Vec::new();
    for (threads, cells) in divisions(demand.pass.problem.shape.dimensions()) {
        let arrivals = Arrival::all(&demand.carries, demand.axes, threads, cells);
        for &depth in &depths {
            for (handover, ahead) in WAYS {
                let configuration = Configuration { depth, threads, cells, ahead, handover, shares: 1 };
                let Some((uncut, cost)) = uncut(demand, device, &configuration, &arrivals) else { continue };
                for shares in shares(demand, device, &uncut, &cost) {
                    if let Some(streaming) = cut(demand, &uncut, shares) {
                        found.push((estimate::step_seconds(demand, device, &streaming, &cost), streaming));
                    }
                }
            }
        }
    }
    found
}

/// Returns the threads of a window and the cells of a thread to choose from, for a number of axes.
fn divisions(dimensions: usize) -> Vec<([usize; 2], [usize; 2])> {
    let (threads, cells): (Vec<[usize; 2]>, Vec<[usize; 2]>) = match dimensions {
        2 => ([32, 64, 128, 256, 512].map(|x| [1, x]).to_vec(), [1, 2, 4, 8].map(|x| [1, x]).to_vec()),
        _ => (product([4, 8, 16, 32], [8, 16, 32, 64]).collect(), product([1, 2, 4, 8], [1, 2, 4]).collect()),
    };
    let sized =
        threads.into_iter().filter(|threads| (32..=1024).contains(&threads.iter().product::<usize>()));
    sized.flat_map(|threads| cells.clone().into_iter().map(move |cells| (threads, cells))).collect()
}

/// Returns the numbers of shares that fill the device with nearly whole rounds of workgroups.
fn shares(demand: &Demand<'_>, device: &DeviceSpec, uncut: &PortableStreaming, cost: &Cost) -> Vec<usize> {
    let resident = rates::resident(device, uncut.threads_per_block(), cost.registers, uncut.shared_bytes);
    let places = (rates::units(device) * resident.max(1.0)) as usize;
    let [middle, sides] = uncut.windows();
    // The cost of all windows, in windows of the middle.
    let windows = if middle == 0 { sides } else { middle + sides * SIDE_COST / 2 };
    let share = |rounds: &usize| (rounds * places / windows).clamp(1, demand.extents[0]);
    let mut all: Vec<usize> = ROUNDS.iter().map(share).collect();
    all.dedup();
    all
}

/// Returns the windows of a configuration before their planes are cut into shares, with their cost; `None` if
/// the device or a compiler has no room for them, or the depth leaves nothing between the margins.
pub(super) fn uncut(
    demand: &Demand<'_>,
    device: &DeviceSpec,
    configuration: &Configuration,
    arrivals: &[Arrival],
) -> Option<(PortableStreaming, Cost)> {
    let Configuration { depth, threads, cells, ahead, handover, .. } = *configuration;
    let count = threads.iter().product::<usize>();
    let volume = cells.iter().product::<usize>();
    if count > device.threads_per_block || depth.checked_mul(volume)? > MOST_OPERATIONS {
        return None;
    }
    // The planes that wait before levels, and those on their way; one plane always waits before the first
    // level.
    let waiting = handover.lag() * (demand.levels(depth) - 1) + ahead;
    let sums = depth * arrivals.iter().map(|arrival| arrival.carry.slots.len()).sum::<usize>();
    let carried = volume * (sums + waiting * demand.fields);
    let words = demand.bytes / 4;
    if carried * words > most_words(device, MOST_WORDS)
        || volume * depth * demand.pass.operations > MOST_OPERATIONS.max(demand.pass.operations)
        || arrivals.iter().any(|arrival| arrival.taps.len() + arrival.carry.slots.len() + 3 > MOST_ARGUMENTS)
    {
        return None;
    }
    let slots = depth * arrivals.iter().map(|arrival| arrival.exchange.slots).sum::<usize>();
    // If threads have no cells to give, all handovers are the same.
    if slots == 0 && handover != Handover::DoubleSlots {
        return None;
    }
    if handover == Handover::Shuffles
        && (device.warp.is_none_or(|warp| threads != [1, warp]) || demand.pass.problem.dtype != DType::F32)
    {
        return None;
    }
    let pad = arrivals.iter().map(|arrival| arrival.exchange.pad).max().unwrap_or(0);
    let all_words = match slots * handover.copies() {
        0 => 0,
        given => given * count + 2 * pad,
    };
    let shared_bytes = (all_words * demand.bytes).next_multiple_of(16);
    if shared_bytes > device.shared_bytes_per_block {
        return None;
    }

    let (radius, extents) = (demand.radius, demand.extents);
    // Vectors of 16 bytes, or 8, if all rows, threads and windows begin with a whole vector.
    let lanes = [16, 8].map(|bytes| bytes / demand.bytes);
    let lanes =
        lanes.into_iter().find(|&lanes| extents[2].is_multiple_of(lanes) && cells[1].is_multiple_of(lanes));
    let lanes = lanes.unwrap_or(1);
    let [_, slower, faster] = demand.axes.order(demand.pass.reach);
    let mut margin = [demand.planes, slower, faster].map(|reach| reach.map(|reach| depth * reach));
    margin[2] = margin[2].map(|margin| margin.next_multiple_of(lanes));
    let lead: [[usize; 2]; 3] = std::array::from_fn(|axis| {
        std::array::from_fn(|side| match demand.sides[axis][side] {
            Boundary::Fixed => 0,
            Boundary::Periodic => margin[axis][side],
            _ => radius[axis].next_multiple_of(if axis == 2 { lanes } else { 1 }).min(margin[axis][side]),
        })
    });
    let mut tiles = [1; 2];
    for axis in [1, 2] {
        let window = threads[axis - 1] * cells[axis - 1];
        tiles[axis - 1] = windows::tiles(extents[axis], window, margin[axis], lead[axis])?;
    }
    let sides = windows::at_sides(tiles, |axis| radius[axis] > 0 && !demand.is_periodic(axis));
    let cost = Cost::of(demand, arrivals, configuration, carried, lanes);
    let streaming = PortableStreaming {
        configuration: *configuration,
        margin,
        lead,
        tiles,
        sides,
        side_shares: 1,
        lanes,
        behind: demand.behind(depth, handover.lag()),
        carried,
        shared_bytes,
        valid: 0.0,
    };
    Some((streaming, cost))
}

/// Cuts the planes of windows; `None` if there are more shares than planes, or more workgroups than a kernel
/// counts.
pub(super) fn cut(
    demand: &Demand<'_>,
    uncut: &PortableStreaming,
    shares: usize,
) -> Option<PortableStreaming> {
    let (planes, [before, behind]) = (demand.extents[0], uncut.margin[0]);
    let windows = uncut.tiles.iter().product::<usize>();
    let most = windows.checked_mul(shares)?.checked_mul(SIDE_COST)?;
    if shares > planes || most > i32::MAX as usize {
        return None;
    }
    let mut streaming = uncut.clone();
    streaming.configuration.shares = shares;
    streaming.side_shares = shares;
    if uncut.windows()[0] > 0 {
        streaming.side_shares = (shares * SIDE_COST).div_ceil(2).min(planes);
    }
    // A share also takes planes before its first own plane, and waits for those behind its last.
    let swept = planes + shares * (before + behind);
    streaming.valid = windows::valid(demand, windows as f64 * swept as f64, uncut.window());
    Some(streaming)
}

//! The configurations that fit, and the windows and shares that follow from them.

use super::estimate::{self, Cost};
use super::{
    Arrival, Axes, Carry, Configuration, Demand, Handover, MOST_ARGUMENTS, MOST_OPERATIONS, MOST_WORDS,
    PortableStreaming,
};
use crate::device::DeviceSpec;
use crate::domain::Boundary;
use crate::plan::Depth;
use crate::plan::portable::{most_words, product, rates};
use crate::real::DType;

/// Depths that are tried, unless one is asked for.
const DEPTHS: [usize; 11] = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20];

/// Ways to hand cells over, each with the planes by which loads are ahead.
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

/// The parts of a plan that follow from its depth, threads and cells per thread, whatever the shares.
pub(super) struct Layout {
    /// Planes by which the result is behind the arriving plane.
    behind: usize,
    margin: [[usize; 2]; 3],
    lead: [[usize; 2]; 3],
    tiles: [usize; 2],
    sides: [usize; 2],
    lanes: usize,
    carried: usize,
    shared_bytes: usize,
    pub cost: Cost,
}

/// Returns all plans of planes that fit, with their estimated seconds per step.
pub(super) fn candidates(
    demand: &Demand<'_>,
    device: &DeviceSpec,
    depth: Depth,
) -> Vec<(f64, PortableStreaming)> {
    let depths = match depth {
        Depth::Steps(steps) => vec![steps as usize],
        Depth::Auto => DEPTHS.to_vec(),
    };
    let mut found = Vec::new();
    let dimensions = demand.problem.shape.dimensions();
    let axes = Axes::of(dimensions);
    let carries: Vec<Carry> = demand
        .program
        .stages()
        .iter()
        .map(|stage| Carry::of(stage, demand.program.fields().len(), axes))
        .collect();
    for (threads, cells) in divisions(dimensions) {
        let arrival = |carry: &Carry| Arrival::of(carry.clone(), axes, threads, cells);
        let arrivals: Vec<Arrival> = carries.iter().map(arrival).collect();
        for &depth in &depths {
            for (handover, ahead) in WAYS {
                let mut configuration = Configuration { depth, threads, cells, ahead, handover, shares: 1 };
                let Some(layout) = layout(demand, device, &configuration, &arrivals) else { continue };
                for shares in shares(demand, device, &layout, &configuration) {
                    configuration.shares = shares;
                    if let Some(planes) = planes(demand, &layout, &configuration) {
                        found.push((estimate::step_seconds(demand, device, &planes, &layout.cost), planes));
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
fn shares(
    demand: &Demand<'_>,
    device: &DeviceSpec,
    layout: &Layout,
    configuration: &Configuration,
) -> Vec<usize> {
    let threads = configuration.threads.iter().product::<usize>();
    let resident = rates::resident(device, threads, layout.cost.registers, layout.shared_bytes).max(1.0);
    let places = (rates::units(device) * resident) as usize;
    let middle = (layout.tiles[0] - layout.sides[0]) * (layout.tiles[1] - layout.sides[1]);
    let sides = layout.tiles.iter().product::<usize>() - middle;
    // The cost of all windows, in windows of the middle.
    let windows = if middle == 0 { sides } else { middle + sides * SIDE_COST / 2 };
    let planes = Axes::of(demand.problem.shape.dimensions()).order(demand.problem.shape.padded())[0];
    let mut all: Vec<usize> =
        ROUNDS.iter().map(|rounds| (rounds * places / windows).clamp(1, planes)).collect();
    all.dedup();
    all
}

/// Returns the windows of a configuration, whatever its shares; `None` if the device or a compiler has no
/// room for them, or its depth leaves nothing between the margins.
pub(super) fn layout(
    demand: &Demand<'_>,
    device: &DeviceSpec,
    configuration: &Configuration,
    arrivals: &[Arrival],
) -> Option<Layout> {
    let Configuration { depth, threads, cells, ahead, handover, .. } = *configuration;
    let problem = demand.problem;
    let axes = Axes::of(problem.shape.dimensions());
    let count = threads.iter().product::<usize>();
    let volume = cells.iter().product::<usize>();
    let fields = demand.program.fields().len();
    if count > device.threads_per_block || depth.checked_mul(volume)? > MOST_OPERATIONS {
        return None;
    }
    // The planes that wait before levels, and those on their way; one plane always waits before the first
    // level.
    let waiting = handover.lag() * (depth * arrivals.len() - 1) + ahead;
    let sums = depth * arrivals.iter().map(|arrival| arrival.carry.slots.len()).sum::<usize>();
    let carried = volume * (sums + waiting * fields);
    let words = problem.dtype.bytes() / 4;
    if carried * words > most_words(device, MOST_WORDS)
        || volume * depth * demand.operations > MOST_OPERATIONS.max(demand.operations)
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
        && (device.warp.is_none_or(|warp| threads != [1, warp]) || problem.dtype != DType::F32)
    {
        return None;
    }
    let pad = arrivals.iter().map(|arrival| arrival.exchange.pad).max().unwrap_or(0);
    let all_words = match slots * handover.copies() {
        0 => 0,
        given => given * count + 2 * pad,
    };
    let shared_bytes = (all_words * problem.dtype.bytes()).next_multiple_of(16);
    if shared_bytes > device.shared_bytes_per_block {
        return None;
    }

    let swept: [usize; 2] = std::array::from_fn(|side| {
        depth
            * arrivals.iter().map(|arrival| arrival.carry.planes[side].unsigned_abs() as usize).sum::<usize>()
    });
    let mut margin = axes.order(demand.reach).map(|reach| reach.map(|reach| depth * reach));
    margin[0] = swept;
    let (radius, extents) = (axes.order(demand.radius), axes.order(problem.shape.padded()));
    // Vectors of 16 bytes, or 8, if all rows, threads and windows begin with a whole vector.
    let lanes = [16, 8].map(|bytes| bytes / problem.dtype.bytes());
    let lanes =
        lanes.into_iter().find(|&lanes| extents[2].is_multiple_of(lanes) && cells[1].is_multiple_of(lanes));
    let lanes = lanes.unwrap_or(1);
    margin[2] = margin[2].map(|margin| margin.next_multiple_of(lanes));
    let sides = axes.order(problem.boundaries.0);
    let lead: [[usize; 2]; 3] = std::array::from_fn(|axis| {
        std::array::from_fn(|side| match sides[axis][side] {
            Boundary::Fixed => 0,
            Boundary::Periodic => margin[axis][side],
            _ => radius[axis].next_multiple_of(if axis == 2 { lanes } else { 1 }).min(margin[axis][side]),
        })
    });
    let mut tiles = [1; 2];
    for axis in [1, 2] {
        let (needed, window) =
            (lead[axis][0] + extents[axis] + lead[axis][1], threads[axis - 1] * cells[axis - 1]);
        if needed > window {
            let tile = window.checked_sub(margin[axis][0] + margin[axis][1]).filter(|&tile| tile > 0)?;
            tiles[axis - 1] = 1 + (needed - window).div_ceil(tile);
        }
    }
    let sides = std::array::from_fn(|axis| {
        let ends = radius[axis + 1] > 0 && !sides[axis + 1].contains(&Boundary::Periodic);
        if ends { tiles[axis].min(2) } else { 0 }
    });
    let cost = Cost::of(demand, arrivals, configuration, carried, lanes);
    let behind = swept[1] + handover.lag() * (depth * arrivals.len() - 1);
    Some(Layout { behind, margin, lead, tiles, sides, lanes, carried, shared_bytes, cost })
}

/// Returns the planes of a configuration; `None` if it has more shares than planes, or more workgroups than a
/// kernel counts.
pub(super) fn planes(
    demand: &Demand<'_>,
    layout: &Layout,
    configuration: &Configuration,
) -> Option<PortableStreaming> {
    let extents = Axes::of(demand.problem.shape.dimensions()).order(demand.problem.shape.padded());
    let windows = layout.tiles.iter().product::<usize>();
    let most = windows.checked_mul(configuration.shares)?.checked_mul(SIDE_COST)?;
    if configuration.shares > extents[0] || most > i32::MAX as usize {
        return None;
    }
    let mut planes = PortableStreaming {
        configuration: *configuration,
        margin: layout.margin,
        lead: layout.lead,
        tiles: layout.tiles,
        sides: layout.sides,
        side_shares: configuration.shares,
        lanes: layout.lanes,
        behind: layout.behind,
        carried: layout.carried,
        shared_bytes: layout.shared_bytes,
        valid: 0.0,
    };
    if planes.windows()[0] > 0 {
        planes.side_shares = (configuration.shares * SIDE_COST).div_ceil(2).min(extents[0]);
    }
    let [height, width] = planes.window();
    // Both margins of a share: the planes that it takes before its first own plane, and those that wait
    // behind its last.
    let swept = extents[0] + configuration.shares * (layout.margin[0][0] + layout.margin[0][1]);
    let computed = windows as f64 * (height * width) as f64 * swept as f64;
    planes.valid = demand.problem.shape.cells() as f64 / computed;
    Some(planes)
}

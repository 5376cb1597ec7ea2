//! All divisions into tiles that a device holds.

use abide_core::plan::Resident;
use abide_core::plan::resident::{Configuration, Exchange};
use abide_core::{Depth, DeviceSpec};

use crate::streaming::requirement::Demand;
use abide_core::domain::Boundary;

/// Returns the ways that are worth a try: on an H200 tags were slower for f64 in two and three dimensions, and in
/// three for the smallest domains alone not.
fn worthwhile(demand: &Demand<'_>) -> &'static [Exchange] {
    match demand.dimensions() {
        1 => &Exchange::ALL,
        2 if demand.bytes == 4 => &Exchange::ALL,
        _ => &[Exchange::Counted],
    }
}

/// The depths that are tried where none is asked for.
const DEPTHS: [usize; 9] = [1, 2, 3, 4, 6, 8, 10, 12, 16];

/// Bytes of shared memory for a tile's place in the domain.
const PLACE_BYTES: usize = 64;

/// The most lines of a warp: its sweep is unrolled.
pub(super) const MOST_LINES: usize = 40;

/// Tiles along an axis.
struct Division {
    tiles: usize,
    tile: usize,
    margin: usize,
}

/// Divides an axis into tiles of at most `most` cells, whose sides go wrong by `margin`. A tile reads `ring` cells
/// beyond its own. `None` if `most` cells are too few.
fn divide(demand: &Demand<'_>, axis: usize, most: usize, margin: usize, ring: usize) -> Option<Division> {
    let (extent, sides) = (demand.extents[axis], demand.sides[axis]);
    let periodic = demand.is_periodic(axis);
    // Along the fastest axis held cells are in the tile; along the others they lie beyond it.
    let held = if axis == 2 { 0 } else { demand.radius[axis] };
    let cut = sides.iter().filter(|&&side| side == Boundary::Fixed).count() * held;
    let computed = extent.checked_sub(cut).filter(|&n| n > 0)?;
    // One tile holds the axis as a whole.
    if (computed <= most && !periodic) || (computed == most && periodic) {
        return Some(Division { tiles: 1, tile: if axis == 2 { most } else { computed }, margin: 0 });
    }
    let use_of = most.checked_sub(2 * margin).filter(|&n| n > 0)?;
    if axis == 2 && periodic && extent + 2 * margin <= most {
        // A tile that reads its own far end; an index wraps once.
        return (extent >= margin && most - margin <= 2 * extent).then_some(Division {
            tiles: 1,
            tile: most,
            margin,
        });
    }
    let tiles = if periodic { extent.div_ceil(use_of) } else { (computed - 2 * margin).div_ceil(use_of) };
    if tiles < 2 {
        // A periodic axis that is no tile's exact extent.
        return None;
    }
    // A tile's halo must lie in the tile beside it, and an index wraps once. Words of 16 bytes may move a beginning back.
    let slack = if axis == 2 { 16 / demand.bytes } else { 0 };
    let whole = if periodic { extent } else { computed - most };
    let gaps = if periodic { tiles } else { tiles - 1 };
    let (least, farthest) = (whole / gaps, whole.div_ceil(gaps) + slack);
    (least >= margin + ring + slack
        && farthest + 2 * margin <= most
        && (!periodic || extent + margin >= most + ring))
        .then_some(Division { tiles, tile: most, margin })
}

/// Returns the tiles of a configuration; `None` if they do not fit.
pub(super) fn resident(
    demand: &Demand<'_>,
    device: &DeviceSpec,
    configuration: &Configuration,
) -> Option<Resident> {
    let Configuration { depth, warps, planes, planes_registers, cells_per_thread: own, .. } = *configuration;
    let blocks_per_multiprocessor = configuration.blocks_per_multiprocessor;
    let threads = 32 * warps;
    let resident_threads = threads * blocks_per_multiprocessor;
    if threads > device.threads_per_block
        || resident_threads > device.threads
        || planes_registers > planes
        || planes * own[0] > MOST_LINES
    {
        return None;
    }
    let stacked = demand.dimensions() < 3;
    let radius = demand.radius;
    let lanes = 16 / demand.bytes;
    let vector = [lanes, 2].into_iter().find(|v| own[1].is_multiple_of(*v)).unwrap_or(1);
    // The ring spares what the first stage reaches.
    let ring = [radius[0], radius[1]];
    let margins: [usize; 3] = std::array::from_fn(|axis| match axis {
        2 => demand.margin(depth, axis).next_multiple_of(vector),
        _ => demand.margin_within(depth, axis),
    });
    let lines = if stacked { [warps * planes, 1] } else { [planes, warps * own[0]] };
    let s = divide(demand, 0, lines[0], margins[0], ring[0])?;
    let y = divide(demand, 1, lines[1], margins[1], ring[1])?;
    let x = divide(demand, 2, 32 * own[1], margins[2], 0)?;
    // Warps that overlap share a line at most along the swept axis; lines of a plane may be shared at will.
    let spare = [lines[0] - s.tile, lines[1] - y.tile];
    if stacked {
        let reach = reach_out(demand, ring[0], spare[0] > 0);
        if spare[0] >= warps || (warps > 1 && planes < reach) || (warps == 1 && spare[0] > 0) {
            return None;
        }
    } else if spare[0] > 0 || (warps == 1 && spare[1] > 0) || y.tile < own[0] {
        return None;
    }
    // A side shows cells of the first lane, which holds them all, but for one that its neighbour may hold.
    let sided = demand.sides[2].iter().any(|side| side.shows_this_side() || side.held().is_some());
    if (sided && radius[2] > own[1]) || radius[2] > 16 * own[1] {
        return None;
    }
    let tiles = [s.tiles, y.tiles, x.tiles];
    if tiles.iter().product::<usize>() > device.multiprocessors * blocks_per_multiprocessor {
        return None;
    }
    let mut all = Resident {
        depth,
        warps,
        stacked,
        planes,
        planes_registers,
        cells_per_thread: own,
        tiles,
        tile: [s.tile, y.tile, x.tile],
        margin: [s.margin, y.margin, x.margin],
        ring,
        halves: 2,
        blocks_per_multiprocessor,
        exchange: Exchange::Counted,
        shared_bytes: 0,
        registers: device.registers_for(resident_threads),
    };
    if all.exchanges() {
        all.exchange = configuration.exchange;
    }
    let room = device.shared_bytes_for(blocks_per_multiprocessor);
    for halves in [2, 1] {
        all.halves = halves;
        all.shared_bytes = shared_bytes(demand, &all);
        if all.shared_bytes <= room {
            return Some(all);
        }
    }
    None
}

/// Returns the lines at an end of a warp's, all of a plane each, that other warps or its own ghost lines read: as many as
/// taps reach, and one more where warps overlap or a side's outermost line is the mirror.
fn reach_out(demand: &Demand<'_>, ring: usize, overlap: bool) -> usize {
    let shown = demand.pass.problem.boundaries.shown_at_side(demand.axes.0[0], ring);
    shown.max(ring + usize::from(overlap))
}

/// Returns the bytes of shared memory of a block: lines that other warps read, the planes that registers do not
/// hold, and columns on their way to other tiles.
fn shared_bytes(demand: &Demand<'_>, resident: &Resident) -> usize {
    let Resident { warps, planes, stacked, tile, ring, margin, cells_per_thread: own, .. } = resident;
    let reach = reach_out(demand, ring[0], tile[0] != warps * planes);
    let published = (2 * reach).min(*planes);
    let lines_s = 2 * ring[0] + if *stacked { warps * published } else { *planes };
    let lines = if ring[0] + ring[1] > 0 { lines_s * (tile[1] + 2 * ring[1]) * 32 * own[1] } else { 0 };
    let written = demand.pass.written;
    let copies = written * resident.halves + (demand.fields - written);
    let rest = demand.fields * (planes - resident.planes_registers) * own[0] * own[1] * 32 * warps;
    // Counted fields go one after another, tagged ones at once.
    let at_once = match resident.exchange {
        Exchange::Counted => 1,
        Exchange::Tagged => written,
    };
    let columns = at_once * warps * planes * own[0] * 2 * margin[2];
    PLACE_BYTES + (copies * lines + rest + columns) * demand.bytes
}

/// Returns the planes of a warp that registers hold beside all else.
pub(super) fn planes_in_registers(
    demand: &Demand<'_>,
    registers: usize,
    planes: usize,
    own: [usize; 2],
) -> usize {
    let words = demand.bytes / 4;
    let [_, ry, rx] = demand.radius;
    let wide = (own[0] + 2 * ry) * (own[1] + 2 * rx);
    let carried = demand.most_carried() * own[0] * own[1];
    let working = 34 + words * (wide * demand.fields.min(2) + carried);
    let plane = words * demand.fields * own[0] * own[1];
    // The compiler needs some room to move.
    (registers.saturating_sub(working) * 15 / 16 / plane).min(planes)
}

/// Returns all tiles that fit.
pub(super) fn candidates(demand: &Demand<'_>, device: &DeviceSpec, depth: Depth) -> Vec<Resident> {
    let dimensions = demand.dimensions();
    let warps: &[usize] = match dimensions {
        1 => &[1],
        _ => &[1, 2, 4, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16, 20, 24, 32],
    };
    // Lanes of one column shuffle more than they compute.
    let columns: &[usize] = match dimensions {
        1 => &[1, 2, 4, 8, 16, 32],
        _ if demand.extents[2] <= 32 => &[1, 2, 4],
        _ => &[2, 4, 8],
    };
    let rows: &[usize] = if dimensions == 3 { &[1, 2, 3, 4] } else { &[1] };
    let blocks: &[usize] = if dimensions == 1 { &[1, 4, 16] } else { &[1] };
    let most_planes = if dimensions == 1 { 1 } else { MOST_LINES };
    let cells = demand.extents.iter().product::<usize>();
    let mut all = Vec::new();
    for depth in depth.or(&DEPTHS) {
        for &warps in warps {
            for (&row, &column) in rows.iter().flat_map(|r| columns.iter().map(move |c| (r, c))) {
                for &blocks_per_multiprocessor in blocks {
                    let resident_threads = 32 * warps * blocks_per_multiprocessor;
                    if resident_threads > device.threads.min(1024) {
                        continue;
                    }
                    let registers = device.registers_for(resident_threads);
                    let slots = resident_threads * device.multiprocessors * row * column;
                    for planes in 1..=most_planes / row {
                        // Too few threads to hold the domain at all.
                        if slots * planes < cells {
                            continue;
                        }
                        let planes_registers = planes_in_registers(demand, registers, planes, [row, column]);
                        for &exchange in worthwhile(demand) {
                            let configuration = Configuration {
                                depth,
                                warps,
                                planes,
                                planes_registers,
                                cells_per_thread: [row, column],
                                blocks_per_multiprocessor,
                                exchange,
                            };
                            all.extend(resident(demand, device, &configuration));
                        }
                    }
                }
            }
        }
    }
    all
}

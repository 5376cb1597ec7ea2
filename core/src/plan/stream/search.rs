//! All streams that fit a device.

use super::{Axes, Stream, carries};
use crate::device::DeviceSpec;
use crate::grid::Boundary;
use crate::plan::Depth;
use crate::program::Problem;

/// How much finer windows at the sides are cut; measured on an H200.
const SIDE_CUT: usize = 3;

/// What may be chosen freely of a stream; the rest follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    /// Steps of a launch.
    pub depth: usize,
    /// Warps of a block.
    pub warps: usize,
    /// Cells of a plane that a thread owns.
    pub cells_per_thread: [usize; 2],
    /// Whether stages work a plane apart.
    pub lag: bool,
    /// Planes of the input in shared memory.
    pub ahead: usize,
    /// Values a cell and stage carried in shared memory.
    pub carried_shared: usize,
    /// Blocks resident on one multiprocessor.
    pub blocks_per_multiprocessor: usize,
    /// Times that the device is filled with blocks.
    pub waves: usize,
}

/// What a program asks of every stream.
pub(super) struct Demand {
    /// The swept, slower and faster extents, radii of a step, and whether either side of the axis is fixed.
    extents: [usize; 3],
    radius: [usize; 3],
    fixed: [[bool; 2]; 3],
    periodic: [bool; 3],
    mirror_swept: bool,
    /// The most rows beyond its own that a stage taps along the slower axis.
    edge_rows: usize,
    /// The most values a cell that any stage carries.
    pub carried: usize,
    /// Stages of a step.
    pub stages: usize,
    pub fields: usize,
    pub bytes: usize,
}

impl Demand {
    pub(super) fn of(problem: &Problem) -> Demand {
        let axes = Axes::of(problem.shape.dimensions());
        let carries = carries(problem);
        let sides = axes.order(problem.boundaries.0);
        let sum = |axis: usize| problem.program.stages().iter().map(|s| axes.order(s.footprint.radius)[axis]).sum();
        Demand {
            extents: axes.order(problem.shape.padded()),
            radius: [0, 1, 2].map(sum),
            fixed: sides.map(|sides| sides.map(|side| side == Boundary::Fixed)),
            periodic: sides.map(|sides| sides.contains(&Boundary::Periodic)),
            edge_rows: problem.program.stages().iter().map(|s| axes.order(s.footprint.radius)[1]).max().unwrap_or(0),
            mirror_swept: sides[0].contains(&Boundary::Mirror),
            carried: carries.iter().map(|carry| carry.slots.len()).max().unwrap_or(0),
            stages: carries.len(),
            fields: problem.program.fields().len(),
            bytes: problem.dtype.bytes(),
        }
    }
}

impl Stream {
    /// The stream of a form, where it fits the device and the domain.
    pub fn of(problem: &Problem, device: &DeviceSpec, form: &Form) -> Option<Stream> {
        stream(&Demand::of(problem), device, form)
    }
}

pub(super) fn stream(demand: &Demand, device: &DeviceSpec, form: &Form) -> Option<Stream> {
    let Form { depth, warps, cells_per_thread: own, lag, ahead, carried_shared, blocks_per_multiprocessor, waves } = *form;
    let threads = 32 * warps;
    let resident_threads = threads * blocks_per_multiprocessor;
    let lanes = 16 / demand.bytes;
    let margin = [0, 1, 2].map(|axis| depth * demand.radius[axis]);
    // Windows start on a boundary of 16 bytes.
    let margin = [margin[0], margin[1], margin[2].next_multiple_of(lanes)];
    let window = [warps * own[0], 32 * own[1]];
    if threads > device.threads_per_block
        || resident_threads > device.threads
        || ahead < 2
        || carried_shared > demand.carried
        || (demand.mirror_swept && !lag)
        || own[0] * own[1] > 32
        || own[0] < demand.edge_rows
        || (own[1] > 1 && own[1] % lanes != 0)
        || (demand.extents[1] == 1 && window[0] > 1)
    {
        return None;
    }
    // A periodic domain wraps once: what a window needs from beyond it must lie in the domain.
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
    // Windows of one warp end when they are done; those at the sides, slower by half or more, are cut finer.
    let cut = if warps == 1 && tiles[1] == 1 { SIDE_CUT } else { 1 };
    let across = tiles[1] * tiles[2] + (cut - 1) * tiles[2].min(2);
    let slots = device.multiprocessors * blocks_per_multiprocessor;
    tiles[0] = (waves * slots / across).clamp(1, demand.extents[0].div_ceil(cut));
    let chunk = demand.extents[0].div_ceil(tiles[0]);
    tiles[0] = demand.extents[0].div_ceil(chunk);
    let registers = (device.registers / resident_threads).min(device.registers_per_thread) / 8 * 8;
    let registers = if registers >= 248 { device.registers_per_thread } else { registers };
    let mut stream = Stream {
        depth,
        warps,
        cells_per_thread: own,
        margin,
        tiles,
        chunk,
        cut,
        lag,
        ahead,
        carried_registers: demand.carried - carried_shared,
        carried_shared,
        blocks_per_multiprocessor,
        waves,
        shared_bytes: 0,
        registers,
    };
    stream.shared_bytes = shared_bytes(demand, &stream);
    let limit = device.shared_bytes_per_block.min(
        (device.shared_bytes / blocks_per_multiprocessor).saturating_sub(device.shared_bytes_reserved),
    );
    (stream.shared_bytes <= limit).then_some(stream)
}

/// The ring of input planes, the edges of strips, what is carried beside the registers, and a row a warp on its way out.
fn shared_bytes(demand: &Demand, stream: &Stream) -> usize {
    let [height, width] = stream.window();
    let levels = stream.depth * demand.stages;
    let ring = stream.ahead * demand.fields * height * width;
    let edges = (1 + usize::from(stream.lag)) * (levels - 1) * demand.fields * stream.warps * 2 * demand.edge_rows * width;
    let carried = levels * stream.carried_shared * height * width;
    (ring + edges + carried + stream.warps * width) * demand.bytes
}

/// Registers that a thread is likely to need.
pub(super) fn working_registers(demand: &Demand, stream: &Stream) -> usize {
    let own = stream.cells_per_thread[0] * stream.cells_per_thread[1];
    let levels = stream.depth * demand.stages;
    let kept = levels * (stream.carried_registers + if stream.lag { demand.fields } else { 0 });
    let lateral = 2 * (demand.radius[1] * stream.cells_per_thread[1] + demand.radius[2] * stream.cells_per_thread[0]);
    let moving = own * (2 * demand.fields + stream.carried_shared) + lateral;
    30 + demand.bytes / 4 * (own * kept + moving)
}

/// The depths that are tried where none is asked for.
const DEPTHS: [usize; 12] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24];

/// All streams that fit.
pub(super) fn candidates<'a>(
    problem: &'a Problem,
    device: &'a DeviceSpec,
    depth: Depth,
) -> impl Iterator<Item = Stream> + 'a {
    let demand = Demand::of(problem);
    let depths = match depth {
        Depth::Auto => DEPTHS.to_vec(),
        Depth::Steps(steps) => vec![steps as usize],
    };
    let flat = demand.radius[1] == 0 && demand.extents[1] == 1;
    let lanes = 16 / demand.bytes;
    let rows: &[usize] = if flat { &[1] } else { &[1, 2, 3, 4, 6] };
    let columns = [lanes, 2 * lanes, 4 * lanes];
    let warps: &[usize] = if flat { &[1] } else { &[4, 8, 10, 12, 14, 16, 20, 24] };
    let blocks: &[usize] = if flat { &[4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32] } else { &[1, 2] };
    let mut all = Vec::new();
    for &depth in &depths {
        for &warps in warps {
            for &row in rows {
                for column in columns {
                    for &blocks_per_multiprocessor in blocks {
                        for lag in [false, true] {
                            for waves in 1..=4 {
                                let form = Form {
                                    depth,
                                    warps,
                                    cells_per_thread: [row, column],
                                    lag,
                                    ahead: if flat { 5 } else { 2 },
                                    carried_shared: 0,
                                    blocks_per_multiprocessor,
                                    waves,
                                };
                                all.extend(stream(&demand, device, &form));
                            }
                        }
                    }
                }
            }
        }
    }
    all.retain(|stream| working_registers(&demand, stream) <= stream.registers);
    all.into_iter()
}

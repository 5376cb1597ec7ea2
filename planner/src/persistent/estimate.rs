//! The bytes that a step of a sweep moves, and the planner's estimate of its time.

use abide_core::domain::Axes;
use abide_core::plan::traffic::Traffic;
use abide_core::plan::{Persistent, Synchronisation};
use abide_core::{DeviceSpec, Problem};

use crate::estimate::{issued, operations};

/// Returns the bytes and operations of a step under a sweep, for the projection.
pub(super) fn traffic(problem: &Problem, device: &DeviceSpec, persistent: &Persistent) -> Traffic {
    let axes = Axes::of(problem.shape.dimensions());
    let extents = axes.order(problem.shape.padded());
    let bytes = problem.dtype.bytes() as f64;
    let mut traffic = Traffic::uncached(problem, device);
    let [registers, shared] = persistent.cached_cells(problem);
    (traffic.cached_registers, traffic.cached_shared) = (registers as f64, shared as f64);
    let plane = persistent.plane();
    let side = [persistent.planes[1], plane[0].min(extents[1]), plane[1].min(extents[2])];
    let own = (persistent.cells_per_thread[0] * persistent.cells_per_thread[1]) as f64;
    for stage in problem.program.stages() {
        for radius in stage.footprint.field_radius.iter().flatten().filter(|r| **r != [0; 3]) {
            let radius = axes.order(*radius);
            let halo = (0..3).filter(|&axis| persistent.tiles[axis] > 1).map(|axis| {
                let face: usize = (0..3).filter(|&other| other != axis).map(|other| side[other]).product();
                2 * radius[axis] * face
            });
            // Halo cells are stored by one tile and loaded by another; uncached planes are already counted as
            // a whole.
            traffic.halo_bytes +=
                2.0 * bytes * (halo.sum::<usize>() * persistent.blocks) as f64 * traffic.cached_share();
            let extended = (persistent.cells_per_thread[0] + 2 * radius[1])
                * (persistent.cells_per_thread[1] + 2 * radius[2]);
            traffic.kernel_shared_bytes += bytes * (1.0 + (extended as f64 - own) / own);
        }
    }
    traffic.overhead_seconds = device.barrier_seconds * problem.program.stages().len() as f64;
    traffic
}

/// Factors from what [`step_seconds`] counts to the measured time, fitted to 187 kernels on an H200: fourteen stencils and
/// models, 32³ to 128×192×256 and 64² to 3533×2167, f32 and f64, where the root mean square of the relative error is 15 %.
struct Factors {
    /// Of the instructions, for planes of one row and of several.
    work: [f64; 2],
    /// Of the bytes that stream through the chip where nothing stays on it, for planes of one row and of several.
    stream: [f64; 2],
    /// The same where a part of the domain stays on the chip: shared memory then leaves no room for a first-level cache.
    stream_beside: f64,
    /// Of halos: they move while others compute.
    halo: f64,
    barrier: f64,
}

const FACTORS: Factors =
    Factors { work: [0.75, 1.3], stream: [0.85, 0.7], stream_beside: 1.85, halo: 0.6, barrier: 1.15 };

/// The factor of the instructions where planes are kept in registers: the sweep is unrolled, its code is long, and the
/// registers that are left hide little latency. Measured on an H200 for eight stencils of two axes, on domains that just
/// fit: 1.1 to 2.5 times the time that is counted.
const UNROLLED: f64 = 1.6;

/// The same where a thread has so few planes that all of them are in registers: no loads, and little code.
const IN_REGISTERS: f64 = 0.6;

const FEW_PLANES: usize = 8;

/// The additional time of the bytes that stream through the chip in three dimensions, for each field beyond two. Fitted to one
/// kernel: Maxwell's equations of seven fields, 512³ f32 on an H200, 4.55 ms.
const FIELD_MORE: f64 = 0.25;

/// Returns the planner's own estimate of a step in seconds, finer than the projected peak: it also counts the
/// tail of uneven tiles, the issue of instructions, and the latency that few threads leave exposed.
pub(super) fn step_seconds(problem: &Problem, device: &DeviceSpec, persistent: &Persistent) -> f64 {
    let traffic = traffic(problem, device, persistent);
    let plane = persistent.plane();
    let rounds = persistent.tile_count().div_ceil(persistent.blocks);
    let busiest =
        (rounds * persistent.planes[1] * plane[0] * plane[1] * persistent.blocks_per_multiprocessor) as f64;
    let own = (persistent.cells_per_thread[0] * persistent.cells_per_thread[1]) as f64;
    let threads = (persistent.threads_per_block() * persistent.blocks_per_multiprocessor) as f64;
    // Issue slots per cell: the arithmetic; for each field some selects and moves; and a share of the row's
    // exchange between threads and of the barrier, which a block of one warp hardly feels. Fitted to 2d5pt,
    // 2d25pt and gray-scott on an H200, where nothing else works beside the f64 pipe.
    let barrier = if persistent.threads_per_block() <= device.warp.unwrap_or(1) { 20.0 } else { 80.0 };
    let fields = problem.program.fields().len() as f64;
    let instructions =
        traffic.flops / 2.0 + fields * (10.0 + 40.0 / own + barrier / (own * persistent.chunk as f64));
    let clocks = device.shared_bandwidth.max(1.0) / 128.0;
    let hidden = (threads / 448.0).min(1.0);
    let issue = busiest * device.multiprocessors as f64 * instructions / (128.0 * clocks) / hidden;
    let arithmetic =
        busiest * device.multiprocessors as f64 * traffic.flops / traffic.flops_per_second.max(1.0);
    let uncached = traffic.cells - traffic.cached();
    let streamed = uncached * (traffic.load_bytes + traffic.store_bytes);
    let in_l2 = 2.0 * uncached * traffic.changing_bytes < device.l2_bytes as f64 * 0.8;
    let bandwidth = if in_l2 { device.l2_bandwidth } else { device.memory_bandwidth };
    let shared = (2.0 * traffic.cell_bytes * traffic.cached_shared
        + traffic.kernel_shared_bytes * traffic.cells)
        / device.shared_bandwidth.max(1.0);
    let barrier = match persistent.synchronisation {
        Synchronisation::Neighbours => 0.8,
        Synchronisation::Grid => 1.0 + 0.1 * persistent.blocks_per_multiprocessor as f64,
    };
    let is_cube = usize::from(problem.shape.dimensions() > 2);
    let registers = match persistent.planes_registers {
        0 => 1.0,
        planes if planes <= FEW_PLANES && persistent.planes_shared == 0 => IN_REGISTERS,
        _ => UNROLLED,
    };
    let share = traffic.cached_share();
    let stream = if share > 0.0 && share < 1.0 { FACTORS.stream_beside } else { FACTORS.stream[is_cube] };
    // Of several fields in three dimensions, loads of many places are under way at once.
    let stream = if is_cube == 1 { stream * (1.0 + FIELD_MORE * (fields - 2.0).max(0.0)) } else { stream };
    // Of long formulas, whose divisions are chains, the instructions of which each waits for the one before.
    let operations =
        problem.program.stages().iter().map(|stage| operations(stage, problem.dtype)).sum::<f64>();
    let latency =
        busiest * device.multiprocessors as f64 * operations / (128.0 * clocks) / issued(threads / 32.0);
    latency.max(FACTORS.work[is_cube] * registers * (issue + arithmetic).max(shared))
        + stream * streamed / bandwidth
        + FACTORS.halo * traffic.halo_bytes / device.l2_bandwidth
        + FACTORS.barrier * barrier * traffic.overhead_seconds
}

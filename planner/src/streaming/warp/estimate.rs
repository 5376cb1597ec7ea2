//! The estimated time of a step of streaming by warps, by which plans are chosen.

use abide_core::plan::WarpStreaming;
use abide_core::plan::streaming::warp::Configuration;
use abide_core::{DeviceSpec, Stage};

use super::candidates::{SECTOR, planes_of_share, working_registers};
use crate::streaming::requirement::Demand;

/// The share of a warp's plane that a scheduler waits in vain, times the warps that it can turn to: for
/// stages that follow each other, and so wait for each other, and for stages a plane apart. Fitted, as all
/// numbers below, to two hundred kernels of nine stencils measured on an H200.
const EXPOSED: [f64; 2] = [0.75, 0.35];

/// Factors from the counted time to the measured one, for planes of one row and of several. The second is fitted with all
/// that concerns memory and [`CARRIED_AFAR`] to 206 kernels of five stencils in three dimensions, under four boundaries, of
/// domains that the last-level cache holds and that it does not.
const COUNTED: [f64; 2] = [1.05, 0.97];

/// The additional time of a step per carried value that is in shared memory instead of registers, beside its loads and
/// stores: they stand between the stages.
const CARRIED_AFAR: f64 = 0.08;

/// The share of its registers in which a compiler finds room for values, and the additional time of a plane
/// of several rows per share of values beyond that: they spill.
const FOUND_ROOM: f64 = 0.9875;

const SPILLING: f64 = 1.7;

/// The factor on the time of a plane in blocks of several warps whose lanes have more than four columns. Fitted
/// to three kernels.
const WIDE_LANES: f64 = 1.2;

/// Clocks from a barrier of the block until work is at full rate again.
const BARRIER_CLOCKS: f64 = 60.0;

/// The share of the shorter of computing and moving that is not hidden behind the longer. It applies to blocks of
/// several warps, all of which wait for their planes at the same time, if only one plane is on its way.
const UNHIDDEN: f64 = 0.65;

/// Where several planes are on their way, both take the root of this degree of the sum of their powers: little more than the
/// longer.
const OVERLAP: f64 = 4.0;

/// Instructions per plane and thread for the loop, and per row of the plane for the copy and the way out.
const PLANE_INSTRUCTIONS: f64 = 55.0;

const ROW_INSTRUCTIONS: f64 = 22.0;

/// Instructions per level by which each own cell changes its register, of planes of one row and of several: where stages
/// follow each other, and where they are a plane apart. Of one row by the disassembly, where there are none.
const MOVES: [[f64; 2]; 2] = [[0.0, 0.8], [1.2, 2.0]];

/// Seconds of a pass beside its planes: until the first planes have come, and from the first block's end to
/// the last's; where every pass is a launch, and where passes are chained. Fitted to passes of 17 to 50 µs over domains that
/// the last-level cache holds.
const PASS_SECONDS: [f64; 2] = [5e-6, 3.5e-6];

/// The share of device memory's bandwidth that streaming kernels reach, for planes of one row and of several.
const MEMORY_SHARE: [f64; 2] = [0.70, 0.74];

/// The additional time of moving planes of several rows whose windows keep cells that begin or end within a sector: two
/// windows write it, each a part of it, at different times.
const PARTIAL_SECTORS: f64 = 0.3;

/// The clocks in which a warp's scheduler issues its part of a plane, at all levels, and the pipes' that all schedulers
/// share.
struct Clocks {
    /// Of the arithmetic pipe.
    pipe: f64,
    /// Of instructions beside the arithmetic.
    other: f64,
    /// Of the shared memory's pipe.
    shared: f64,
}

impl Clocks {
    fn of(demand: &Demand<'_>, device: &DeviceSpec, configuration: &Configuration) -> Clocks {
        let stages = demand.pass.problem.program.stages();
        let [_, edge_rows, reach] = demand.radius;
        let lateral = |stage: &Stage| {
            let radii = stage.footprint.field_radius.iter().flatten();
            radii.filter(|radius| demand.axes.order(**radius)[2] > 0).count()
        };
        // The most fields that a stage taps along the faster axis.
        let lateral_fields = stages.iter().map(lateral).max().unwrap_or(0) as f64;
        let words = demand.bytes as f64 / 4.0;
        let [rows, columns] = configuration.cells_per_thread.map(|n| n as f64);
        let own = rows * columns;
        let levels = demand.levels(configuration.depth) as f64;
        let operations =
            2.0 * configuration.depth as f64 * (demand.pass.operations as f64 + demand.pass.more_places);
        let pipe = 32.0 * own * operations * clock(device) * device.multiprocessors as f64 * SCHEDULERS
            / device.flops(demand.pass.problem.dtype).max(1.0);
        let wide_rows = if demand.is_boxed() { rows + 2.0 * edge_rows as f64 } else { rows };
        let shuffles = 2.0 * words * reach as f64 * wide_rows * lateral_fields;
        let words_16 = columns * demand.bytes as f64 / 16.0;
        let edges =
            if configuration.warps > 1 { 4.0 * (edge_rows * demand.passing) as f64 * words_16 } else { 0.0 };
        let far = 2.0 * configuration.carried_shared as f64 * rows * words_16;
        let many = usize::from(configuration.warps > 1);
        let moves = own * demand.passing as f64 * MOVES[many][usize::from(configuration.lag)];
        let other = levels * (shuffles + edges + far + moves)
            + (PLANE_INSTRUCTIONS + ROW_INSTRUCTIONS * rows) * demand.fields as f64;
        // A shuffle takes one clock, 16 bytes per thread take four.
        let shared = SCHEDULERS * levels * (shuffles + 4.0 * (edges + far));
        Clocks { pipe, other, shared }
    }
}

/// The schedulers of a multiprocessor.
const SCHEDULERS: f64 = 4.0;

/// Returns a device's clocks per second.
fn clock(device: &DeviceSpec) -> f64 {
    device.shared_bandwidth.max(1.0) / 128.0 / device.multiprocessors as f64
}

/// Returns the estimate in seconds per step.
///
/// A scheduler issues an instruction per clock; an arithmetic instruction occupies it for as long as its pipe
/// needs. Warps hide all but a rest of each other's latency. Memory works at the same time. Blocks come in
/// rounds.
pub(super) fn step_seconds(demand: &Demand<'_>, device: &DeviceSpec, streaming: &WarpStreaming) -> f64 {
    let Clocks { pipe, other, shared } = Clocks::of(demand, device, &streaming.configuration());
    let levels = demand.levels(streaming.depth) as f64;
    let slots = device.multiprocessors * streaming.blocks_per_multiprocessor;
    let rounds = streaming.shares.div_ceil(slots);
    let resident = streaming.shares.div_ceil(device.multiprocessors).min(streaming.blocks_per_multiprocessor);
    let warps = (streaming.warps * resident) as f64 / SCHEDULERS;
    let barriers = match (streaming.warps > 1, streaming.lag) {
        (false, _) => 0.0,
        (true, true) => 1.0,
        (true, false) => levels,
    };
    let plane = ((pipe + other) * (warps + EXPOSED[usize::from(streaming.lag)] / warps))
        .max(1.3 * shared * warps)
        + barriers * BARRIER_CLOCKS;
    let wanted = working_registers(demand, streaming) as f64 / streaming.registers as f64;
    let many = usize::from(streaming.warps > 1);
    let plane = match many {
        0 => plane,
        _ => {
            let plane = plane * (1.0 + SPILLING * (wanted - FOUND_ROOM).max(0.0));
            let plane = plane * (1.0 + CARRIED_AFAR * streaming.carried_shared as f64);
            plane * if streaming.cells_per_thread[1] > 4 { WIDE_LANES } else { 1.0 }
        }
    };
    let compute = COUNTED[many] * rounds as f64 * planes_of_share(demand, streaming) * plane / clock(device);
    let moved = demand.pass.moved_bytes(streaming.valid, 1.5);
    let memory = match many {
        0 => moved / (MEMORY_SHARE[0] * device.memory_bandwidth),
        _ => {
            // Of the domain, what the last-level cache holds need not come from memory.
            let problem = demand.pass.problem;
            let fields = (demand.fields + demand.pass.written) as f64;
            let bytes = fields * problem.shape.bytes(problem.dtype) as f64;
            let held = (device.l2_bytes as f64 / bytes).min(1.0);
            let cache = device.l2_bandwidth.max(MEMORY_SHARE[1] * device.memory_bandwidth);
            let whole = (streaming.margin[2] * demand.bytes).is_multiple_of(SECTOR);
            let partial = if whole { 1.0 } else { 1.0 + PARTIAL_SECTORS };
            partial * moved * ((1.0 - held) / (MEMORY_SHARE[1] * device.memory_bandwidth) + held / cache)
        }
    };
    let both = match (streaming.warps > 1, streaming.ahead > 2) {
        // Windows of one row are many and out of step, so computing and moving overlap.
        (false, _) => compute.max(memory),
        // Planes on their way hide the shorter, but for a part where computing and moving take equally long.
        (true, true) => (compute.powf(OVERLAP) + memory.powf(OVERLAP)).powf(OVERLAP.recip()),
        (true, false) => compute.max(memory) + UNHIDDEN * compute.min(memory),
    };
    (both + PASS_SECONDS[usize::from(streaming.chained)]) / streaming.depth as f64
}

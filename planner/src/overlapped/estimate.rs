//! The estimated time of a step of windows, by which plans are chosen, on a device that reports almost nothing about
//! itself.

use abide_core::DeviceSpec;
use abide_core::plan::Overlapped;
use abide_core::plan::overlapped::Exchange;

use crate::passes::Demand;
use crate::workgroups::rates;

/// Clocks in which a stage's operations follow one another, however few cells it has.
const LATENCY_CLOCKS: f64 = 150.0;

/// Instructions per stage and thread beside those of cells and slots.
const STAGE_INSTRUCTIONS: f64 = 12.0;

/// Instructions per cell and step beside the formula: moves, and the share of windows that mask cells.
const CELL_INSTRUCTIONS: f64 = 1.5;

/// Registers per thread beside its cells.
const OTHER_REGISTERS: f64 = 32.0;

/// Instructions of a step that are at hand, and the additional time of each further one, as a multiple.
/// Fitted to boxes of 25 points.
const AT_HAND: f64 = 1200.0;

const FETCHED: f64 = 1.6;

/// Factors from the counted time to the measured one, for up to two axes and for three, where every cell of a
/// block is near an edge. Fitted to kernels over Vulkan on an H200.
const COUNTED: [f64; 2] = [1.2, 2.0];

/// The cost of a step for one thread.
pub(super) struct Cost {
    instructions: f64,
    /// 32-bit accesses to workgroup memory.
    accesses: f64,
    barriers: f64,
    stages: f64,
    registers: f64,
}

impl Cost {
    pub fn of(demand: &Demand<'_>, exchange: &Exchange) -> Cost {
        let volume = exchange.cells.iter().product::<usize>() as f64;
        let (words, slower) = rates::words(demand.problem.dtype);
        let stages = demand.program.stages().len() as f64;
        let accesses = words * exchange.accesses(&demand.program) as f64;
        let waiting =
            demand.program.stages().iter().filter(|stage| !abide_core::plan::staged_fields(stage).is_empty());
        let single = exchange.fields.iter().flatten().all(|given| given.copies == 1);
        let fields = demand.program.fields().len() as f64;
        let instructions = volume * (slower * demand.operations.max(1) as f64 + CELL_INSTRUCTIONS)
            + accesses / words
            + stages * STAGE_INSTRUCTIONS;
        Cost {
            instructions: instructions + FETCHED * (instructions - AT_HAND).max(0.0),
            accesses,
            barriers: waiting.count() as f64 * if single { 2.0 } else { 1.0 },
            stages,
            registers: 1.5 * volume * fields * words + OTHER_REGISTERS,
        }
    }
}

/// Returns the estimate in seconds per step.
pub(super) fn step_seconds(
    demand: &Demand<'_>,
    device: &DeviceSpec,
    overlapped: &Overlapped,
    cost: &Cost,
) -> f64 {
    let threads = overlapped.threads_per_block() as f64;
    let work = (threads / 128.0).max(0.25) * cost.instructions;
    let work = work.max(threads / 32.0 * cost.accesses);
    let resident =
        rates::resident(device, overlapped.threads_per_block(), cost.registers, overlapped.shared_bytes);
    if resident < 1.0 {
        // Registers spill, or not even one workgroup fits.
        return f64::INFINITY;
    }
    let count = overlapped.blocks.iter().product::<usize>() as f64;
    let each = (count / rates::units(device)).ceil();
    let waits = cost.barriers * rates::BARRIER_CLOCKS + cost.stages * LATENCY_CLOCKS;
    let clocks = each * work + (each / resident).ceil() * waits;
    let depth = overlapped.configuration.depth as f64;
    let compute = depth * clocks / rates::CLOCK;
    let moved = demand.moved_bytes(overlapped.valid, 2.0);
    let move_seconds = moved / (rates::MEMORY_SHARE * device.memory_bandwidth.max(1.0));
    let counted = COUNTED[usize::from(demand.problem.shape.dimensions() > 2)];
    counted * rates::dispatch_seconds(device, compute, move_seconds) / depth
}

//! The estimated time of a step of streaming planes, by which plans are chosen.

use abide_core::DeviceSpec;
use abide_core::plan::PortableStreaming;
use abide_core::plan::streaming::portable::{Arrival, Configuration, Handover};

use crate::streaming::requirement::Demand;
use crate::workgroups::rates;

/// Instructions per level and thread beside those of cells and slots, and per plane and thread beside those
/// of levels.
const LEVEL_INSTRUCTIONS: f64 = 6.0;

const PLANE_INSTRUCTIONS: f64 = 30.0;

/// Instructions per cell and level beside the formula.
const CELL_INSTRUCTIONS: f64 = 0.5;

/// Instructions per vector on its way from device memory, or back.
const MOVING_INSTRUCTIONS: f64 = 4.0;

/// Clocks per plane in which a level's operations follow one another, whatever else a multiprocessor could
/// do.
const LATENCY_CLOCKS: f64 = 120.0;

// The first number of a pair below is for levels that take what has just been made, the second for levels a
// plane apart (`Handover::lag`).

/// Registers per thread beside what it carries, and per cell at work.
const OTHER_REGISTERS: [f64; 2] = [52.0, 36.0];

const CELL_REGISTERS: f64 = 2.0;

/// The registers per thread from which compilers spill some, and the number of further registers that make a
/// plane take twice as long. Fitted, like the next two, to some 90 kernels over Vulkan on an H200.
const SPILLING: [[f64; 2]; 2] = [[256.0, 40.0], [210.0, 20.0]];

/// The share of a round that is left when its first workgroups have ended. Those of one multiprocessor end
/// one by one if each is a single subgroup.
const LAST: [f64; 2] = [0.7, 0.0];

/// Factors from the counted time to the measured one.
const COUNTED: [f64; 2] = [0.85, 1.25];

/// The cost of a plane for one thread.
pub(super) struct Cost {
    instructions: f64,
    /// 32-bit accesses to workgroup memory, or shuffles, and lines of device memory that a warp touches, per
    /// thread of the warp.
    accesses: f64,
    barriers: f64,
    pub registers: f64,
}

impl Cost {
    pub fn of(
        demand: &Demand<'_>,
        arrivals: &[Arrival],
        configuration: &Configuration,
        carried: usize,
        lanes: usize,
    ) -> Cost {
        let volume = configuration.cells.iter().product::<usize>() as f64;
        let (words, slower) = rates::words(demand.pass.problem.dtype);
        let (depth, fields) = (configuration.depth as f64, demand.fields as f64);
        let levels = demand.levels(configuration.depth) as f64;
        let accesses = arrivals.iter().map(|arrival| {
            let exchange = &arrival.exchange;
            let given = if configuration.handover == Handover::Shuffles { 0 } else { exchange.slots };
            given + exchange.reads(arrival.taps.iter().copied())
        });
        let accesses = depth * accesses.sum::<usize>() as f64;
        // Accesses to device memory: of whole vectors, but for cells as far apart as those of neighbouring
        // threads.
        let moves = volume / lanes as f64 * (fields + demand.pass.written as f64);
        let lines = moves * configuration.cells[1] as f64 * words;
        Cost {
            instructions: volume * depth * slower * demand.pass.operations.max(1) as f64
                + levels * (volume * CELL_INSTRUCTIONS + LEVEL_INSTRUCTIONS)
                + accesses
                + MOVING_INSTRUCTIONS * moves
                + PLANE_INSTRUCTIONS,
            accesses: words * accesses + lines,
            barriers: if accesses == 0.0 { 0.0 } else { configuration.handover.barriers() as f64 },
            registers: words * (carried as f64 + CELL_REGISTERS * volume * fields)
                + OTHER_REGISTERS[configuration.handover.lag()],
        }
    }
}

/// Returns the estimate in seconds per step.
pub(super) fn step_seconds(
    demand: &Demand<'_>,
    device: &DeviceSpec,
    streaming: &PortableStreaming,
    cost: &Cost,
) -> f64 {
    let threads = streaming.threads_per_block() as f64;
    let resident =
        rates::resident(device, streaming.threads_per_block(), cost.registers, streaming.shared_bytes);
    if resident < 1.0 {
        // Registers spill, or not even one workgroup fits.
        return f64::INFINITY;
    }
    // A plane of one workgroup, in clocks of a multiprocessor.
    let work = (threads / 128.0).max(0.25) * cost.instructions;
    let work = work.max(threads / 32.0 * cost.accesses);
    let latency = cost.barriers * rates::BARRIER_CLOCKS + LATENCY_CLOCKS;
    let each = (streaming.workgroups() as f64 / rates::units(device)).ceil();
    let (rounds, last) = ((each / resident).floor(), each % resident);
    // Workgroups side by side hide each other's waits.
    let plane = |beside: f64| if beside > 0.0 { beside * work + latency / beside } else { 0.0 };
    let share = demand.extents[0].div_ceil(streaming.configuration.shares)
        + streaming.margin[0][0]
        + streaming.behind;
    let apart = streaming.configuration.handover.lag();
    let passing = rounds * plane(resident) + plane(last) + LAST[apart] * plane(resident.min(each));
    let compute = share as f64 * passing / rates::CLOCK;
    let moved = demand.pass.moved_bytes(streaming.valid, 2.0);
    let moving = moved / (rates::MEMORY_SHARE * device.memory_bandwidth.max(1.0));
    let [spilling, twice] = SPILLING[apart];
    let compute = compute * (1.0 + (cost.registers - spilling).max(0.0) / twice);
    COUNTED[apart] * rates::dispatch_seconds(device, compute, moving) / streaming.configuration.depth as f64
}

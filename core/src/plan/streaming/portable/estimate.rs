//! How long a step of streaming planes is likely to take: an estimate to choose by.

use super::{Arrival, Configuration, Demand, Handover, PortableStreaming};
use crate::device::DeviceSpec;
use crate::domain::Axes;
use crate::plan::portable::rates;

/// Instructions of a level and thread beside cells and slots, and of a plane and thread beside levels.
const LEVEL_INSTRUCTIONS: f64 = 6.0;
const PLANE_INSTRUCTIONS: f64 = 30.0;
/// Instructions of a cell and level beside the formula.
const CELL_INSTRUCTIONS: f64 = 0.5;
/// Instructions of a vector on its way from device memory, or back.
const MOVING_INSTRUCTIONS: f64 = 4.0;
/// Clocks of a plane in which a level's operations follow one another, whatever else a multiprocessor could
/// do.
const LATENCY_CLOCKS: f64 = 120.0;
// Pairs below are for levels that take what has just been made, and for levels a plane apart
// (`Handover::lag`).

/// Registers of a thread beside what it carries, and for each cell at work.
const OTHER_REGISTERS: [f64; 2] = [52.0, 36.0];
const CELL_REGISTERS: f64 = 2.0;
/// From so many registers per thread on compilers spill some, and with so many more a plane takes twice as
/// long. By some 90 kernels over Vulkan on an H200, as the next.
const SPILLING: [[f64; 2]; 2] = [[256.0, 40.0], [210.0, 20.0]];
/// How much of a round follows when its first workgroups have ended: of a subgroup each, those of a
/// multiprocessor end one by one.
const LAST: [f64; 2] = [0.7, 0.0];
/// What kernels take of what is counted here.
const COUNTED: [f64; 2] = [0.85, 1.25];

/// What a thread does while a plane passes.
pub(super) struct Cost {
    instructions: f64,
    /// 32-bit accesses of workgroup memory, or shuffles, and lines of device memory that a warp touches, for
    /// each of its threads.
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
        let (words, slower) = rates::words(demand.problem.dtype);
        let (depth, fields) = (configuration.depth as f64, demand.program.fields().len() as f64);
        let levels = depth * arrivals.len() as f64;
        let accesses = arrivals.iter().map(|arrival| {
            let exchange = &arrival.exchange;
            let given = if configuration.handover == Handover::Shuffles { 0 } else { exchange.slots };
            given + exchange.reads(arrival.taps.iter().copied())
        });
        let accesses = depth * accesses.sum::<usize>() as f64;
        // Accesses of device memory: whole vectors, but of cells that lie as far apart as a thread's.
        let written =
            (0..demand.program.fields().len()).filter(|&field| demand.program.is_written(field)).count();
        let moves = volume / lanes as f64 * (fields + written as f64);
        let lines = moves * configuration.cells[1] as f64 * words;
        Cost {
            instructions: volume * depth * slower * demand.operations as f64
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

/// Seconds a step.
pub(super) fn step_seconds(
    demand: &Demand<'_>,
    device: &DeviceSpec,
    planes: &PortableStreaming,
    cost: &Cost,
) -> f64 {
    let threads = planes.threads_per_block() as f64;
    let resident = rates::resident(device, planes.threads_per_block(), cost.registers, planes.shared_bytes);
    if resident < 1.0 {
        // Registers spill, or nothing runs at all.
        return f64::INFINITY;
    }
    let extents = Axes::of(demand.problem.shape.dimensions()).order(demand.problem.shape.padded());
    // A plane of one workgroup, in clocks of a multiprocessor.
    let work = (threads / 128.0).max(0.25) * cost.instructions;
    let work = work.max(threads / 32.0 * cost.accesses);
    let latency = cost.barriers * rates::BARRIER_CLOCKS + LATENCY_CLOCKS;
    let each = (planes.workgroups() as f64 / rates::units(device)).ceil();
    let (rounds, last) = ((each / resident).floor(), each % resident);
    // Workgroups side by side hide each other's waits.
    let plane = |beside: f64| if beside > 0.0 { beside * work + latency / beside } else { 0.0 };
    let share = extents[0].div_ceil(planes.configuration.shares) + planes.margin[0][0] + planes.behind;
    let apart = planes.configuration.handover.lag();
    let passing = rounds * plane(resident) + plane(last) + LAST[apart] * plane(resident.min(each));
    let compute = share as f64 * passing / rates::CLOCK;
    let bytes = demand.problem.dtype.bytes() as f64;
    let fields = demand.program.fields().len();
    let written = (0..fields).filter(|&field| demand.program.is_written(field)).count() as f64;
    let moved = demand.problem.shape.cells() as f64
        * bytes
        * (fields as f64 * (1.0 / planes.valid).min(2.0) + written);
    let moving = moved / (rates::MEMORY_SHARE * device.memory_bandwidth.max(1.0));
    let [spilling, twice] = SPILLING[apart];
    let compute = compute * (1.0 + (cost.registers - spilling).max(0.0) / twice);
    COUNTED[apart] * rates::dispatch_seconds(device, compute, moving) / planes.configuration.depth as f64
}

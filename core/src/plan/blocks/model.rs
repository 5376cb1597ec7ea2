//! How long a step of windows is likely to take: an estimate to choose by, on a device that tells next to nothing of itself.
//!
//! What no interface tells is taken to be as on the GPUs that are: a multiprocessor of four schedulers of 32 lanes, some
//! 33 GB/s of device memory for each of them, and registers and threads as in every preset.

use super::{Blocks, Demand, Exchange};
use crate::device::DeviceSpec;
use crate::real::DType;

/// Bytes per second of device memory for each multiprocessor; a little more than an H200 has (31), for one window too many takes
/// as long as another round.
const BANDWIDTH_OF_ONE: f64 = 33e9;
/// Clocks per second of a multiprocessor.
const CLOCK: f64 = 1.7e9;
/// Clocks from the last thread's slots to full rate again, barrier included.
const BARRIER_CLOCKS: f64 = 90.0;
/// Clocks in which a stage's operations follow one another, however few cells there are.
const LATENCY_CLOCKS: f64 = 150.0;
/// Instructions of a stage and thread beside cells and slots.
const STAGE_INSTRUCTIONS: f64 = 12.0;
/// Instructions of a cell and step beside the formula: what is moved, and the share of windows that mask cells.
const CELL_INSTRUCTIONS: f64 = 1.5;
/// Threads and 32-bit registers of a multiprocessor.
const THREADS: f64 = 2048.0;
const REGISTERS: f64 = 65536.0;
/// Registers of a thread beside its cells.
const OTHER_REGISTERS: f64 = 32.0;
/// Workgroups' memory of a multiprocessor, of a window's.
const SHARED_OF_ALL: f64 = 3.0;
/// The share of the memory's bandwidth that windows reach, and how much of the shorter of computing and moving is not
/// hidden behind the longer.
const MEMORY_SHARE: f64 = 0.85;
const UNHIDDEN: f64 = 0.4;

/// What a thread does in a step.
pub(super) struct Cost {
    instructions: f64,
    /// 32-bit accesses of workgroup memory.
    accesses: f64,
    barriers: f64,
    stages: f64,
    registers: f64,
}

impl Cost {
    pub fn of(demand: &Demand<'_>, exchange: &Exchange) -> Cost {
        let volume = exchange.cells.iter().product::<usize>() as f64;
        let (words, slower) = match demand.problem.dtype {
            DType::F32 => (1.0, 1.0),
            DType::F64 => (2.0, 2.0),
        };
        let stages = demand.program.stages().len() as f64;
        let accesses = words * exchange.accesses(&demand.program) as f64;
        let waiting = demand.program.stages().iter().filter(|stage| !super::super::staged_fields(stage).is_empty());
        let single = exchange.fields.iter().flatten().all(|given| given.copies == 1);
        let fields = demand.program.fields().len() as f64;
        Cost {
            instructions: volume * (slower * demand.operations as f64 + CELL_INSTRUCTIONS)
                + accesses / words
                + stages * STAGE_INSTRUCTIONS,
            accesses,
            barriers: waiting.count() as f64 * if single { 2.0 } else { 1.0 },
            stages,
            registers: 1.5 * volume * fields * words + OTHER_REGISTERS,
        }
    }
}

/// Seconds a step.
pub(super) fn step_seconds(demand: &Demand<'_>, device: &DeviceSpec, blocks: &Blocks, cost: &Cost) -> f64 {
    let units = match device.multiprocessors {
        0 => (device.memory_bandwidth / BANDWIDTH_OF_ONE).round().clamp(1.0, 1024.0),
        known => known as f64,
    };
    let threads = blocks.threads_per_block() as f64;
    let work = (threads / 128.0).max(0.25) * cost.instructions;
    let work = work.max(threads / 32.0 * cost.accesses);
    let memory = SHARED_OF_ALL * device.shared_bytes_per_block as f64 / (blocks.shared_bytes as f64 + 1.0);
    let resident = (THREADS / threads).min(REGISTERS / (threads * cost.registers)).min(memory).floor();
    if resident < 1.0 {
        // Registers spill, or nothing runs at all.
        return f64::INFINITY;
    }
    let count = blocks.blocks.iter().product::<usize>() as f64;
    let each = (count / units).ceil();
    let waits = cost.barriers * BARRIER_CLOCKS + cost.stages * LATENCY_CLOCKS;
    let clocks = each * work + (each / resident).ceil() * waits;
    let depth = blocks.form.depth as f64;
    let compute = depth * clocks / CLOCK;
    let bytes = demand.problem.dtype.bytes() as f64;
    let fields = demand.program.fields().len();
    let written = (0..fields).filter(|&field| demand.program.is_written(field)).count() as f64;
    let cells = demand.problem.shape.cells() as f64;
    let moved = cells * bytes * (fields as f64 * (1.0 / blocks.valid).min(2.0) + written);
    let move_seconds = moved / (MEMORY_SHARE * device.memory_bandwidth.max(1.0));
    (compute.max(move_seconds) + UNHIDDEN * compute.min(move_seconds) + device.launch_seconds) / depth
}

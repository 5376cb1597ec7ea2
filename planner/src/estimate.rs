//! The planner's estimate of the time of a stage or group of stages: bytes, instructions, and how many warps there are to hide their
//! latency.
//!
//! The weights are those of kernels compiled for sm_90 (CloverLeaf, f64), the rates what an H200's counters said.

use abide_core::expr::places;
use abide_core::plan::fused::{Fused, Output};
use abide_core::program::{Boxes, StageKind};
use abide_core::{DType, DeviceSpec, Problem, Stage};

use crate::rates::MEMORY_SHARE;

/// Instructions of an index besides those of its members, and of each member.
const INDEX: f64 = 40.0;

const MEMBER: f64 = 6.0;

/// Instructions of a tap, of a place in the arithmetic pipe (f64 has half the rate), of a value that is kept
/// in a ring and of one that is stored.
const TAP: f64 = 3.0;

const OPERATION: [f64; 2] = [1.2, 2.0];

const KEPT: f64 = 5.0;

const STORED: f64 = 5.0;

/// Instructions of joining a value to those of its leaf: of eight warps each stores a row, and one joins them. Counted in the
/// kernel, not measured.
const JOINED: f64 = 10.0;

/// Instructions of copying a word of a row, and of a tap of what was copied.
const COPIED: f64 = 16.0;

const COPIED_TAP: f64 = 1.5;

/// How much longer groups that copy planes were measured to take (CloverLeaf in 3D on an H200).
const PLANES: f64 = 1.1;

/// How much longer a tile at the domain's sides takes, where boundaries are asked.
const SIDES: f64 = 1.5;

/// The share of the issue slots that is used at best, at the clock that a device keeps under load.
const ISSUED: f64 = 0.9;

/// Cycles between two instructions of one warp, because each waits for the one before.
const GAP: f64 = 7.0;

/// Schedulers of a multiprocessor, and threads of a warp.
const SCHEDULERS: f64 = 4.0;

const WARP: usize = 32;

/// Instructions of threads per byte of memory bandwidth, where a device reports no arithmetic rate: the ratio of data
/// centres' GPUs (V100 8.7, A100 6.3, H200 7.0). Groups planned with 4 and with 14 were slower over Vulkan.
const INSTRUCTIONS_PER_BYTE: f64 = 7.0;

/// Multiprocessors of a device that does not report their number.
const MULTIPROCESSORS: usize = 64;

/// The part of its peak rate that a device has in products of matrices, in f64 where tensor cores have twice the rate too, and the
/// seconds that a thread waits for each product. On an H200.
const TRANSFORMED: f64 = 0.58;
const TRANSFORMED_BY_TENSOR_CORES: f64 = 1.2;
const SECONDS_OF_PRODUCT: f64 = 25e-9;

/// Registers that a thread of a fused kernel is taken to have.
const REGISTERS: usize = 80;

/// What a group moves and computes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Estimate {
    /// Bytes that come from device memory and go there.
    pub bytes: f64,
    /// Instructions for each index of the domain, those of values computed twice among them.
    pub slots: f64,
    /// Seconds, without the launch.
    pub seconds: f64,
}

/// Returns the instructions of a stage's formulas for each index.
pub fn formulas(stage: &Stage, dtype: DType) -> f64 {
    TAP * stage.dag.taps().count() as f64 + operations(stage, dtype)
}

/// Returns the same without the taps.
pub fn operations(stage: &Stage, dtype: DType) -> f64 {
    let each = OPERATION[usize::from(dtype == DType::F64)];
    stage.dag.nodes.iter().map(|&node| each * places(node, dtype)).sum()
}

/// Returns the instructions of a stage by itself for each index.
pub fn instructions(stage: &Stage, dtype: DType) -> f64 {
    INDEX + STORED * stage.writes.len() as f64 + formulas(stage, dtype)
}

/// Estimates a stage by itself.
pub fn alone(problem: &Problem, boxes: &Boxes, device: &DeviceSpec, stage: usize) -> Estimate {
    let own = &problem.program.stages()[stage];
    let (bytes, slots) = (bytes_alone(problem, boxes, own), instructions(own, problem.dtype));
    let [memory, issue] = seconds(device, bytes, slots * own.indices(problem) as f64, ISSUED);
    // Other blocks compute while one waits for memory.
    Estimate { bytes, slots, seconds: memory.hypot(issue).max(transform_seconds(problem, device, own)) }
}

/// Returns the seconds of a transform's products, as many for each value as a line has; 0 of any other stage.
pub fn transform_seconds(problem: &Problem, device: &DeviceSpec, stage: &Stage) -> f64 {
    let StageKind::Transform(transform) = stage.does else { return 0.0 };
    let line = problem.extents_of(stage.writes[0])[transform.axis] as f64;
    let has_tensor_cores = device.compute_capability.is_some_and(|capability| capability >= (8, 0));
    let part = match problem.dtype {
        DType::F64 if has_tensor_cores => TRANSFORMED_BY_TENSOR_CORES,
        _ => TRANSFORMED,
    };
    let peak = device.flops(problem.dtype) * part;
    let products = if peak > 0.0 { 2.0 * line * stage.indices(problem) as f64 / peak } else { 0.0 };
    // A small one waits for its operands, one part of the line after another.
    products.max(line * SECONDS_OF_PRODUCT)
}

/// Estimates a reduction in the kernel of the update before it ([`crate::fused::is_tail`]).
pub fn tail(
    problem: &Problem,
    boxes: &Boxes,
    device: &DeviceSpec,
    [update, reduction]: [usize; 2],
) -> Estimate {
    let stages = problem.program.stages();
    let (update, reduction) = (&stages[update], &stages[reduction]);
    let bytes = bytes_of_tail(problem, boxes, [update, reduction]);
    let slots = instructions(update, problem.dtype) + reducing(reduction, problem.dtype);
    let [memory, issue] = seconds(device, bytes, slots * update.indices(problem) as f64, ISSUED);
    Estimate { bytes, slots, seconds: memory.hypot(issue) }
}

/// Returns the instructions of a reduction for each index whose values are at hand.
pub fn reducing(reduction: &Stage, dtype: DType) -> f64 {
    let taps = TAP * reduction.dag.taps().count() as f64;
    JOINED + formulas(reduction, dtype) - taps
}

/// Returns the bytes that an update and a reduction of what it makes read and write.
pub fn bytes_of_tail(problem: &Problem, boxes: &Boxes, [update, reduction]: [&Stage; 2]) -> f64 {
    let bytes = |name: usize| boxes.buffers[name].stored_bytes(problem.dtype);
    let reads = reduction.footprint.field_radius.iter().enumerate().filter(|(_, radius)| radius.is_some());
    let others = reads
        .map(|(name, _)| name)
        .filter(|&name| !update.writes.contains(&name) && update.footprint.field_radius[name].is_none());
    bytes_alone(problem, boxes, update) + others.map(bytes).sum::<f64>()
}

/// Returns the bytes that a stage by itself reads and writes: its fields and temporaries once, or what it reads and writes at
/// its points.
pub fn bytes_alone(problem: &Problem, boxes: &Boxes, stage: &Stage) -> f64 {
    if !stage.points.is_empty() {
        return problem.stage_bytes(stage).into_iter().sum();
    }
    let bytes = |name: usize| boxes.buffers[name].stored_bytes(problem.dtype);
    let reads = stage.footprint.field_radius.iter().enumerate().filter(|(_, radius)| radius.is_some());
    let read: f64 = reads.map(|(name, _)| bytes(name)).sum();
    read + stage.writes.iter().map(|&name| bytes(name)).sum::<f64>()
}

/// Estimates a group.
pub fn grouped(problem: &Problem, boxes: &Boxes, device: &DeviceSpec, fused: &Fused) -> Estimate {
    let held = resident_blocks(problem, device, fused).max(1);
    let each = fused.blocks.iter().product::<usize>() as f64 / multiprocessors(device) as f64;
    // The last blocks have a multiprocessor to themselves.
    let waves = each / (held as f64).min(each.ceil());
    let tail = waves.ceil() / waves * 0.5 + 0.5;
    let estimate = held_at_once(problem, boxes, device, fused, held);
    Estimate { seconds: estimate.seconds * tail, ..estimate }
}

/// Returns the multiprocessors of a device.
pub fn multiprocessors(device: &DeviceSpec) -> usize {
    if device.multiprocessors == 0 { MULTIPROCESSORS } else { device.multiprocessors }
}

/// Estimates a group of which a multiprocessor holds so many blocks at the most, without what the last ones leave idle.
pub fn held_at_once(
    problem: &Problem,
    boxes: &Boxes,
    device: &DeviceSpec,
    fused: &Fused,
    most: usize,
) -> Estimate {
    let bytes = |name: usize| boxes.buffers[name].stored_bytes(problem.dtype);
    let cells = problem.shape.cells() as f64;
    let over_tile = |row: [usize; 3]| -> f64 {
        (fused.axis + 1..3).map(|axis| row[axis] as f64 / fused.tile[axis] as f64).product()
    };
    let across = over_tile(fused.row());
    // Every thread takes part in every turn, whether or not a stage is active there.
    let turns = fused.turns() as f64 / fused.tile[fused.axis] as f64;
    let copies = !fused.loads.is_empty();
    let (mut loaded, mut stored, mut slots): (Vec<usize>, f64, f64) =
        (Vec::new(), 0.0, INDEX * across * turns);
    if copies {
        // Whole warps of threads take part, of which each copies some words of each row.
        let lanes = fused.threads as f64 / fused.values_of_row() as f64 * across;
        let words = fused.values_of_wide() * problem.dtype.bytes() / 16;
        let each = words.div_ceil(fused.threads) as f64;
        slots = (INDEX + COPIED * each * fused.loads.len() as f64) * lanes * turns;
    }
    for (number, member) in fused.members.iter().enumerate() {
        let stage = &problem.program.stages()[member.stage];
        for tap in stage.dag.taps() {
            let name = usize::from(tap.field);
            if !member.sources.iter().any(|&(made, _)| made == name) && !loaded.contains(&name) {
                loaded.push(name);
            }
        }
        let outputs = stage.writes.iter().zip(&member.outputs).filter(|(_, output)| output.is_stored);
        stored += outputs.map(|(&name, _)| bytes(name)).sum::<f64>();
        let of = |takes: fn(&Output) -> bool, slots: f64| {
            slots * member.outputs.iter().filter(|&output| takes(output)).count() as f64
        };
        let out = of(|output| output.ring.is_some(), KEPT) + of(|output| output.is_stored, STORED);
        slots += MEMBER * across * turns;
        let taps = if copies { COPIED_TAP } else { TAP } * stage.dag.taps().count() as f64;
        slots += (taps + operations(stage, problem.dtype) + out) * fused.redundancy(number);
    }
    // Of what lies beyond a tile's sides, about half is still in the cache from the tile beside.
    let beside = if copies { over_tile(fused.wide()) } else { across };
    let loaded = loaded.into_iter().map(bytes).sum::<f64>() * (1.0 + 0.5 * (beside - 1.0));
    let inner: f64 =
        fused.blocks.iter().map(|&count| if count == 1 { 1.0 } else { 1.0 - 2.0 / count as f64 }).product();
    slots *= inner + SIDES * (1.0 - inner);
    let each = fused.blocks.iter().product::<usize>() as f64 / multiprocessors(device) as f64;
    let warps = each.min(most as f64) * fused.threads.div_ceil(WARP) as f64;
    let [memory, issue] = seconds(device, loaded + stored, slots * cells, issued(warps));
    let seconds = match fused.loads.is_empty() {
        // All warps of a block wait for memory at the same time, because of the barrier after each turn.
        true => memory + issue,
        // Copies arrive while it computes.
        false => memory.hypot(issue) * if fused.axis == 0 { PLANES } else { 1.0 },
    };
    Estimate { bytes: loaded + stored, slots, seconds }
}

/// Returns the share of the issue slots that so many warps of a multiprocessor use, each of whose instructions waits for the one
/// before.
pub fn issued(warps: f64) -> f64 {
    (warps / SCHEDULERS / GAP).min(ISSUED)
}

/// Returns the blocks of a group that a multiprocessor holds at once.
fn resident_blocks(problem: &Problem, device: &DeviceSpec, fused: &Fused) -> usize {
    let shared = fused.shared_bytes(problem) + device.shared_bytes_reserved;
    let by_shared = device.shared_bytes / shared.max(1);
    let by_registers = device.registers.map_or(usize::MAX, |all| all / (REGISTERS * fused.threads));
    by_shared.min(by_registers).min(device.threads / fused.threads)
}

/// Returns the instructions of threads that a device issues in a second at best.
pub fn issued_at_best(device: &DeviceSpec) -> f64 {
    instruction_rate(device) * ISSUED
}

/// Returns the instructions of threads that a device has slots for in a second.
fn instruction_rate(device: &DeviceSpec) -> f64 {
    match device.flops(DType::F32) {
        // A multiply-add counts twice in the rate, and each is one instruction.
        rate if rate > 0.0 => rate / 2.0,
        _ => device.memory_bandwidth * INSTRUCTIONS_PER_BYTE,
    }
}

/// Returns the seconds that bytes and instructions of threads take, each by itself.
fn seconds(device: &DeviceSpec, bytes: f64, slots: f64, share: f64) -> [f64; 2] {
    let over = |amount: f64, rate: f64| if rate > 0.0 { amount / rate } else { 0.0 };
    let memory = over(bytes, device.memory_bandwidth * MEMORY_SHARE);
    [memory, over(slots, instruction_rate(device) * share)]
}

//! The planner's estimate of a group's time: bytes, instructions, and how many warps there are to hide their latency.
//!
//! The weights are those of kernels compiled for sm_90 (CloverLeaf, f64), the rates what an H200's counters said.

use super::Fused;
use crate::device::DeviceSpec;
use crate::expr::{Binary, Node, Unary};
use crate::plan::MEMORY_SHARE;
use crate::program::{Boxes, Does, Problem};
use crate::real::DType;

/// Instructions of an index besides those of its members, and of each member.
const INDEX: f64 = 40.0;
const MEMBER: f64 = 6.0;
/// Instructions of a tap, of an operation (f64 has half the rate), of an exact division or root, of a value that is kept
/// in a ring and of one that is stored.
const TAP: f64 = 3.0;
const OPERATION: [f64; 2] = [1.2, 2.0];
const DIVISION: [f64; 2] = [12.0, 22.0];
const KEPT: f64 = 5.0;
const STORED: f64 = 5.0;
/// How much longer a tile at the domain's sides takes, where boundaries are asked.
const SIDES: f64 = 1.5;

/// The share of the issue slots that is used at best, at the clock that a device keeps under load.
const ISSUED: f64 = 0.9;
/// Cycles between two instructions of one warp, because each waits for the one before.
const GAP: f64 = 7.0;
/// Schedulers of a multiprocessor, and threads of a warp.
const SCHEDULERS: f64 = 4.0;
const WARP: usize = 32;

/// Multiprocessors of a device that does not tell how many it has.
const MULTIPROCESSORS: usize = 64;

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

/// Returns the instructions of formulas for each index.
fn instructions(nodes: &[Node], dtype: DType) -> f64 {
    let wide = usize::from(dtype == DType::F64);
    let of = |node: &Node| match node {
        Node::Const(_) | Node::Param(_) | Node::Coord(_) => 0.0,
        Node::Tap(_) => TAP,
        Node::Binary(Binary::Div, ..) | Node::Unary(Unary::Sqrt, _) => DIVISION[wide],
        _ => OPERATION[wide],
    };
    nodes.iter().map(of).sum()
}

/// Estimates a stage by itself.
pub fn alone(problem: &Problem, boxes: &Boxes, device: &DeviceSpec, stage: usize) -> Estimate {
    let own = &problem.program.stages()[stage];
    let bytes = |name: usize| (boxes.buffers[name].len() * problem.dtype.bytes()) as f64;
    let reads = own.footprint.field_radius.iter().enumerate().filter(|(_, radius)| radius.is_some());
    let read: f64 = reads.map(|(name, _)| bytes(name)).sum();
    let written: f64 = own.writes.iter().map(|&name| bytes(name)).sum();
    let slots = INDEX + STORED * own.writes.len() as f64 + instructions(&own.dag.nodes, problem.dtype);
    let indices = match own.does {
        Does::Scalar(_) => 1,
        _ if !own.points.is_empty() => own.points.len(),
        _ => problem.shape.cells(),
    };
    let [memory, issue] = seconds(device, read + written, slots * indices as f64, ISSUED);
    // Other blocks compute while one waits for memory.
    Estimate { bytes: read + written, slots, seconds: memory.hypot(issue) }
}

/// Estimates a group.
pub fn grouped(problem: &Problem, boxes: &Boxes, device: &DeviceSpec, fused: &Fused) -> Estimate {
    let bytes = |name: usize| (boxes.buffers[name].len() * problem.dtype.bytes()) as f64;
    let cells = problem.shape.cells() as f64;
    let across: f64 = (0..3)
        .filter(|&axis| axis > fused.axis)
        .map(|axis| fused.row()[axis] as f64 / fused.tile[axis] as f64)
        .product();
    // Every thread takes part in every turn, whether or not a stage is active there.
    let turns = fused.turns() as f64 / fused.tile[fused.axis] as f64;
    let (mut loaded, mut stored, mut slots): (Vec<usize>, f64, f64) =
        (Vec::new(), 0.0, INDEX * across * turns);
    for member in &fused.members {
        let stage = &problem.program.stages()[member.stage];
        for tap in stage.dag.taps() {
            let name = usize::from(tap.field);
            if !member.sources.iter().any(|&(made, _)| made == name) && !loaded.contains(&name) {
                loaded.push(name);
            }
        }
        let outputs = stage.writes.iter().zip(&member.outputs).filter(|(_, output)| output.is_stored);
        stored += outputs.map(|(&name, _)| bytes(name)).sum::<f64>();
    }
    for section in fused.sections(problem.program.stages(), boxes) {
        let goes = section.outputs.iter().map(|&(member, output, _)| fused.members[member].output(output));
        let out = goes.map(|goes| {
            KEPT * f64::from(u8::from(goes.ring.is_some())) + STORED * f64::from(u8::from(goes.is_stored))
        });
        slots += MEMBER * across * turns;
        slots += (instructions(&section.nodes, problem.dtype) + out.sum::<f64>())
            * fused.redundancy(section.members[0]);
    }
    // Of what lies beyond a tile's sides, about half is still in the cache from the tile beside.
    let loaded = loaded.into_iter().map(bytes).sum::<f64>() * (1.0 + 0.5 * (across - 1.0));
    let inner: f64 =
        fused.blocks.iter().map(|&count| if count == 1 { 1.0 } else { 1.0 - 2.0 / count as f64 }).product();
    slots *= inner + SIDES * (1.0 - inner);
    // The last tiles of a row or column are as wide as the others.
    slots *=
        (0..3).filter(|&axis| axis > fused.axis).map(|axis| fused.excess(axis, problem)).product::<f64>();
    let multiprocessors = if device.multiprocessors == 0 { MULTIPROCESSORS } else { device.multiprocessors };
    let each = fused.blocks.iter().product::<usize>() as f64 / multiprocessors as f64;
    let held = resident_blocks(problem, device, fused).max(1) as f64;
    let warps = each.min(held) * fused.threads.div_ceil(WARP) as f64;
    let share = (warps / SCHEDULERS / GAP).min(ISSUED);
    let [memory, issue] = seconds(device, loaded + stored, slots * cells, share);
    // The last blocks have a multiprocessor to themselves.
    let waves = each / held.min(each.ceil());
    let tail = waves.ceil() / waves * 0.5 + 0.5;
    // A block's warps wait for memory together, because of the barrier after each turn.
    Estimate { bytes: loaded + stored, slots, seconds: (memory + issue) * tail }
}

/// Returns the blocks of a group that a multiprocessor holds at once.
fn resident_blocks(problem: &Problem, device: &DeviceSpec, fused: &Fused) -> usize {
    let shared = fused.values(problem) * problem.dtype.bytes() + device.shared_bytes_reserved;
    let by_shared = device.shared_bytes / shared.max(1);
    let by_registers = device.registers.map_or(usize::MAX, |all| all / (REGISTERS * fused.threads));
    by_shared.min(by_registers).min(device.threads / fused.threads)
}

/// Returns the seconds that bytes and instructions of threads take, each by itself.
fn seconds(device: &DeviceSpec, bytes: f64, slots: f64, share: f64) -> [f64; 2] {
    let over = |amount: f64, rate: f64| if rate > 0.0 { amount / rate } else { 0.0 };
    let memory = over(bytes, device.memory_bandwidth * MEMORY_SHARE);
    // A multiply-add counts twice in the rate, and each is one instruction.
    [memory, over(slots, device.flops(DType::F32) / 2.0 * share)]
}

//! The planner's estimate of a group's time: bytes, arithmetic and turns.

use super::{Fused, Source};
use crate::device::DeviceSpec;
use crate::expr::{Binary, Node, Unary};
use crate::program::{Boxes, Problem, Stage};

/// The share of a device's bandwidth that stages reach.
const MEMORY_SHARE: f64 = 0.85;

/// The share of a pipe's issue slots that is arithmetic.
const ARITHMETIC_SHARE: f64 = 0.5;

/// Issue slots of a division or a root, which are exact.
const DIVISION: f64 = 10.0;

/// Seconds of a turn besides those of each member: a barrier, and the way to device memory.
const TURN_SECONDS: f64 = 0.7e-6;
const MEMBER_SECONDS: f64 = 0.1e-6;

/// Multiprocessors of a device that does not tell how many it has.
const MULTIPROCESSORS: usize = 64;

/// Registers that a thread of a fused kernel is taken to have.
const REGISTERS: usize = 128;

/// What a group moves and computes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Estimate {
    /// Bytes that come from device memory and go there.
    pub bytes: f64,
    /// Issue slots of its arithmetic, those of values computed twice among them.
    pub slots: f64,
    /// Seconds, without the launch.
    pub seconds: f64,
}

/// Returns the issue slots that a stage's arithmetic takes for each index.
pub fn slots(stage: &Stage) -> f64 {
    let of = |node: &Node| match node {
        Node::Const(_) | Node::Param(_) | Node::Tap(_) | Node::Coord(_) => 0.0,
        Node::Binary(Binary::Div, ..) | Node::Unary(Unary::Sqrt, _) => DIVISION,
        _ => 1.0,
    };
    stage.dag.nodes.iter().map(of).sum()
}

/// Estimates a stage by itself.
pub fn alone(problem: &Problem, boxes: &Boxes, device: &DeviceSpec, stage: usize) -> Estimate {
    let own = &problem.program.stages()[stage];
    let bytes = |name: usize| (boxes.buffers[name].len() * problem.dtype.bytes()) as f64;
    let reads = own.footprint.field_radius.iter().enumerate().filter(|(_, radius)| radius.is_some());
    let read: f64 = reads.map(|(name, _)| bytes(name)).sum();
    let written: f64 = own.writes.iter().map(|&name| bytes(name)).sum();
    let slots = slots(own) * problem.shape.cells() as f64;
    bound(problem, device, read + written, slots)
}

/// Estimates a group.
pub fn grouped(problem: &Problem, boxes: &Boxes, device: &DeviceSpec, fused: &Fused) -> Estimate {
    let bytes = |name: usize| (boxes.buffers[name].len() * problem.dtype.bytes()) as f64;
    let across: f64 = (0..3)
        .filter(|&axis| axis > fused.axis)
        .map(|axis| fused.row()[axis] as f64 / fused.tile[axis] as f64)
        .product();
    let (mut loaded, mut stored, mut slots): (Vec<usize>, f64, f64) = (Vec::new(), 0.0, 0.0);
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
        slots += self::slots(stage) * problem.shape.cells() as f64 * fused.redundancy(number);
    }
    // Of what lies beyond a tile's sides, about half is still in the cache from the tile beside.
    let loaded = loaded.into_iter().map(bytes).sum::<f64>() * (1.0 + 0.5 * (across - 1.0));
    let mut estimate = bound(problem, device, loaded + stored, slots);
    let resident = resident_blocks(problem, device, fused).max(1);
    let waves = fused.blocks.iter().product::<usize>().div_ceil(resident) as f64;
    let rows_at_once = fused.values_of_row().div_ceil(fused.threads) as f64;
    let passed = fused.members.iter().flat_map(|member| &member.sources);
    let waits = passed.filter(|(_, source)| matches!(source, Source::Passed(..))).count();
    let turn = TURN_SECONDS + MEMBER_SECONDS * (fused.members.len() + waits) as f64 * rows_at_once;
    estimate.seconds = estimate.seconds.max(waves * fused.turns() as f64 * turn);
    estimate
}

/// Returns the blocks of a group that a device holds at once.
fn resident_blocks(problem: &Problem, device: &DeviceSpec, fused: &Fused) -> usize {
    let shared = fused.values_of_rings() * problem.dtype.bytes() + device.shared_bytes_reserved;
    let by_shared = device.shared_bytes / shared.max(1);
    let by_registers = device.registers.map_or(usize::MAX, |all| all / (REGISTERS * fused.threads));
    let by_threads = device.threads / fused.threads;
    let multiprocessors = if device.multiprocessors == 0 { MULTIPROCESSORS } else { device.multiprocessors };
    multiprocessors * by_shared.min(by_registers).min(by_threads)
}

fn bound(problem: &Problem, device: &DeviceSpec, bytes: f64, slots: f64) -> Estimate {
    let over = |amount: f64, rate: f64| if rate > 0.0 { amount / rate } else { 0.0 };
    let memory = over(bytes, device.memory_bandwidth * MEMORY_SHARE);
    // A multiply-add counts twice in the rate.
    let arithmetic = over(slots, device.flops(problem.dtype) / 2.0 * ARITHMETIC_SHARE);
    Estimate { bytes, slots, seconds: memory.max(arithmetic) }
}

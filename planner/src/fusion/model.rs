//! A model of a group of loops that is one kernel: bytes, operations, what halos add, launches.
//!
//! It is for the loops of any graph, those with values renamed and of a whole cycle too, of which no kernels are made. What
//! kernels there are the planner estimates, by their tiles (`planner::estimate`).

use abide_core::{DeviceSpec, Error, Problem, Result};

use super::graph::{Graph, Holds, Kind};
use super::halo::Inside;
use super::loops::Loops;
use super::objective::Objective;
use super::set::{MOST, Set};
use crate::rates::{ARITHMETIC, MEMORY_SHARE};

/// Threads of a block.
const THREADS: usize = 256;

/// The part of the smaller of the times of memory and arithmetic that is not hidden behind the larger one.
const UNHIDDEN: f64 = 0.25;

/// Registers of a thread for indices, addresses and the formula at hand.
const OWN_REGISTERS: usize = 40;

/// The share of a formula's taps that are in registers at once (the paper's RegFac).
pub(super) const TAPS_HELD: f64 = 0.85;

/// The blocks that each multiprocessor holds at least, so that one computes while another waits.
const RESIDENT: usize = 2;

/// Blocks to choose from, by the number of axes.
const BLOCKS: [&[[usize; 3]]; 3] = [
    &[[1, 1, 256], [1, 1, 1024], [1, 1, 2048]],
    &[[1, 8, 32], [1, 16, 32], [1, 32, 32], [1, 32, 64], [1, 64, 64]],
    &[[4, 8, 32], [8, 8, 32], [8, 16, 32], [16, 16, 32]],
];

/// The model of groups of a program's loops on a device.
#[derive(Debug, Clone)]
pub struct Model<'a> {
    graph: &'a Graph,
    loops: Loops,
    device: &'a DeviceSpec,
    cells: f64,
    /// Places in arithmetic pipes per second.
    slots: f64,
    blocks: &'static [[usize; 3]],
}

/// A group as one kernel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kernel {
    /// The block's own cells along the three axes.
    pub block: [usize; 3],
    /// Bytes of shared memory of a block, at the most at once.
    pub shared_bytes: usize,
    /// Registers of a thread, by the model.
    pub registers: usize,
    /// Bytes for each cell through device memory.
    pub bytes: u64,
    /// Floating-point operations for each cell, with those on halos.
    pub flops: f64,
    /// Cells that loops compute over those that they would compute alone; 1 without halos.
    pub recomputed: f64,
    /// Seconds for memory.
    pub memory_seconds: f64,
    /// Seconds for arithmetic.
    pub arithmetic_seconds: f64,
    /// Seconds for all, with the launch.
    pub seconds: f64,
}

impl<'a> Model<'a> {
    /// Prepares the model of a graph of a problem.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] where the device does not report its rates or has no shared memory.
    pub fn new(graph: &'a Graph, problem: &Problem, device: &'a DeviceSpec) -> Result<Model<'a>> {
        let rate = device.flops(problem.dtype);
        let reported = [device.memory_bandwidth, device.l2_bandwidth, rate];
        if reported.iter().any(|&rate| rate <= 0.0) || device.registers.is_none() || device.shared_bytes == 0
        {
            return Err(Error::invalid(
                &*device.name,
                "fused kernels are estimated by its rates, registers and shared memory, which it does not tell",
                "plan for a CUDA device, or with --device a100 or h200",
            ));
        }
        Ok(Model {
            graph,
            loops: Loops::of(graph, MOST)?,
            device,
            cells: problem.shape.cells() as f64,
            slots: rate / 2.0,
            blocks: BLOCKS[problem.shape.dimensions().clamp(1, 3) - 1],
        })
    }

    /// Returns the fastest kernel of a group; `None` where the group must not be, or no block of it fits.
    pub fn kernel(&self, group: &Set) -> Option<Kernel> {
        if !self.loops.may_be(group) {
            return None;
        }
        let inside = Inside::of(self.graph, group);
        let kernels = self.blocks.iter().filter_map(|&block| self.with_block(group, &inside, block));
        kernels.reduce(|best, next| if next.seconds < best.seconds { next } else { best })
    }

    fn with_block(&self, group: &Set, inside: &Inside, block: [usize; 3]) -> Option<Kernel> {
        let graph = self.graph;
        let own: usize = block.iter().product();
        let over_cells = |own: usize| matches!(graph.loops[own].kind, Kind::Update | Kind::Reduce);
        let (shared_bytes, registers) = (self.shared_bytes(inside, block), self.registers(inside, block));
        let is_alone = inside.loops.len() == 1;
        // A loop alone reads its taps from the caches, if need be.
        if !is_alone
            && (shared_bytes > self.device.shared_bytes_for(RESIDENT)
                || registers > self.device.registers_for(THREADS * RESIDENT))
        {
            return None;
        }
        let mut slots = 0.0;
        let (mut flops, mut computed, mut alone) = (0.0, 0.0, 0.0);
        for (number, layers) in inside.loops.iter().filter(|(number, _)| over_cells(*number)) {
            let (operations, share) =
                (graph.loops[*number].operations, layers.cells(block) as f64 / own as f64);
            slots += operations.slots() * share;
            flops += operations.flops as f64 * share;
            (computed, alone) = (computed + share, alone + 1.0);
        }
        let value = graph.value_bytes as f64;
        let bytes = self.loops.traffic(group);
        let (_, stored) = self.loops.moved(group);
        let is_loaded = |array: usize| graph.arrays[array].holds != Holds::Scalar;
        let loads = inside.values.iter().filter(|passed| passed.from.is_none() && is_loaded(passed.array));
        let around: f64 = loads.map(|passed| passed.layers.cells(block) as f64 / own as f64).sum();
        let through_l2 = value * (around + stored.len() as f64);
        let cells = if alone > 0.0 { self.cells } else { 0.0 };
        let memory = cells * bytes as f64 / self.device.memory_bandwidth / MEMORY_SHARE;
        let memory_seconds = memory.max(cells * through_l2 / self.device.l2_bandwidth);
        let arithmetic_seconds = cells * slots / self.slots * ARITHMETIC;
        // The tree of a reduction ends in a launch of its own.
        let reductions = group.iter().filter(|&own| graph.loops[own].kind == Kind::Reduce).count();
        let launches = self.device.launch_seconds * (1 + reductions) as f64;
        let (less, more) = (memory_seconds.min(arithmetic_seconds), memory_seconds.max(arithmetic_seconds));
        Some(Kernel {
            block,
            shared_bytes,
            registers,
            bytes,
            flops,
            recomputed: if alone > 0.0 { computed / alone } else { 1.0 },
            memory_seconds,
            arithmetic_seconds,
            seconds: launches + more + UNHIDDEN * less,
        })
    }

    /// Returns the bytes of the values that lie in shared memory at once: those made in the group and read around the
    /// cell, and those that several loops read around it, from the first loop that touches them to the last.
    fn shared_bytes(&self, inside: &Inside, block: [usize; 3]) -> usize {
        let values = || inside.pivot().filter(|passed| passed.is_around);
        let lies = |at: usize| {
            let begins = |from: Option<usize>, first: usize| from.unwrap_or(first) <= at;
            let now = values().filter(move |p| begins(p.from, p.read[0]) && at <= p.read[1]);
            now.map(|passed| passed.layers.cells(block) * self.graph.value_bytes).sum()
        };
        inside.loops.iter().map(|&(own, _)| lies(own)).max().unwrap_or(0)
    }

    /// Returns the registers of a thread: for values handed from loop to loop at the cell itself, for all cells of the
    /// thread, and for the taps of a formula.
    fn registers(&self, inside: &Inside, block: [usize; 3]) -> usize {
        let words = self.graph.value_bytes.div_ceil(4);
        let handed = |at: usize| {
            let now = inside.pivot().filter(|p| {
                !p.is_around
                    && p.from.unwrap_or(p.read[0]) <= at
                    && at <= p.read[1]
                    && self.graph.arrays[p.array].holds != Holds::Scalar
            });
            now.map(|passed| passed.layers.cells(block).div_ceil(THREADS) * words).sum::<usize>()
        };
        let most = |own: usize| {
            let taps = self.graph.loops[own].accesses.iter().filter_map(|access| access.reads);
            let taps: usize = taps.map(|reach| reach.taps).sum();
            (TAPS_HELD * (taps * words) as f64) as usize + handed(own)
        };
        OWN_REGISTERS + inside.loops.iter().map(|&(own, _)| most(own)).max().unwrap_or(0)
    }
}

/// Picoseconds.
impl Objective for Model<'_> {
    fn loops(&self) -> &Loops {
        &self.loops
    }

    fn cost(&self, group: &Set) -> Option<u64> {
        self.kernel(group).map(|kernel| (kernel.seconds * 1e12) as u64)
    }
}

//! The paper's codeless projection of a fused kernel (Wahib and Maruyama, SC'14, eq. 2 to 12): from figures of the
//! original kernels and of the device alone.
//!
//! Where the equations as printed contradict themselves or the text, `docs/internals/fusion-models.md` lists what is done here.

use abide_core::{DType, DeviceSpec};

use super::graph::{Graph, Holds, Kind};
use super::halo::{Inside, Layers};
use super::set::Set;

/// The threads of a block of a program's kernels, one a cell.
pub const RUNS_BLOCK: [[usize; 3]; 3] = [[1, 1, 128], [1, 4, 32], [2, 2, 32]];

/// The share of the taps of the array with most that registers hold, measured by the paper on Kepler.
const REG_FAC: f64 = 0.85;

/// The share of shared memory that padding takes, where rows would meet in one bank of 32.
const PADDING: f64 = 1.0 / 32.0;

/// A device (Table IV).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// Multiprocessors, SMX.
    pub multiprocessors: usize,
    /// 32-bit registers of one, RSMX.
    pub registers: usize,
    /// Bytes of shared memory of one, ShSMX.
    pub shared_bytes: usize,
    /// The most registers of a thread, RMax.
    pub registers_per_thread: usize,
    /// Peak in 10⁹ operations per second.
    pub peak_gflops: f64,
    /// Bandwidth of memory in 10⁹ bytes per second, GMEMBW.
    pub memory_gb_per_s: f64,
}

const fn table_iv(
    multiprocessors: usize,
    shared_kib: usize,
    peak_gflops: f64,
    memory_gb_per_s: f64,
) -> Machine {
    let (registers, shared_bytes) = (64 * 1024, shared_kib * 1024);
    Machine {
        multiprocessors,
        registers,
        shared_bytes,
        registers_per_thread: 255,
        peak_gflops,
        memory_gb_per_s,
    }
}

/// The paper's K20X, in double precision.
pub const K20X: Machine = table_iv(14, 48, 1310.0, 202.0);

/// The paper's K40, in double precision.
pub const K40: Machine = table_iv(15, 48, 1430.0, 214.0);

/// The paper's GTX 750 Ti, in single precision.
pub const GTX750TI: Machine = table_iv(5, 64, 1380.0, 69.0);

impl Machine {
    /// Takes what the model asks from a device.
    pub fn of(device: &DeviceSpec, dtype: DType) -> Machine {
        Machine {
            multiprocessors: device.multiprocessors,
            registers: device.registers.unwrap_or(0),
            shared_bytes: device.shared_bytes,
            registers_per_thread: device.registers_per_thread.unwrap_or(0),
            peak_gflops: device.flops(dtype) / 1e9,
            memory_gb_per_s: device.memory_bandwidth / 1e9,
        }
    }
}

/// What the model knows of an original kernel (Table III).
#[derive(Debug, Clone, PartialEq)]
pub struct Metadata {
    /// Active blocks per multiprocessor, BlocksSMX.
    pub blocks_per_multiprocessor: usize,
    /// Active threads of a block, TB.
    pub active_threads: usize,
    /// Threads of a block, Thr.
    pub threads: usize,
    /// Blocks, B.
    pub blocks: usize,
    /// Registers of a thread, RT.
    pub registers: usize,
    /// Registers for indices and addresses, Radr.
    pub address_registers: usize,
    /// Operations of the kernel, Fl.
    pub flops: f64,
    /// For each array that it touches: its number, the thread load ThrLD(x), and the operations of the kernel that make
    /// its values, Flop(x).
    pub arrays: Vec<(usize, usize, f64)>,
}

/// Kernels to be fused.
#[derive(Debug, Clone, PartialEq)]
pub struct Fusing<'a> {
    /// The originals.
    pub kernels: &'a [Metadata],
    /// The arrays that are reused through shared memory, F_Pivot and ShrLst.
    pub shared: &'a [usize],
    /// The arrays made on halos, S.
    pub on_halo: &'a [usize],
    /// Points of a block's halo, Hal; 0 without one.
    pub halo: usize,
    /// Bytes of a value.
    pub value_bytes: usize,
}

/// What the model says of a fused kernel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Projection {
    /// Halo points for each thread, HTH.
    pub halo_per_thread: usize,
    /// The blocking factor of shared memory, BSh (8).
    pub blocking: f64,
    /// Beff.
    pub effective: f64,
    /// PMemBound (9), in 10⁹ operations per second, as printed.
    pub unbounded_gflops: f64,
    /// PMemBound, but no more than the device's peak.
    pub gflops: f64,
    /// Operations, with those on halos.
    pub flops: f64,
    /// Tpro (10).
    pub seconds: f64,
    /// Registers of a thread that (6) asks for.
    pub registers: usize,
    /// Bytes of shared memory of a multiprocessor that (7) asks for.
    pub shared_bytes: usize,
    /// Whether (6) and (7) hold.
    pub fits: bool,
}

impl Fusing<'_> {
    /// Projects the fused kernel; `None` where there is no original, or one of no threads.
    pub fn project(&self, machine: &Machine) -> Option<Projection> {
        let least = |of: fn(&Metadata) -> usize| self.kernels.iter().map(of).min();
        let threads = least(|kernel| kernel.threads).filter(|&threads| threads > 0)?;
        let (active, resident) = (least(|k| k.active_threads)?, least(|k| k.blocks_per_multiprocessor)?);
        let blocks = self.kernels.iter().map(|kernel| kernel.blocks).max()?;
        let halo_per_thread = if self.halo > 0 { self.halo.div_ceil(threads) } else { 0 };
        // Nothing shared: the kernel holds one array at a time.
        let size = self.shared.len().max(1);
        let in_flight = (active * resident) as f64;
        let blocking = in_flight / ((1 + halo_per_thread) * size) as f64;
        // Of more blocks than are resident, those that wait share nothing.
        let at_once = blocks.min(resident * machine.multiprocessors).max(1);
        let effective = blocking * machine.multiprocessors as f64 / (threads * at_once) as f64;
        let unbounded_gflops = effective * machine.memory_gb_per_s / self.value_bytes as f64;
        let gflops = unbounded_gflops.min(machine.peak_gflops);
        let own: f64 = self.kernels.iter().map(|kernel| kernel.flops).sum();
        let arrays = || self.kernels.iter().flat_map(|kernel| &kernel.arrays);
        let on_halo: f64 =
            arrays().filter(|(array, ..)| self.on_halo.contains(array)).map(|(.., flops)| flops).sum();
        let flops = own + on_halo * self.halo as f64 / threads as f64;
        let load = arrays().filter(|(array, ..)| self.shared.contains(array)).map(|(_, load, _)| *load).max();
        let words = self.value_bytes.div_ceil(4);
        let address = self.kernels.iter().map(|kernel| kernel.address_registers).max()?;
        let values = 1 + 2 * halo_per_thread + (REG_FAC * load.unwrap_or(0) as f64).ceil() as usize;
        let registers = words * values + address + 1;
        let used = (1 + halo_per_thread) * active * resident * self.shared.len() * self.value_bytes;
        let shared_bytes = used + (used as f64 * PADDING).ceil() as usize;
        Some(Projection {
            halo_per_thread,
            blocking,
            effective,
            unbounded_gflops,
            gflops,
            flops,
            seconds: if gflops > 0.0 { flops * 1e-9 / gflops } else { f64::INFINITY },
            registers,
            shared_bytes,
            fits: registers < machine.registers_per_thread && shared_bytes <= machine.shared_bytes,
        })
    }
}

impl Graph {
    /// Returns what the model knows of the loops as kernels of a thread a cell, in blocks of [`RUNS_BLOCK`].
    ///
    /// Registers are counted from taps, as no compiler is asked.
    pub fn metadata(&self, own: usize, cells: usize, machine: &Machine) -> Metadata {
        let threads = self.block().iter().product::<usize>();
        let node = &self.loops[own];
        let words = self.value_bytes.div_ceil(4);
        let taps: usize =
            node.accesses.iter().filter_map(|access| access.reads).map(|reach| reach.taps).sum();
        let address_registers = 2 * node.accesses.len() + 4;
        let values = 1 + (REG_FAC * taps as f64).ceil() as usize;
        let registers = (address_registers + words * values + 1).min(machine.registers_per_thread.max(1));
        // Threads are resident by eq. 3.
        let blocks_per_multiprocessor = (machine.registers / (threads * registers)).max(1);
        let over_cells = matches!(node.kind, Kind::Update | Kind::Reduce);
        let flops = if over_cells { (node.operations.flops * cells) as f64 } else { 0.0 };
        let written = node.accesses.iter().filter(|access| access.writes).count().max(1);
        let arrays = node.accesses.iter().filter(|access| self.arrays[access.array].holds != Holds::Scalar);
        let arrays = arrays.map(|access| {
            let load = access.reads.map_or(0, |reach| reach.taps);
            (access.array, load, if access.writes { flops / written as f64 } else { 0.0 })
        });
        Metadata {
            blocks_per_multiprocessor,
            active_threads: threads,
            threads,
            blocks: cells.div_ceil(threads),
            registers,
            address_registers,
            flops,
            arrays: arrays.collect(),
        }
    }

    /// Projects a group as one kernel.
    pub fn project(&self, group: &Set, cells: usize, machine: &Machine) -> Option<Projection> {
        let kernels: Vec<Metadata> = group.iter().map(|own| self.metadata(own, cells, machine)).collect();
        let inside = Inside::of(self, group);
        let is_sized = |array: usize| self.arrays[array].holds != Holds::Scalar;
        let mut shared: Vec<usize> = match kernels.len() {
            // A kernel alone keeps what several of its threads read.
            1 => inside.values.iter().filter(|passed| passed.is_around).map(|passed| passed.array).collect(),
            _ => inside.pivot().filter(|passed| passed.is_around).map(|passed| passed.array).collect(),
        };
        let on_halo = inside.values.iter().filter(|p| p.from.is_some() && p.layers != Layers::default());
        let on_halo: Vec<usize> =
            on_halo.map(|passed| passed.array).filter(|&array| is_sized(array)).collect();
        shared.retain(|&array| is_sized(array));
        shared.sort_unstable();
        shared.dedup();
        let block = self.block();
        // By the widest stencil of the group, as the paper has it.
        let widest = inside.loops.iter().map(|(_, layers)| layers.cells(block)).max().unwrap_or(0);
        let halo = widest.saturating_sub(block.iter().product());
        let fusing = Fusing {
            kernels: &kernels,
            shared: &shared,
            on_halo: &on_halo,
            halo,
            value_bytes: self.value_bytes,
        };
        fusing.project(machine)
    }

    fn block(&self) -> [usize; 3] {
        RUNS_BLOCK[self.dimensions.clamp(1, 3) - 1]
    }
}

/// Returns what fusing takes off the traffic (11): bytes of the fused kernel over those of the originals.
pub fn theoretical_gain(fused_bytes: u64, original_bytes: u64) -> f64 {
    fused_bytes as f64 / (original_bytes as f64).max(1.0)
}

/// Returns the fusion efficiency FE (12): the share of traffic that is left over the share of time that is left.
pub fn efficiency(gain: f64, fused_seconds: f64, original_seconds: f64) -> f64 {
    gain / (fused_seconds / original_seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's example: three kernels that share two arrays, one of them on a halo of 32 points.
    fn example() -> Vec<Metadata> {
        let one = |active_threads| Metadata {
            blocks_per_multiprocessor: 32,
            active_threads,
            threads: 128,
            blocks: 64,
            registers: 16,
            address_registers: 6,
            flops: 1e6,
            arrays: vec![(0, 4, 0.0), (1, 1, 1e6)],
        };
        vec![one(128), one(86), one(100)]
    }

    fn fusing(kernels: &[Metadata], halo: usize) -> Fusing<'_> {
        Fusing { kernels, shared: &[0, 1], on_halo: if halo > 0 { &[1] } else { &[] }, halo, value_bytes: 8 }
    }

    #[test]
    fn the_papers_example() {
        let kernels = example();
        let projection = fusing(&kernels, 32).project(&K20X).unwrap();
        assert_eq!((projection.halo_per_thread, projection.blocking), (1, 688.0));
        assert!((projection.unbounded_gflops - 29.69).abs() < 0.005, "{projection:?}");
        let roofline = 0.195 * K20X.memory_gb_per_s;
        assert!((roofline - 39.39).abs() < 1e-9);
        assert!((projection.gflops / roofline - 0.754).abs() < 0.0005);
        // Trap 1: rounded down, the halo would cost nothing.
        assert_eq!(fusing(&kernels, 0).project(&K20X).unwrap().blocking, 1376.0);
        // Trap 2: in bytes it does not fit: 2 * 86 * 32 * 2 * 8, and padding.
        assert_eq!((projection.shared_bytes, projection.fits), (88_064 + 2752, false));
    }

    #[test]
    fn operations_on_halos_count_for_all_blocks_and_the_originals_own_for_once() {
        let kernels = example();
        let projection = fusing(&kernels, 32).project(&K20X).unwrap();
        // Traps 3 and 4: 3e6 of the originals' own, and of each of three 1e6 a quarter again.
        assert_eq!(projection.flops, 3e6 + 3e6 * 32.0 / 128.0);
        assert!((projection.seconds - 3.75e6 * 1e-9 / projection.gflops).abs() < 1e-15);
    }

    /// Trap 6, and blocks beyond those that are resident.
    #[test]
    fn the_bound_is_no_more_than_the_peak_and_knows_no_size() {
        let mut kernels = example();
        let slow = Machine { peak_gflops: 10.0, ..K20X };
        let projection = fusing(&kernels, 32).project(&slow).unwrap();
        assert!(projection.unbounded_gflops > 29.0 && projection.gflops == 10.0);
        let mut with_blocks = |blocks| {
            kernels.iter_mut().for_each(|kernel| kernel.blocks = blocks);
            fusing(&kernels, 32).project(&K20X).unwrap().gflops
        };
        assert_eq!(with_blocks(14 * 32), with_blocks(14 * 32 * 100));
        assert!(with_blocks(64) > with_blocks(14 * 32));
        assert_eq!(fusing(&[], 0).project(&K20X), None);
    }

    #[test]
    fn efficiency_compares_time_with_traffic() {
        let gain = theoretical_gain(60, 100);
        assert_eq!((gain, efficiency(gain, 0.75, 1.0)), (0.6, 0.6 / 0.75));
    }
}

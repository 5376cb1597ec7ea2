//! What a device has: asked of it at run time, or a preset, so that a plan for it can be made anywhere.

use serde::Serialize;

use crate::error::{Error, Result};
use crate::real::DType;

/// The resources and rates that a plan needs. Rates are peaks: datasheet values in presets and for CUDA
/// devices, measured copies where a device does not tell (wgpu adapters and CPUs).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeviceSpec {
    /// The device's own name.
    pub name: String,
    /// Compute capability of a CUDA device, as in (9, 0).
    pub compute_capability: Option<(u32, u32)>,
    /// Multiprocessors; cores of a CPU; 0 where the device does not tell.
    pub multiprocessors: usize,
    /// 32-bit registers of one multiprocessor; 0 where they cannot be planned.
    pub registers: usize,
    /// The most registers a thread can use.
    pub registers_per_thread: usize,
    /// Bytes of shared memory of one multiprocessor; of a CPU's core, of the second-level cache that it has
    /// to itself.
    pub shared_bytes: usize,
    /// The most bytes of shared (workgroup) memory of one block; of a CPU's core, of its first-level data
    /// cache.
    pub shared_bytes_per_block: usize,
    /// Bytes of shared memory that the system takes from each block.
    pub shared_bytes_reserved: usize,
    /// The most resident threads of one multiprocessor.
    pub threads: usize,
    /// The most threads of one block.
    pub threads_per_block: usize,
    /// Threads of a warp (subgroup); 1 where their number is not known, or they cannot shuffle values.
    pub warp: usize,
    /// Bytes of the last-level cache on the chip.
    pub l2_bytes: usize,
    /// Bytes of device memory.
    pub memory_bytes: u64,
    /// The most bytes of one buffer that a kernel can address.
    pub buffer_bytes: u64,
    /// Bytes per second between device memory and the chip; 0 where it is not known, or was not needed.
    pub memory_bandwidth: f64,
    /// Bytes per second from the last-level cache.
    pub l2_bandwidth: f64,
    /// Bytes per second of all multiprocessors' shared memory together.
    pub shared_bandwidth: f64,
    /// Floating-point operations per second in f32, a fused multiply-add counted twice.
    pub f32_flops: f64,
    /// Floating-point operations per second in f64, a fused multiply-add counted twice; 0 where there is no
    /// f64.
    pub f64_flops: f64,
    /// Seconds from one kernel to the next in a graph or submission.
    pub launch_seconds: f64,
    /// Seconds of a barrier among all resident blocks.
    pub barrier_seconds: f64,
}

/// The presets' names.
pub const PRESETS: [&str; 4] = ["v100", "a100", "h100", "h200"];

struct Preset {
    name: &'static str,
    capability: (u32, u32),
    multiprocessors: usize,
    shared_kib: usize,
    shared_block_kib: usize,
    l2_mib: usize,
    memory_gib: u64,
    memory_gb_per_s: f64,
    l2_gb_per_s: f64,
    clock_ghz: f64,
    f64_per_f32: f64,
    barrier_us: f64,
}

/// Vendor datasheets and whitepapers (SXM parts). L2 bandwidths are 64 bytes per clock and slice as published
/// for V100 and A100; H100 and H200 measured as about 5.5 TB/s by microbenchmarks. The A100's barrier is
/// measured (Zhang et al., ICS'23, §5.2.2), the others' is a microsecond.
const TABLE: [Preset; 4] = [
    Preset {
        name: "V100",
        capability: (7, 0),
        multiprocessors: 80,
        shared_kib: 96,
        shared_block_kib: 96,
        l2_mib: 6,
        memory_gib: 16,
        memory_gb_per_s: 900.0,
        l2_gb_per_s: 2155.0,
        clock_ghz: 1.53,
        f64_per_f32: 0.5,
        barrier_us: 1.0,
    },
    Preset {
        name: "A100",
        capability: (8, 0),
        multiprocessors: 108,
        shared_kib: 164,
        shared_block_kib: 163,
        l2_mib: 40,
        memory_gib: 40,
        memory_gb_per_s: 1555.0,
        l2_gb_per_s: 4900.0,
        clock_ghz: 1.41,
        f64_per_f32: 0.5,
        barrier_us: 1.2,
    },
    Preset {
        name: "H100",
        capability: (9, 0),
        multiprocessors: 132,
        shared_kib: 228,
        shared_block_kib: 227,
        l2_mib: 50,
        memory_gib: 80,
        memory_gb_per_s: 3350.0,
        l2_gb_per_s: 5500.0,
        clock_ghz: 1.98,
        f64_per_f32: 0.5,
        barrier_us: 1.0,
    },
    Preset {
        name: "H200",
        capability: (9, 0),
        multiprocessors: 132,
        shared_kib: 228,
        shared_block_kib: 227,
        l2_mib: 60,
        memory_gib: 141,
        memory_gb_per_s: 4800.0,
        l2_gb_per_s: 5500.0,
        clock_ghz: 1.98,
        f64_per_f32: 0.5,
        barrier_us: 1.0,
    },
];

impl DeviceSpec {
    /// A preset by name: `v100`, `a100`, `h100` or `h200`.
    pub fn preset(name: &str) -> Result<DeviceSpec> {
        let lower = name.to_ascii_lowercase();
        let Some(position) = PRESETS.iter().position(|&preset| preset == lower) else {
            return Err(Error::unknown("device preset", name, PRESETS));
        };
        let p = &TABLE[position];
        // 64 f32 lanes a multiprocessor before Hopper, 128 from Hopper on; a fused multiply-add is two
        // operations.
        let lanes = if p.capability.0 >= 9 { 128.0 } else { 64.0 };
        let clocks = p.multiprocessors as f64 * p.clock_ghz * 1e9;
        let f32_flops = 2.0 * lanes * clocks;
        let memory_bytes = p.memory_gib << 30;
        Ok(DeviceSpec {
            name: p.name.to_owned(),
            compute_capability: Some(p.capability),
            multiprocessors: p.multiprocessors,
            registers: 65536,
            registers_per_thread: 255,
            shared_bytes: p.shared_kib << 10,
            shared_bytes_per_block: p.shared_block_kib << 10,
            shared_bytes_reserved: if p.capability.0 >= 8 { 1024 } else { 0 },
            threads: 2048,
            threads_per_block: 1024,
            warp: 32,
            l2_bytes: p.l2_mib << 20,
            memory_bytes,
            buffer_bytes: memory_bytes,
            memory_bandwidth: p.memory_gb_per_s * 1e9,
            l2_bandwidth: p.l2_gb_per_s * 1e9,
            shared_bandwidth: 128.0 * clocks,
            f32_flops,
            f64_flops: f32_flops * p.f64_per_f32,
            launch_seconds: 0.54e-6,
            barrier_seconds: p.barrier_us * 1e-6,
        })
    }

    /// Operations per second in a type.
    pub fn flops(&self, dtype: DType) -> f64 {
        match dtype {
            DType::F32 => self.f32_flops,
            DType::F64 => self.f64_flops,
        }
    }

    /// Registers that each of `threads` threads resident on a multiprocessor may use.
    pub fn registers_for(&self, threads: usize) -> usize {
        let registers = (self.registers / threads).min(self.registers_per_thread) / 8 * 8;
        if registers >= 248 { self.registers_per_thread } else { registers }
    }

    /// Bytes of shared memory that each of `blocks` blocks resident on a multiprocessor may use.
    pub fn shared_bytes_for(&self, blocks: usize) -> usize {
        self.shared_bytes_per_block
            .min((self.shared_bytes / blocks).saturating_sub(self.shared_bytes_reserved))
    }

    /// Bytes of registers and shared memory on the whole chip: the most a persistent kernel could keep.
    pub fn on_chip_bytes(&self) -> usize {
        self.multiprocessors * (4 * self.registers + self.shared_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_hold_the_datasheets_figures() {
        let h200 = DeviceSpec::preset("h200").unwrap();
        assert!((h200.f64_flops / 33.5e12 - 1.0).abs() < 0.01, "{}", h200.f64_flops);
        assert!((h200.f32_flops / 67e12 - 1.0).abs() < 0.01);
        assert_eq!(h200.on_chip_bytes(), 132 * (256 + 228) * 1024);
        let a100 = DeviceSpec::preset("A100").unwrap();
        assert!((a100.f64_flops / 9.7e12 - 1.0).abs() < 0.01);
        assert!(DeviceSpec::preset("b300").is_err());
    }
}

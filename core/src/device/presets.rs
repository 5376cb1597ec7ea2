//! Device presets by name, so that a plan for such a device can be made anywhere.

use super::{DeviceSpec, Link};
use crate::error::{Error, Result};

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

/// The figures of vendor datasheets and whitepapers (SXM parts). L2 bandwidths are 64 bytes per clock and
/// slice as published for V100 and A100; for H100 and H200 microbenchmarks measured about 5.5 TB/s. The
/// A100's barrier is measured (Zhang et al., ICS'23, §5.2.2), and so is the H200's, with a word of each thread that is
/// read behind it; the H100's is taken as the same, the V100's as a microsecond.
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
        barrier_us: 1.1,
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
        barrier_us: 1.1,
    },
];

/// What an exchange with the blocks beside takes of a barrier's time: measured on an H200.
const EXCHANGE_SHARE: f64 = 0.95;

impl DeviceSpec {
    /// Returns a preset by its name: `v100`, `a100`, `h100` or `h200`.
    pub fn preset(name: &str) -> Result<DeviceSpec> {
        let lower = name.to_ascii_lowercase();
        let Some(position) = PRESETS.iter().position(|&preset| preset == lower) else {
            return Err(Error::unknown("device preset", name, PRESETS));
        };
        let p = &TABLE[position];
        // There are 64 f32 lanes per multiprocessor before Hopper, 128 from Hopper on; a fused multiply-add
        // is two operations.
        let lanes = if p.capability.0 >= 9 { 128.0 } else { 64.0 };
        let clocks = p.multiprocessors as f64 * p.clock_ghz * 1e9;
        let f32_flops = 2.0 * lanes * clocks;
        let memory_bytes = p.memory_gib << 30;
        Ok(DeviceSpec {
            name: p.name.to_owned(),
            compute_capability: Some(p.capability),
            multiprocessors: p.multiprocessors,
            registers: Some(65536),
            registers_per_thread: Some(255),
            shared_bytes: p.shared_kib << 10,
            shared_bytes_per_block: p.shared_block_kib << 10,
            constant_bytes: Some(64 << 10),
            caches: None,
            shared_bytes_reserved: if p.capability.0 >= 8 { 1024 } else { 0 },
            threads: 2048,
            threads_per_block: 1024,
            warp: Some(32),
            l2_bytes: p.l2_mib << 20,
            memory_bytes,
            buffer_bytes: memory_bytes,
            kernel_buffers: None,
            memory_bandwidth: p.memory_gb_per_s * 1e9,
            l2_bandwidth: p.l2_gb_per_s * 1e9,
            shared_bandwidth: 128.0 * clocks,
            f32_flops,
            f64_flops: f32_flops * p.f64_per_f32,
            launch_seconds: 0.54e-6,
            barrier_seconds: p.barrier_us * 1e-6,
            exchange_seconds: EXCHANGE_SHARE * p.barrier_us * 1e-6,
            link: Some(Link::of(p.capability)),
        })
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

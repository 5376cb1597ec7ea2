//! Device presets by name, so that a plan for such a device can be made anywhere.

use super::{DeviceSpec, Link};
use crate::error::{Error, Result};

/// The presets' names.
pub const PRESETS: [&str; TABLE.len()] = {
    let mut names = [""; TABLE.len()];
    let mut row = 0;
    while row < TABLE.len() {
        names[row] = TABLE[row].key;
        row += 1;
    }
    names
};

/// A device by its vendor's published figures.
#[derive(Clone, Copy)]
struct Preset {
    key: &'static str,
    name: &'static str,
    multiprocessors: usize,
    clock_ghz: f64,
    /// Operations in f64 over those in f32; 0 where there is no f64.
    f64_per_f32: f64,
    l2_mib: usize,
    memory_gib: u64,
    memory_gb_per_s: f64,
    l2_gb_per_s: f64,
    interface: Interface,
}

/// What the interface through which Abide runs a device reports.
#[derive(Clone, Copy)]
enum Interface {
    Cuda(Cuda),
    Wgpu(Wgpu),
}

/// What is fixed by a compute capability (CUDA C++ Programming Guide, technical specifications per compute capability), and
/// the time of a barrier.
#[derive(Clone, Copy)]
struct Cuda {
    capability: (u32, u32),
    /// Lanes of f32 of a multiprocessor.
    lanes: usize,
    shared_kib: usize,
    shared_block_kib: usize,
    threads: usize,
    barrier_us: f64,
}

/// What Vulkan or Metal report, which is neither registers nor a barrier of all workgroups.
#[derive(Clone, Copy)]
struct Wgpu {
    /// Lanes of f32 of a multiprocessor.
    lanes: usize,
    /// Threads of a subgroup, where all subgroups have the same.
    subgroup: Option<usize>,
    workgroup_kib: usize,
}

const VOLTA: Cuda = Cuda {
    capability: (7, 0),
    lanes: 64,
    shared_kib: 96,
    shared_block_kib: 96,
    threads: 2048,
    barrier_us: 1.0,
};
const A100: Cuda = Cuda {
    capability: (8, 0),
    lanes: 64,
    shared_kib: 164,
    shared_block_kib: 163,
    threads: 2048,
    barrier_us: 1.2,
};
const HOPPER: Cuda = Cuda {
    capability: (9, 0),
    lanes: 128,
    shared_kib: 228,
    shared_block_kib: 227,
    threads: 2048,
    barrier_us: 1.1,
};
const BLACKWELL: Cuda = Cuda { capability: (10, 0), ..HOPPER };
const AMPERE: Cuda = Cuda {
    capability: (8, 6),
    lanes: 128,
    shared_kib: 100,
    shared_block_kib: 99,
    threads: 1536,
    barrier_us: 1.2,
};
const ADA: Cuda = Cuda { capability: (8, 9), ..AMPERE };
const RTX_BLACKWELL: Cuda = Cuda { capability: (12, 0), ..AMPERE };

/// Published figures; clocks are those of the stated peak rates. L2 bandwidths are 64 bytes per clock and slice as published for
/// V100 and A100. For H100 and H200 microbenchmarks measured about 5.5 TB/s; the B200's is taken in proportion to
/// multiprocessors and clocks, those of cards with GDDR memory as 16 bytes per clock and multiprocessor. The A100's barrier is
/// measured (Zhang et al., ICS'23, §5.2.2), and so is the H200's, with a word of each thread that is read behind it; the V100's is
/// taken as a microsecond, all others as that of the A100 or the H200.
#[rustfmt::skip]
const TABLE: [Preset; 12] = [
    // NVIDIA Tesla V100 GPU architecture, whitepaper: SXM2, 16 GB.
    Preset { key: "v100", name: "V100", multiprocessors: 80, clock_ghz: 1.53, f64_per_f32: 0.5, l2_mib: 6,
        memory_gib: 16, memory_gb_per_s: 900.0, l2_gb_per_s: 2155.0, interface: Interface::Cuda(VOLTA) },
    // NVIDIA A100 Tensor Core GPU architecture, whitepaper: SXM4, 40 GB.
    Preset { key: "a100", name: "A100", multiprocessors: 108, clock_ghz: 1.41, f64_per_f32: 0.5, l2_mib: 40,
        memory_gib: 40, memory_gb_per_s: 1555.0, l2_gb_per_s: 4900.0, interface: Interface::Cuda(A100) },
    // NVIDIA H100 Tensor Core GPU, data sheet: SXM5, 80 GB.
    Preset { key: "h100", name: "H100", multiprocessors: 132, clock_ghz: 1.98, f64_per_f32: 0.5, l2_mib: 50,
        memory_gib: 80, memory_gb_per_s: 3350.0, l2_gb_per_s: 5500.0, interface: Interface::Cuda(HOPPER) },
    // NVIDIA H200 Tensor Core GPU, data sheet: SXM5.
    Preset { key: "h200", name: "H200", multiprocessors: 132, clock_ghz: 1.98, f64_per_f32: 0.5, l2_mib: 60,
        memory_gib: 141, memory_gb_per_s: 4800.0, l2_gb_per_s: 5500.0, interface: Interface::Cuda(HOPPER) },
    // NVIDIA HGX B200, data sheet: an eighth of eight (1.4 TB, 62 TB/s, 600 TFlop/s in f32, 296 in f64).
    Preset { key: "b200", name: "B200", multiprocessors: 148, clock_ghz: 1.965, f64_per_f32: 0.5, l2_mib: 126,
        memory_gib: 180, memory_gb_per_s: 7750.0, l2_gb_per_s: 6100.0, interface: Interface::Cuda(BLACKWELL) },
    // NVIDIA L40S, data sheet; L2 of the AD102 in NVIDIA Ada GPU architecture, whitepaper.
    Preset { key: "l40s", name: "L40S", multiprocessors: 142, clock_ghz: 2.52, f64_per_f32: 1.0 / 64.0, l2_mib: 96,
        memory_gib: 48, memory_gb_per_s: 864.0, l2_gb_per_s: 5700.0, interface: Interface::Cuda(ADA) },
    // NVIDIA Ada GPU architecture, whitepaper: GeForce RTX 4090.
    Preset { key: "rtx4090", name: "RTX 4090", multiprocessors: 128, clock_ghz: 2.52, f64_per_f32: 1.0 / 64.0, l2_mib: 72,
        memory_gib: 24, memory_gb_per_s: 1008.0, l2_gb_per_s: 5160.0, interface: Interface::Cuda(ADA) },
    // NVIDIA RTX Blackwell GPU architecture, whitepaper: GeForce RTX 5090.
    Preset { key: "rtx5090", name: "RTX 5090", multiprocessors: 170, clock_ghz: 2.407, f64_per_f32: 1.0 / 64.0, l2_mib: 96,
        memory_gib: 32, memory_gb_per_s: 1792.0, l2_gb_per_s: 6550.0, interface: Interface::Cuda(RTX_BLACKWELL) },
    // NVIDIA RTX A6000, data sheet; rates of the GA102 in NVIDIA Ampere GA102 GPU architecture, whitepaper.
    Preset { key: "rtxa6000", name: "RTX A6000", multiprocessors: 84, clock_ghz: 1.8, f64_per_f32: 1.0 / 64.0, l2_mib: 6,
        memory_gib: 48, memory_gb_per_s: 768.0, l2_gb_per_s: 2420.0, interface: Interface::Cuda(AMPERE) },
    // AMD Instinct MI300X, data sheet; compute units, wavefronts and LDS of AMD CDNA 3 architecture, white paper, with the
    // Infinity Cache as the last level.
    Preset { key: "mi300x", name: "MI300X", multiprocessors: 304, clock_ghz: 2.1, f64_per_f32: 0.5, l2_mib: 256,
        memory_gib: 192, memory_gb_per_s: 5300.0, l2_gb_per_s: 17200.0,
        interface: Interface::Wgpu(Wgpu { lanes: 128, subgroup: Some(64), workgroup_kib: 64 }) },
    // Apple M3 Max, technical specifications of the MacBook Pro: 40 GPU cores, 128 GB; threadgroup memory and SIMD groups of
    // Metal feature set tables, family Apple 9. Apple publishes neither clock nor caches: the clock is what 14.1 TFlop/s take,
    // which benchmarks measured, and reads from the cache count as reads from memory.
    Preset { key: "m3max", name: "M3 Max", multiprocessors: 40, clock_ghz: 1.38, f64_per_f32: 0.0, l2_mib: 0,
        memory_gib: 128, memory_gb_per_s: 400.0, l2_gb_per_s: 400.0,
        interface: Interface::Wgpu(Wgpu { lanes: 128, subgroup: Some(32), workgroup_kib: 32 }) },
    // Intel Arc A770 (16 GB), product specifications; Xe cores and caches of Introduction to the Xe-HPG architecture, white paper.
    // Subgroups have 8 to 32 threads, and reads from L2 count as reads from memory, because its rate is not published.
    Preset { key: "arca770", name: "Arc A770", multiprocessors: 32, clock_ghz: 2.1, f64_per_f32: 0.0, l2_mib: 16,
        memory_gib: 16, memory_gb_per_s: 560.0, l2_gb_per_s: 560.0,
        interface: Interface::Wgpu(Wgpu { lanes: 128, subgroup: None, workgroup_kib: 32 }) },
];

/// What an exchange with the blocks beside takes of a barrier's time: measured on an H200.
const EXCHANGE_SHARE: f64 = 0.95;

/// Seconds of a dispatch beside its work through wgpu, as found with dispatches of 512² cells on an H200 over Vulkan.
pub const DISPATCH_SECONDS: f64 = 5e-6;

/// The storage buffers that a kernel can name through wgpu on such devices.
const WGPU_BUFFERS: usize = 8;

/// The most bytes of a buffer through wgpu: WGSL counts bytes of a binding in 32 bits.
const WGPU_BUFFER_BYTES: u64 = (4 << 30) - 4;

impl DeviceSpec {
    /// Returns a preset by its name, one of [`PRESETS`]; capitals, spaces and signs between do not count, as in `RTX 4090`.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] with the names there are.
    pub fn preset(name: &str) -> Result<DeviceSpec> {
        let plain: String = name.chars().filter(|c| c.is_ascii_alphanumeric()).collect();
        let Some(preset) = TABLE.iter().find(|preset| preset.key.eq_ignore_ascii_case(&plain)) else {
            return Err(Error::unknown("device preset", name, PRESETS));
        };
        Ok(match preset.interface {
            Interface::Cuda(cuda) => preset.on_cuda(&cuda),
            Interface::Wgpu(wgpu) => preset.on_wgpu(&wgpu),
        })
    }
}

impl Preset {
    /// Returns the clocks of all multiprocessors per second.
    fn clocks(&self) -> f64 {
        self.multiprocessors as f64 * self.clock_ghz * 1e9
    }

    fn on_cuda(&self, cuda: &Cuda) -> DeviceSpec {
        // A fused multiply-add is two operations.
        let f32_flops = 2.0 * cuda.lanes as f64 * self.clocks();
        let memory_bytes = self.memory_gib << 30;
        DeviceSpec {
            name: self.name.to_owned(),
            compute_capability: Some(cuda.capability),
            multiprocessors: self.multiprocessors,
            registers: Some(65536),
            registers_per_thread: Some(255),
            shared_bytes: cuda.shared_kib << 10,
            shared_bytes_per_block: cuda.shared_block_kib << 10,
            constant_bytes: Some(64 << 10),
            caches: None,
            shared_bytes_reserved: if cuda.capability.0 >= 8 { 1024 } else { 0 },
            threads: cuda.threads,
            threads_per_block: 1024,
            warp: Some(32),
            l2_bytes: self.l2_mib << 20,
            memory_bytes,
            buffer_bytes: memory_bytes,
            kernel_buffers: None,
            memory_bandwidth: self.memory_gb_per_s * 1e9,
            l2_bandwidth: self.l2_gb_per_s * 1e9,
            shared_bandwidth: 128.0 * self.clocks(),
            f32_flops,
            f64_flops: f32_flops * self.f64_per_f32,
            launch_seconds: 0.54e-6,
            barrier_seconds: cuda.barrier_us * 1e-6,
            exchange_seconds: EXCHANGE_SHARE * cuda.barrier_us * 1e-6,
            link: Some(Link::of(cuda.capability)),
        }
    }

    fn on_wgpu(&self, wgpu: &Wgpu) -> DeviceSpec {
        let f32_flops = 2.0 * wgpu.lanes as f64 * self.clocks();
        let memory_bytes = self.memory_gib << 30;
        DeviceSpec {
            name: self.name.to_owned(),
            compute_capability: None,
            multiprocessors: self.multiprocessors,
            registers: None,
            registers_per_thread: None,
            shared_bytes: wgpu.workgroup_kib << 10,
            shared_bytes_per_block: wgpu.workgroup_kib << 10,
            constant_bytes: None,
            caches: None,
            shared_bytes_reserved: 0,
            threads: 1024,
            threads_per_block: 1024,
            warp: wgpu.subgroup,
            l2_bytes: self.l2_mib << 20,
            memory_bytes,
            buffer_bytes: memory_bytes.min(WGPU_BUFFER_BYTES),
            kernel_buffers: Some(WGPU_BUFFERS),
            memory_bandwidth: self.memory_gb_per_s * 1e9,
            l2_bandwidth: self.l2_gb_per_s * 1e9,
            shared_bandwidth: 0.0,
            f32_flops,
            f64_flops: f32_flops * self.f64_per_f32,
            launch_seconds: DISPATCH_SECONDS,
            barrier_seconds: 0.0,
            exchange_seconds: 0.0,
            link: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Capability;

    /// The peak rates of the data sheets, in TFlop/s of f32 and f64.
    const PEAKS: [(&str, f64, f64); TABLE.len()] = [
        ("v100", 15.7, 7.8),
        ("a100", 19.5, 9.7),
        ("h100", 67.0, 33.5),
        ("h200", 67.0, 33.5),
        ("b200", 75.0, 37.0),
        ("l40s", 91.6, 1.43),
        ("rtx4090", 82.6, 1.29),
        ("rtx5090", 104.8, 1.64),
        ("rtxa6000", 38.7, 0.605),
        ("mi300x", 163.4, 81.7),
        ("m3max", 14.1, 0.0),
        ("arca770", 17.2, 0.0),
    ];

    #[test]
    fn presets_hold_the_datasheets_figures() {
        for ((name, single, double), key) in PEAKS.into_iter().zip(PRESETS) {
            assert_eq!(name, key);
            let device = DeviceSpec::preset(name).unwrap();
            let near = |rate: f64, peak: f64| (rate / 1e12 - peak).abs() <= 0.015 * peak;
            assert!(near(device.f32_flops, single), "{name}: {}", device.f32_flops);
            assert!(near(device.f64_flops, double), "{name}: {}", device.f64_flops);
            assert_eq!(device.has(Capability::Warps), device.compute_capability.is_some(), "{name}");
            assert_eq!(device.has(Capability::Barrier), device.has(Capability::Warps), "{name}");
        }
        assert_eq!(DeviceSpec::preset("h200").unwrap().on_chip_bytes(), 132 * (256 + 228) * 1024);
    }

    #[test]
    fn names_are_read_as_people_write_them() {
        for (name, device) in
            [("A100", "A100"), ("RTX 4090", "RTX 4090"), ("rtx-a6000", "RTX A6000"), ("M3_Max", "M3 Max")]
        {
            assert_eq!(DeviceSpec::preset(name).unwrap().name, device);
        }
        for (name, meant) in [
            ("b300", "b200"),
            ("4090", "rtx4090"),
            ("a6000", "rtxa6000"),
            ("a770", "arca770"),
            ("mi300", "mi300x"),
            ("m3", "m3max"),
            ("l40", "l40s"),
            ("blackwell", "b200"),
        ] {
            let error = DeviceSpec::preset(name).unwrap_err().to_string();
            assert!(error.contains(&format!("did you mean `{meant}`")), "{name}: {error}");
        }
    }
}

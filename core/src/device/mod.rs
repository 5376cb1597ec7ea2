//! The resources and rates of a device: asked of it at run time, or a preset, so that a plan for it can be
//! made anywhere.

mod capabilities;
mod presets;

use std::str::FromStr;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::real::DType;

pub use self::capabilities::Capability;
pub use self::presets::{DISPATCH_SECONDS, PRESETS};

/// The resources and rates that a plan needs; `None` if the device does not have the resource or does not report it.
/// Rates are peaks, and 0 if unknown. They come from a datasheet if the device or a preset states them, and are
/// measured by copies otherwise.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeviceSpec {
    /// The device's own name.
    pub name: String,
    /// Compute capability of a CUDA device, as in (9, 0).
    pub compute_capability: Option<(u32, u32)>,
    /// Multiprocessors, or cores of a CPU; 0 if the device does not report their number.
    pub multiprocessors: usize,
    /// 32-bit registers of one multiprocessor.
    pub registers: Option<usize>,
    /// The most registers that a thread can use.
    pub registers_per_thread: Option<usize>,
    /// Bytes of shared memory of one multiprocessor.
    pub shared_bytes: usize,
    /// The most bytes of shared (workgroup) memory of one block.
    pub shared_bytes_per_block: usize,
    /// Bytes of the constant memory of a kernel's module; `None` if kernels cannot place anything there.
    pub constant_bytes: Option<usize>,
    /// The caches that a CPU's core has to itself.
    pub caches: Option<Caches>,
    /// Bytes of shared memory that the system takes from each block.
    pub shared_bytes_reserved: usize,
    /// The most resident threads of one multiprocessor.
    pub threads: usize,
    /// The most threads of one block.
    pub threads_per_block: usize,
    /// Threads of a warp (subgroup) that can shuffle values.
    pub warp: Option<usize>,
    /// Bytes of the last-level cache on the chip.
    pub l2_bytes: usize,
    /// Bytes of device memory.
    pub memory_bytes: u64,
    /// The most bytes of one buffer that a kernel can address.
    pub buffer_bytes: u64,
    /// The most buffers that a kernel can name; `None` if there is no such limit.
    pub kernel_buffers: Option<usize>,
    /// Bytes per second between device memory and the chip; 0 also if no one needed to measure the rate.
    pub memory_bandwidth: f64,
    /// Bytes per second from the last-level cache.
    pub l2_bandwidth: f64,
    /// Bytes per second of shared memory, summed over all multiprocessors.
    pub shared_bandwidth: f64,
    /// Floating-point operations per second in f32, a fused multiply-add counted twice.
    pub f32_flops: f64,
    /// Floating-point operations per second in f64, a fused multiply-add counted twice; 0 if there is no f64.
    pub f64_flops: f64,
    /// Seconds from one kernel to the next in a graph or submission.
    pub launch_seconds: f64,
    /// Seconds per barrier among all resident blocks.
    pub barrier_seconds: f64,
    /// Seconds per exchange of a word of each thread between blocks and those beside them, through device memory.
    pub exchange_seconds: f64,
    /// How planes go to another device of the kind; `None` where they go through the memory of this one.
    pub link: Option<Link>,
}

/// How planes of a domain go from a device to others of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Link {
    /// Seconds of an exchange with both neighbours, however little is exchanged.
    pub seconds: f64,
    /// Bytes per second that leave a device.
    pub bandwidth: f64,
    /// Whether kernels store into another device's memory over it.
    pub stores: bool,
}

impl Link {
    /// The link between devices of a compute capability that one process drives. On H200s copies over NVLink reached 390
    /// GB/s, and beside steps an exchange by stores took some 10 µs more than its bytes; B200, A100 and V100 are
    /// taken in proportion to the datasheets' bandwidths, boards of other capabilities to have PCIe alone.
    pub fn of(capability: (u32, u32)) -> Link {
        let bandwidth = match capability {
            (10, _) => 780e9,
            (9, 0) => 390e9,
            (8, 0) => 260e9,
            (7, 0) => 130e9,
            _ => 20e9,
        };
        Link { seconds: 10e-6, bandwidth, stores: true }
    }
}

impl FromStr for Link {
    type Err = Error;

    /// Reads microseconds of an exchange and GB/s that leave a device, as in `40,45`: a network, by which planes are sent.
    fn from_str(text: &str) -> Result<Link> {
        let positive = |text: &str| text.trim().parse().ok().filter(|&n: &f64| n > 0.0 && n.is_finite());
        let numbers: Option<Vec<f64>> = text.split(',').map(positive).collect();
        match numbers.as_deref() {
            Some(&[microseconds, gigabytes]) => {
                Ok(Link { seconds: microseconds / 1e6, bandwidth: gigabytes * 1e9, stores: false })
            }
            _ => Err(Error::invalid(
                format!("link {text:?}"),
                "a link is two numbers above 0: microseconds of an exchange, and GB/s that leave a device",
                "write it as 40,45",
            )),
        }
    }
}

/// The caches of a CPU's core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Caches {
    /// Bytes of the first level, for data.
    pub level1_bytes: Option<usize>,
    /// Bytes of the second level.
    pub level2_bytes: Option<usize>,
}

impl DeviceSpec {
    /// Returns the floating-point operations per second in a type.
    pub fn flops(&self, dtype: DType) -> f64 {
        match dtype {
            DType::F32 => self.f32_flops,
            DType::F64 => self.f64_flops,
        }
    }

    /// Returns the registers that each of `threads` threads resident on a multiprocessor may use.
    pub fn registers_for(&self, threads: usize) -> usize {
        let [all, most] = [self.registers, self.registers_per_thread].map(Option::unwrap_or_default);
        let registers = (all / threads).min(most) / 8 * 8;
        if registers >= 248 { most } else { registers }
    }

    /// Returns the bytes of shared memory that each of `blocks` blocks resident on a multiprocessor may use.
    pub fn shared_bytes_for(&self, blocks: usize) -> usize {
        self.shared_bytes_per_block
            .min((self.shared_bytes / blocks).saturating_sub(self.shared_bytes_reserved))
    }

    /// Returns the bytes of registers and shared memory on the whole chip: the most that a persistent kernel
    /// could keep.
    pub fn on_chip_bytes(&self) -> usize {
        self.multiprocessors * (4 * self.registers.unwrap_or(0) + self.shared_bytes)
    }
}

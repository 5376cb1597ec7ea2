//! Rates that no interface reports, assumed as in common GPUs: a multiprocessor has four schedulers of 32 lanes, some
//! 33 GB/s of device memory, and registers and threads as in every preset.

use abide_core::{DType, DeviceSpec};

/// Bytes per second of device memory per multiprocessor. It is a little more than an H200 has (31 GB/s),
/// because one window too many takes as long as another round.
const BANDWIDTH_OF_ONE: f64 = 33e9;

/// Clocks per second of a multiprocessor.
pub const CLOCK: f64 = 1.7e9;

/// Clocks from the last thread's slots until work is at full rate again, barrier included.
pub const BARRIER_CLOCKS: f64 = 90.0;

/// Threads and 32-bit registers of a multiprocessor.
const THREADS: f64 = 2048.0;

const REGISTERS: f64 = 65536.0;

/// Workgroup memory of a multiprocessor over the most that one workgroup can have.
const SHARED_OF_ALL: f64 = 3.0;

/// The share of the memory's bandwidth that kernels of several steps reach, and how much of the shorter of
/// computing and moving is not hidden behind the longer.
pub const MEMORY_SHARE: f64 = 0.85;

const UNHIDDEN: f64 = 0.4;

/// Returns the number of multiprocessors; where the device does not report it, an estimate from the bandwidth of
/// memory.
pub fn units(device: &DeviceSpec) -> f64 {
    match device.multiprocessors {
        0 => (device.memory_bandwidth / BANDWIDTH_OF_ONE).round().clamp(1.0, 1024.0),
        known => known as f64,
    }
}

/// Returns the workgroups that a multiprocessor holds at once, by their threads, 32-bit registers per thread
/// and bytes of workgroup memory; 0 if registers would spill.
pub fn resident(device: &DeviceSpec, threads: usize, registers: f64, shared_bytes: usize) -> f64 {
    let threads = threads as f64;
    let memory = SHARED_OF_ALL * device.shared_bytes_per_block as f64 / (shared_bytes as f64 + 1.0);
    (THREADS / threads).min(REGISTERS / (threads * registers)).min(memory).floor()
}

/// Returns the 32-bit words of a value, and the time of an operation over that of the same operation in 32
/// bits.
pub fn words(dtype: DType) -> (f64, f64) {
    match dtype {
        DType::F32 => (1.0, 1.0),
        DType::F64 => (2.0, 2.0),
    }
}

/// Returns the seconds of a dispatch that computes for `compute` and moves for `moving` seconds.
pub fn dispatch_seconds(device: &DeviceSpec, compute: f64, moving: f64) -> f64 {
    compute.max(moving) + UNHIDDEN * compute.min(moving) + device.launch_seconds
}

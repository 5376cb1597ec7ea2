//! The CUDA driver, found when first needed, and the properties that it reports of the device.

use std::sync::{Arc, OnceLock};

use abide_core::device::Link;
use abide_core::process::{Process, forked};
use abide_core::{DeviceSpec, Error, Result};
use cudarc::driver::sys::CUdevice_attribute_enum as Attribute;
use cudarc::driver::sys::CUresult;
use cudarc::driver::{CudaContext, CudaStream, DriverError, sys};

/// Turns a driver's error into one that says what was being done.
pub(crate) fn during(operation: &str) -> impl FnOnce(DriverError) -> Error + '_ {
    move |error| Error::device("cuda", operation, error)
}

/// Makes a stream's context that of the calling thread.
pub(crate) fn bind(stream: &CudaStream) -> Result<()> {
    stream.context().bind_to_thread().map_err(during("binding the context"))
}

/// Returns whether a stream has done all that it was asked; its context is that of the thread.
pub(crate) fn is_done(stream: &CudaStream) -> Result<bool> {
    // SAFETY: the stream lives.
    match unsafe { sys::cuStreamQuery(stream.cu_stream()) } {
        CUresult::CUDA_SUCCESS => Ok(true),
        CUresult::CUDA_ERROR_NOT_READY => Ok(false),
        fault => Err(during("running the kernels")(DriverError(fault))),
    }
}

fn unavailable(reason: impl Into<String>) -> Error {
    Error::Unavailable { backend: "cuda", reason: reason.into() }
}

/// Checks that the driver was not started by a process of which this one is a fork: it works in no other.
fn check_process() -> Result<()> {
    static STARTED: OnceLock<Process> = OnceLock::new();
    match STARTED.get_or_init(Process::current).is_current() {
        true => Ok(()),
        false => Err(unavailable(forked("CUDA was started"))),
    }
}

/// Returns the number of CUDA devices; `Unavailable`, with the reason, where there is no driver or no device, and in a
/// process that was forked after CUDA was started.
pub fn device_count() -> Result<usize> {
    // SAFETY: opens the vendor's driver library, which runs nothing of consequence when opened. Every other
    // call into cudarc panics where the library is missing, so this one comes first.
    if !unsafe { cudarc::driver::sys::is_culib_present() } {
        return Err(unavailable("the NVIDIA driver's library libcuda.so is not installed"));
    }
    check_process()?;
    match CudaContext::device_count() {
        Ok(count) if count > 0 => Ok(count as usize),
        Ok(_) => Err(unavailable("the driver sees no device")),
        Err(error) => Err(unavailable(format!("the driver does not start: {error}"))),
    }
}

/// Opens a device.
pub(crate) fn open(ordinal: usize) -> Result<(Arc<CudaContext>, DeviceSpec)> {
    let count = device_count()?;
    if ordinal >= count {
        return Err(Error::limit(
            "number of a CUDA device",
            ordinal,
            count - 1,
            "choose one of those that `abide devices` lists",
        ));
    }
    let context =
        CudaContext::new(ordinal).map_err(|e| unavailable(format!("device {ordinal} does not open: {e}")))?;
    // SAFETY: one stream uses each allocation, and it is synchronised before memory is freed.
    unsafe { context.disable_event_tracking() };
    let spec = ask(&context).map_err(during("asking for the device's attributes"))?;
    let (major, _) = spec.compute_capability.unwrap_or((0, 0));
    if major < 7 {
        return Err(unavailable(format!(
            "{} has compute capability {major}.x; persistent kernels need 7.0 or newer",
            spec.name
        )));
    }
    Ok((context, spec))
}

/// Returns the driver's versions, as in `CUDA 13.0, kernel module 580.82.07`: the version of its interface, and
/// that of the operating system's kernel module where the system reports one.
pub(crate) fn version() -> String {
    let mut number = 0;
    // SAFETY: a context is open, so the library is there; the call writes one integer.
    let status = unsafe { cudarc::driver::sys::cuDriverGetVersion(&mut number) };
    let interface = match status.result() {
        // 1000 times the major number, 10 times the minor.
        Ok(()) => format!("CUDA {}.{}", number / 1000, number % 1000 / 10),
        Err(error) => format!("CUDA of unknown version ({error})"),
    };
    match std::fs::read_to_string("/proc/driver/nvidia/version").ok().as_deref().and_then(module_version) {
        Some(module) => format!("{interface}, kernel module {module}"),
        None => interface,
    }
}

/// Returns the number in the line of `/proc/driver/nvidia/version` that begins with `NVRM version:`.
fn module_version(text: &str) -> Option<&str> {
    let line = text.lines().find_map(|line| line.strip_prefix("NVRM version:"))?;
    let is_number =
        |word: &&str| word.contains('.') && word.split('.').all(|part| part.parse::<u32>().is_ok());
    line.split_whitespace().find(is_number)
}

fn ask(context: &Arc<CudaContext>) -> std::result::Result<DeviceSpec, DriverError> {
    let number = |attribute| context.attribute(attribute).map(|value| value.max(0) as usize);
    let (major, minor) = context.compute_capability()?;
    let multiprocessors = number(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
    let clock = number(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)? as f64 * 1e3;
    let memory_clock = number(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)? as f64 * 1e3;
    let bus_bits = number(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)? as f64;
    let f64_ratio =
        number(Attribute::CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO)?.max(1) as f64;
    let memory_bytes = context.total_mem()? as u64;
    // Lanes of f32 per multiprocessor: 128 but for Volta, Turing and A100.
    let lanes = if matches!((major, minor), (7, _) | (8, 0)) { 64.0 } else { 128.0 };
    let clocks = clock * multiprocessors as f64;
    // Double data rate: two transfers per memory clock. The driver does not report the bandwidth of the
    // last-level cache; it is taken from the device's generation.
    let memory_bandwidth = 2.0 * memory_clock * bus_bits / 8.0;
    let l2_per_clock = if major >= 9 { 21.0 } else { 32.0 };
    Ok(DeviceSpec {
        name: context.name()?,
        compute_capability: Some((major as u32, minor as u32)),
        multiprocessors,
        registers: Some(number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)?),
        registers_per_thread: Some(255),
        shared_bytes: number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
        shared_bytes_per_block: number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        constant_bytes: Some(number(Attribute::CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY)?),
        caches: None,
        shared_bytes_reserved: number(Attribute::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK)?,
        threads: number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
        threads_per_block: number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        warp: Some(number(Attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE)?),
        l2_bytes: number(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?,
        memory_bytes,
        buffer_bytes: memory_bytes,
        kernel_buffers: None,
        memory_bandwidth,
        l2_bandwidth: (l2_per_clock * clocks).max(memory_bandwidth),
        shared_bandwidth: 128.0 * clocks,
        f32_flops: 2.0 * lanes * clocks,
        f64_flops: 2.0 * lanes * clocks / f64_ratio,
        // Those of an H200, until they are measured (`costs`).
        launch_seconds: 0.54e-6,
        barrier_seconds: 1.1e-6,
        exchange_seconds: 1.05e-6,
        link: Some(Link::of((major as u32, minor as u32))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_modules_version_is_read() {
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.82.07  Release Build  (dvs-builder@U22-I3)\n\
                    GCC version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1~22.04)\n";
        assert_eq!(module_version(open), Some("580.82.07"));
        let closed =
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6 22:20:39 UTC 2023\n";
        assert_eq!(module_version(closed), Some("535.54.03"));
        assert_eq!(module_version("GCC version: 12.3.0"), None);
    }
}

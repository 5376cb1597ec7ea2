//! The rates of elementary functions on a device, and their bits there.

use std::ffi::c_void;
use std::sync::Arc;

use abide_core::expr::{Binary, Unary, binary, unary};
use abide_core::functions::{Function, FunctionRate};
use abide_core::{DType, DeviceSpec, Real, Result};
use abide_shaders::cuda::{COMPILE_OPTIONS, EACH_THREADS, Whose, each_entry, each_kernels};
use cudarc::driver::{CudaContext, DevicePtr, DeviceRepr, ValidAsZeroBits, result};

use crate::cache;
use crate::driver::during;
use crate::kernels::{Kernels, target};
use crate::nvrtc::Nvrtc;
use crate::timing::Timer;

const TIMING: &str = "timing functions";

/// How often each value is computed, one after the other.
const REPEATS: u64 = 500;

/// Runs, the fastest of which counts: others may be disturbed.
const RUNS: usize = 5;

/// Times a function, and CUDA's own of the same name, where all threads of the device compute it.
pub(crate) fn rate<T: Real + DeviceRepr + ValidAsZeroBits>(
    device: &DeviceSpec,
    context: &Arc<CudaContext>,
    nvrtc: &Nvrtc,
    function: Function,
) -> Result<FunctionRate> {
    context.bind_to_thread().map_err(during("binding the context"))?;
    let cubin = cache::compile(nvrtc, &each_kernels(T::DTYPE, true), &target(device), &COMPILE_OPTIONS)?;
    let kernels = Kernels::load(context, cubin)?;
    let stream = context.new_stream().map_err(during("making a stream"))?;
    let timer = Timer::new(&stream)?;
    // Several waves of as many blocks as a multiprocessor holds.
    let blocks = device.multiprocessors as u32 * 32;
    let count = blocks as usize * EACH_THREADS as usize;
    let arguments: Vec<[f64; 2]> = (0..count).map(|i| function.ordinary(i as f64 / count as f64)).collect();
    let values =
        |second: usize| -> Vec<T> { arguments.iter().map(|both| T::from_f64(both[second])).collect() };
    let (host_x, host_y) = (values(0), values(1));
    let x = stream.clone_htod(&host_x).map_err(during(TIMING))?;
    let y = stream.clone_htod(&host_y).map_err(during(TIMING))?;
    let to = stream.alloc_zeros::<T>(count).map_err(during(TIMING))?;
    let [mut formula, mut platform] = [0.0_f64; 2];
    for (whose, rate) in [(Whose::Cuda, &mut platform), (Whose::Formula, &mut formula)] {
        let kernel = kernels.function(&each_entry(function, whose), 0)?;
        for _ in 0..RUNS {
            let addresses = [x.device_ptr(&stream).0, y.device_ptr(&stream).0, to.device_ptr(&stream).0];
            let mut each = [addresses[0], addresses[1], addresses[2], count as u64, REPEATS];
            timer.start(&stream)?;
            // SAFETY: the kernel takes the struct Each by value: three addresses of so many values, their number, and
            // the repeats. The buffers live until the clock is stopped.
            unsafe {
                result::launch_kernel(
                    kernel.cu_function(),
                    (blocks, 1, 1),
                    (EACH_THREADS, 1, 1),
                    0,
                    stream.cu_stream(),
                    &mut [each.as_mut_ptr().cast::<c_void>()],
                )
            }
            .map_err(during(TIMING))?;
            *rate = rate.max(count as f64 * REPEATS as f64 / timer.stop(&stream)?);
        }
    }
    let found = stream.clone_dtoh(&to).map_err(during(TIMING))?;
    let one = Unary::ALL.iter().find(|op| op.function() == Some(function));
    let two = Binary::ALL.iter().find(|op| op.function() == Some(function));
    let expected = |i: usize| match (one, two) {
        (Some(&op), _) => unary(op, host_x[i]),
        (None, Some(&op)) => binary(op, host_x[i], host_y[i]),
        (None, None) => T::ZERO,
    };
    let wrong = (0..count).filter(|&i| found[i].to_bits64() != expected(i).to_bits64()).count();
    Ok(FunctionRate { formula, platform, wrong })
}

/// See [`rate`].
pub(crate) fn rate_of(
    device: &DeviceSpec,
    context: &Arc<CudaContext>,
    nvrtc: &Nvrtc,
    function: Function,
    dtype: DType,
) -> Result<FunctionRate> {
    match dtype {
        DType::F32 => rate::<f32>(device, context, nvrtc, function),
        DType::F64 => rate::<f64>(device, context, nvrtc, function),
    }
}

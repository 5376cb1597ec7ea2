//! What a launch, a barrier of all blocks and an exchange with the blocks beside cost on a device: timed once, and kept.

use std::cell::LazyCell;
use std::ffi::c_void;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use abide_core::{DeviceSpec, Error, Result};
use abide_shaders::cuda::{
    COMPILE_OPTIONS, COUNTER_STRIDE, IDLE, MEET_ALL, MEET_BESIDE, MEET_THREADS, meet, meet_half, met,
};
use abide_tuning::rates::Rates;
use cudarc::driver::{CudaContext, CudaStream, DevicePtr, result};

use crate::cache;
use crate::driver::{during, version};
use crate::graph::recorded;
use crate::kernels::{Kernels, target};
use crate::nvrtc::Nvrtc;
use crate::persistent::check_resident;
use crate::timing::Timer;

const TIMING: &str = "timing launches and waits";

/// Launches of a graph, or passes of a kernel, in one timing.
const TOGETHER: u32 = 500;

/// Runs, the fastest of which counts: others may be disturbed.
const RUNS: usize = 7;

/// Events per second that a device can have: what lies beyond was disturbed, and does not count.
const PLAUSIBLE: Range<f64> = 2e4..1e7;

/// The seconds of each of [`COSTS`].
type Seconds = [Option<f64>; COSTS.len()];

/// The costs that this process found, by device and driver: measured once also where nothing can be kept.
static MEASURED: Mutex<Vec<([String; 2], Seconds)>> = Mutex::new(Vec::new());

/// A cost of a device, the words under which it is kept, and how it is timed.
struct Cost {
    what: &'static str,
    of: fn(&mut DeviceSpec) -> &mut f64,
    seconds: fn(&Stand) -> Result<f64>,
}

const COSTS: [Cost; 3] = [
    Cost {
        what: "kernels one after the other in a graph",
        of: |device| &mut device.launch_seconds,
        seconds: Stand::launch,
    },
    Cost {
        what: "barriers of all blocks",
        of: |device| &mut device.barrier_seconds,
        seconds: |stand| stand.meet(MEET_ALL),
    },
    Cost {
        what: "exchanges with the blocks beside",
        of: |device| &mut device.exchange_seconds,
        seconds: |stand| stand.meet(MEET_BESIDE),
    },
];

/// Sets the costs of a device to what is measured on it; one that cannot be measured stays as it is.
pub(crate) fn set(device: &mut DeviceSpec, context: &Arc<CudaContext>, nvrtc: &Nvrtc) {
    let machine = [device.name.clone(), version()];
    // Locked while measuring: two measurements at once would slow each other down.
    let mut measured = MEASURED.lock().unwrap_or_else(PoisonError::into_inner);
    let costs = match measured.iter().find(|(known, _)| *known == machine) {
        Some((_, costs)) => *costs,
        None => {
            let stand = LazyCell::new(|| Stand::new(device, context, nvrtc).ok());
            let rates = Rates::of_user();
            let costs = COSTS.each_ref().map(|cost| {
                let rate = || Some(1.0 / (cost.seconds)(stand.as_ref()?).ok()?);
                rates.kept(cost.what, &machine, PLAUSIBLE, rate).map(|rate| 1.0 / rate)
            });
            measured.push((machine, costs));
            costs
        }
    };
    for (cost, seconds) in COSTS.iter().zip(costs) {
        let own = (cost.of)(device);
        *own = seconds.unwrap_or(*own);
    }
}

/// Returns the costs of a device.
pub(crate) fn of(device: &DeviceSpec) -> [f64; COSTS.len()] {
    let mut device = device.clone();
    COSTS.each_ref().map(|cost| *(cost.of)(&mut device))
}

/// Sets the costs of a device to others.
pub(crate) fn assume(device: &mut DeviceSpec, costs: [f64; COSTS.len()]) {
    COSTS.iter().zip(costs).for_each(|(cost, seconds)| *(cost.of)(device) = seconds);
}

/// A stream on which kernels are timed that do nothing but wait.
struct Stand {
    kernels: Kernels,
    stream: Arc<CudaStream>,
    timer: Timer,
    device: DeviceSpec,
}

impl Stand {
    fn new(device: &DeviceSpec, context: &Arc<CudaContext>, nvrtc: &Nvrtc) -> Result<Stand> {
        context.bind_to_thread().map_err(during("binding the context"))?;
        let cubin = cache::compile(nvrtc, &meet(), &target(device), &COMPILE_OPTIONS)?;
        let kernels = Kernels::load(context, cubin)?;
        let stream = context.new_stream().map_err(during("making a stream"))?;
        let timer = Timer::new(&stream)?;
        Ok(Stand { kernels, stream, timer, device: device.clone() })
    }

    /// Returns the seconds of an event in the fastest of some runs of [`TOGETHER`] events.
    fn fastest(&self, mut run: impl FnMut() -> Result<()>) -> Result<f64> {
        let mut best = f64::INFINITY;
        for _ in 0..RUNS {
            self.timer.start(&self.stream)?;
            run()?;
            best = best.min(self.timer.stop(&self.stream)?);
        }
        Ok(best / f64::from(TOGETHER))
    }

    /// Times kernels that do nothing, one after the other in a graph.
    fn launch(&self) -> Result<f64> {
        let idle = self.kernels.function(IDLE, 0)?;
        let graph = recorded(&self.stream, || {
            (0..TOGETHER).try_for_each(|_| {
                // SAFETY: the kernel has no arguments and touches no memory.
                unsafe {
                    result::launch_kernel(
                        idle.cu_function(),
                        (self.device.multiprocessors as u32, 1, 1),
                        (MEET_THREADS, 1, 1),
                        0,
                        self.stream.cu_stream(),
                        &mut [],
                    )
                }
                .map_err(during(TIMING))
            })
        })?;
        self.fastest(|| graph.launch().map_err(during(TIMING)))
    }

    /// Times a kernel whose blocks, one on each multiprocessor, wait for each other again and again, and checks by
    /// what they leave that they did.
    fn meet(&self, entry: &str) -> Result<f64> {
        let blocks = self.device.multiprocessors;
        let function = self.kernels.function(entry, 0)?;
        check_resident(&function, (MEET_THREADS as usize, 0), &self.device, blocks)?;
        let half = blocks * MEET_THREADS as usize;
        let zeros = |number| self.stream.alloc_zeros::<u32>(number).map_err(during(TIMING));
        let (words, mut counters) = (zeros(2 * half)?, zeros(blocks * COUNTER_STRIDE)?);
        let seconds = self.fastest(|| {
            self.stream.memset_zeros(&mut counters).map_err(during(TIMING))?;
            let addresses = [&words, &counters].map(|memory| memory.device_ptr(&self.stream).0);
            let mut communicator = [addresses[0], addresses[1], u64::from(TOGETHER)];
            // SAFETY: the kernel takes the struct Rendezvous by value, which is two addresses and a number in the first
            // half of a word, because hosts with CUDA are little-endian; both buffers have the length that it asks
            // for and live until the clock is stopped. All blocks are resident at once.
            unsafe {
                result::launch_cooperative_kernel(
                    function.cu_function(),
                    (blocks as u32, 1, 1),
                    (MEET_THREADS, 1, 1),
                    0,
                    self.stream.cu_stream(),
                    &mut [communicator.as_mut_ptr().cast::<c_void>()],
                )
            }
            .map_err(during(TIMING))
        })?;
        let found = self.stream.clone_dtoh(&words).map_err(during(TIMING))?;
        if found[meet_half(TOGETHER) * half..][..half] == met(blocks, TOGETHER) {
            return Ok(seconds);
        }
        Err(Error::device("cuda", TIMING, format!("the blocks of {entry} did not wait for each other")))
    }
}

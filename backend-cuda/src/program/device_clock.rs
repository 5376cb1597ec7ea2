//! A clock on the device: the scalars from one reduction of fields to the next, and what stages read of them, without the host.

use std::ffi::c_void;
use std::sync::Arc;

use abide_core::program::{Clock, Stretch};
use abide_core::{DeviceSpec, Error, Result};
use abide_shaders::cuda::{COMPILE_OPTIONS, ClockArguments, clock_kernels, stretch_entry};
use cudarc::driver::{CudaContext, CudaFunction, CudaSlice, CudaStream, DevicePtr, result};

use crate::cache;
use crate::driver::during;
use crate::kernels::{Kernels, target};
use crate::nvrtc::Nvrtc;

const MAKING: &str = "making scalars on the device";

/// The kernels of a clock, and its values.
pub(crate) struct DeviceClock {
    stretches: Vec<Stretch>,
    /// Of each stretch.
    functions: Vec<CudaFunction>,
    /// The values of the clock, and then of the reductions.
    memory: Option<CudaSlice<f64>>,
    /// The clock's values.
    count: usize,
}

impl DeviceClock {
    /// Compiles the kernels; `None` where the clock has none.
    pub fn new(
        clock: &Clock,
        device: &DeviceSpec,
        context: &Arc<CudaContext>,
        nvrtc: &Nvrtc,
    ) -> Result<Option<DeviceClock>> {
        let Some(text) = clock_kernels(clock) else { return Ok(None) };
        let cubin = cache::compile(nvrtc, &text, &target(device), &COMPILE_OPTIONS)?;
        let kernels = Kernels::load(context, cubin)?;
        let stretches = clock.stretches();
        let functions = (0..stretches.len()).map(|number| kernels.function(&stretch_entry(number), 0));
        let (functions, count) = (functions.collect::<Result<_>>()?, clock.all_values().len());
        Ok(Some(DeviceClock { stretches, functions, memory: None, count }))
    }

    /// Loads the clock's values, and makes room for those of so many reductions.
    pub fn load(&mut self, values: &[f64], reductions: usize, stream: &Arc<CudaStream>) -> Result<()> {
        let len = self.count + reductions;
        let memory = match self.memory.take().filter(|memory| memory.len() >= len) {
            Some(memory) => memory,
            None => stream.alloc_zeros(len).map_err(during(MAKING))?,
        };
        let memory = self.memory.insert(memory);
        stream.memcpy_htod(values, &mut memory.slice_mut(..values.len())).map_err(during(MAKING))
    }

    /// Launches the kernel of a stretch, counted from the cycle's first, as the one of this number since the values were loaded.
    /// What it needs are the addresses of what varies, and of the scalars of reductions, in f64 and as their formulas read them.
    /// Returns the stretch's steps, and the reduction that ends it.
    pub fn launch(
        &self,
        stretch: usize,
        number: usize,
        [table, exact, rounded]: [u64; 3],
        stream: &Arc<CudaStream>,
    ) -> Result<(u64, usize)> {
        let own = stretch % self.stretches.len().max(1);
        let (Some(memory), Some(stretch)) = (&self.memory, self.stretches.get(own)) else {
            return Err(Error::device("cuda", MAKING, "there are no values"));
        };
        let values = memory.device_ptr(stream).0;
        let reduced = values + ((self.count + number) * size_of::<f64>()) as u64;
        let mut arguments = ClockArguments { values, table, exact, rounded, reduced };
        let mut all: [*mut c_void; 1] = [(&raw mut arguments).cast()];
        // SAFETY: the kernel takes the struct Clock by value, which has this layout and is copied by the call. There are as many
        // values as the kernel's text counts, and room for what varies in the stretch and for one value of a reduction.
        unsafe {
            result::launch_kernel(
                self.functions[own].cu_function(),
                (1, 1, 1),
                (1, 1, 1),
                0,
                stream.cu_stream(),
                &mut all,
            )
        }
        .map_err(during(MAKING))?;
        Ok((stretch.steps(), stretch.reduction))
    }

    /// Returns the values of the first reductions since the clock's values were loaded.
    pub fn reduced(&self, count: usize, stream: &Arc<CudaStream>) -> Result<Vec<f64>> {
        let own = self.memory.as_ref().and_then(|memory| memory.try_slice(self.count..self.count + count));
        let own = own.ok_or_else(|| Error::device("cuda", MAKING, "there are no values"))?;
        stream.clone_dtoh(&own).map_err(during(MAKING))
    }
}

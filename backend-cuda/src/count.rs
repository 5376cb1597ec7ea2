//! Counting values that are NaN or infinite where they lie.

use std::ffi::c_void;
use std::sync::{Arc, OnceLock};

use abide_core::{Error, Result};
use abide_shaders::cuda::{COMPILE_OPTIONS, COUNT, COUNT_ENTRIES, count_entry, count_launch};
use cudarc::driver::{CudaContext, CudaFunction, CudaStream, DevicePtr, result};

use crate::cache;
use crate::driver::during;
use crate::kernels::Kernels;
use crate::nvrtc::Nvrtc;
use crate::window::Layout;

const COUNTING: &str = "counting values that are not finite";

/// The kernels that count, compiled when first needed.
pub(crate) struct Counter {
    context: Arc<CudaContext>,
    nvrtc: Arc<Nvrtc>,
    target: String,
    functions: OnceLock<Vec<CudaFunction>>,
}

impl Counter {
    pub fn new(context: &Arc<CudaContext>, nvrtc: &Arc<Nvrtc>, target: String) -> Counter {
        Counter { context: context.clone(), nvrtc: nvrtc.clone(), target, functions: OnceLock::new() }
    }

    fn function(&self, layout: &Layout) -> Result<&CudaFunction> {
        if self.functions.get().is_none() {
            let cubin = cache::compile(&self.nvrtc, COUNT, &self.target, &COMPILE_OPTIONS)?;
            let kernels = Kernels::load(&self.context, cubin)?;
            let functions = COUNT_ENTRIES.iter().map(|entry| kernels.function(entry, 0));
            // Whoever was first has set the same.
            let _ = self.functions.set(functions.collect::<Result<_>>()?);
        }
        let own = count_entry(layout.dtype, layout.precision);
        self.functions
            .get()
            .and_then(|functions| functions.get(own))
            .ok_or_else(|| Error::device("cuda", COUNTING, "the kernels are not there"))
    }

    /// Counts the values of a field that are NaN or infinite.
    ///
    /// # Safety
    ///
    /// The buffer at `device` has this layout.
    pub unsafe fn count(&self, device: u64, layout: &Layout, stream: &Arc<CudaStream>) -> Result<u64> {
        self.context.bind_to_thread().map_err(during("binding the context"))?;
        let function = self.function(layout)?;
        let count = stream.alloc_zeros::<u64>(1).map_err(during(COUNTING))?;
        let [planes, rows, width] = layout.extents;
        let shape = [planes * rows, width, layout.pitch].map(|n| n as u64);
        let ([blocks, threads], values) = count_launch(device, count.device_ptr(stream).0, shape);
        let mut arguments: [*mut c_void; 1] = [values.as_ptr().cast_mut().cast()];
        // SAFETY: the kernel takes the struct Values by value; the array has its layout and is copied by the
        // call. The kernel reads the rows of the layout, and adds to the count, which lives until it is read.
        unsafe {
            result::launch_kernel(
                function.cu_function(),
                (blocks, 1, 1),
                (threads, 1, 1),
                0,
                stream.cu_stream(),
                &mut arguments,
            )
        }
        .map_err(during(COUNTING))?;
        let found = stream.clone_dtoh(&count).map_err(during(COUNTING))?;
        stream.synchronize().map_err(during(COUNTING))?;
        Ok(found.first().copied().unwrap_or(0))
    }
}
